"""The link of an invitation or of a new password: whoever has it chooses a password and a language, once."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.views.decorators.http import require_http_methods

from capabilities.acts import Actor
from capabilities.errors import ActionError
from routing_admin.console.people import actions as people
from routing_admin.console.people.forms import JoinForm
from routing_admin.console.people.language import remember_language
from routing_admin.console.people.queries import find_user_of_link
from routing_admin.console.people.signin import address_of
from routing_admin.platform.server.request_id import request_id_of

BACKEND = "routing_admin.console.people.backend.PeopleBackend"


@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """The page of a link, 410 when it is spent; a good password signs the person in and ends other sessions."""
    user = find_user_of_link(uid, token)
    if user is None:
        return render(request, "registration/link_spent.html", status=410)
    form = JoinForm(user, request.POST or None, initial={"language": get_language()})
    if request.method == "POST" and form.is_valid():
        return come_in(request, user, form)
    status = 422 if request.method == "POST" else 200
    page = {"form": form, "person": user, "is_new": people.is_invited(user), "uid": uid, "token": token}
    page["providers"] = settings.IDENTITY.providers
    return render(request, "registration/join.html", page, status=status)


def come_in(request: HttpRequest, user: User, form: JoinForm) -> HttpResponse:
    """Keeps what the person chose and signs them in; 410 when the link was used at the same moment."""
    language = form.cleaned_data["language"]
    actor = Actor("person", user.get_username(), address_of(request), request_id_of(request))
    try:
        people.choose_password(actor, user, form.cleaned_data["new_password1"], language=language)
    except ActionError:
        return render(request, "registration/link_spent.html", status=410)
    login(request, user, backend=BACKEND)
    response = redirect("/")
    remember_language(response, language)
    return response
