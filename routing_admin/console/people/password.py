"""One's own password."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from capabilities.access import actor_of
from capabilities.errors import ActionError
from routing_admin.console.people import actions as people
from routing_admin.console.people.forms import PasswordForm
from routing_admin.console.people.queries import list_identities
from routing_admin.console.people.signin import address_of, refuse_for_now
from routing_admin.console.people.users import user_or_404


@require_http_methods(["GET", "HEAD", "POST"])
def password_change(request: HttpRequest) -> HttpResponse:
    """Asks for the old password and a new one; this session stays, all others of the person end."""
    user = user_or_404(request.user.pk)
    form = PasswordForm(user, request.POST or None, address_of(request))
    if request.method == "POST" and form.is_valid():
        try:
            key = request.session.session_key or ""
            people.choose_password(actor_of(request), user, form.cleaned_data["new_password1"], staying=key)
        except ActionError as refusal:
            form.add_error(None, str(refusal))
        else:
            update_session_auth_hash(request, user)
            messages.success(request, _("Password changed; other sessions have ended"))
            return redirect("password_change")
    page = {"form": form, "identities": list_identities(user), "providers": settings.IDENTITY.providers}
    response = render(request, "users/password.html", page, status=422 if request.method == "POST" else 200)
    if form.wait:
        refuse_for_now(response, form)
    return response
