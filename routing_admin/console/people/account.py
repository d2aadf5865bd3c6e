"""Pages of a user's account: sessions, tokens and password, and the page that an invitation link opens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from capabilities.access import request_actor
from capabilities.actors import Actor
from capabilities.errors import ActionError, InvalidError
from routing_admin.console.base.lists import Column, arrange, choose_state, natural_key, page_size
from routing_admin.console.base.page_responses import UNPROCESSABLE, add_toast, require_found, wants_fragment
from routing_admin.console.people import actions as people
from routing_admin.console.people.actions import end_sessions, issue_token, revoke_token
from routing_admin.console.people.forms import JoinForm, PasswordForm, TokenForm
from routing_admin.console.people.language import remember_language
from routing_admin.console.people.queries import find_token, find_user_by_link, list_identities, list_tokens
from routing_admin.console.people.signin import refuse_throttled, visitor_address
from routing_admin.console.people.users import user_or_404
from routing_admin.models import AdminToken
from routing_admin.platform.server.request_id import read_request_id


@require_POST
def session_end(request: HttpRequest) -> HttpResponse:
    return end_user_sessions(request, user_or_404(request.user.pk))


@require_POST
def user_session_end(request: HttpRequest, pk: int) -> HttpResponse:
    return end_user_sessions(request, user_or_404(pk))


def end_user_sessions(request: HttpRequest, user: User) -> HttpResponse:
    """End the sessions selected in the form, or all sessions if none is selected, but never the current one."""
    digests = request.POST.getlist("session") or None
    count = end_sessions(request_actor(request), user, digests, staying=request.session.session_key or "")
    if count:
        messages.success(
            request, ngettext("%(count)s session ended", "%(count)s sessions ended", count) % {"count": count}
        )
    else:
        messages.info(request, _("This session has already ended"))
    return redirect("user", user.pk)


# A new token for scripts is shown only once. Revoking a token takes effect immediately.


@require_safe
def tokens(request: HttpRequest) -> HttpResponse:
    return show_tokens(request, TokenForm())


@require_POST
def token_new(request: HttpRequest) -> HttpResponse:
    """Create a token for scripts and show it in this response only."""
    # Do not redirect: the token would have to be stored until the next request.
    form = TokenForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        owner = user_or_404(request.user.pk)
        try:
            token, row = issue_token(request_actor(request), owner, data["name"], data["scopes"], days=data["days"])
        except InvalidError as refusal:
            for problem in refusal.problems:
                form.add_error(problem.field, problem.message)
        else:
            return show_tokens(request, TokenForm(), token=token, new_row=row)
    return show_tokens(request, form, status=UNPROCESSABLE)


@require_POST
def token_revoke(request: HttpRequest, public_id: str) -> HttpResponse:
    row = require_found(find_token(public_id))
    revoke_token(request_actor(request), row)
    add_toast(request, _("The token %(name)s is revoked and no longer works") % {"name": row.name})
    return redirect("tokens")


def show_tokens(request: HttpRequest, form: TokenForm, status: int = 200, **more: Any) -> HttpResponse:
    """Render the page of tokens. `more["token"]` is a new token, which only this response shows."""
    now = timezone.now()
    listing = arrange(
        list_tokens(),
        request.GET,
        texts=lambda row: (row.name, row.public_id, row.owner.get_username()),
        columns=TOKEN_COLUMNS,
        choices=[choose_state(TOKEN_STATES, lambda row: (_token_state(row, now),))],
        per_page=page_size(request),
    )
    page = {"listing": listing, "list_url": reverse("tokens"), "form": form, **more}
    template = "users/tokens.html#rows" if wants_fragment(request) else "users/tokens.html"
    return render(request, template, page, status=status)


VALID, EXPIRED, REVOKED = "valid", "expired", "revoked"
TOKEN_STATES: Mapping[str, str | Promise] = {
    VALID: gettext_lazy("Working"),
    EXPIRED: gettext_lazy("Expired"),
    REVOKED: gettext_lazy("Revoked"),
}
TOKEN_COLUMNS: Mapping[str, Column[AdminToken]] = {
    "name": Column(lambda row: natural_key(row.name)),
    "used": Column(lambda row: row.last_used_at.timestamp() if row.last_used_at else 0, falling=True),
    "expires": Column(lambda row: row.revoked_at or row.expires_at),
}


def _token_state(row: AdminToken, now: datetime) -> str:
    if row.revoked_at:
        return REVOKED
    return EXPIRED if row.expires_at <= now else VALID


# A link invites a user or resets a password. Its holder can choose a password and a language, once.

BACKEND = "routing_admin.console.people.backend.PeopleBackend"


@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """Show the page that an invitation or password link opens, or return 410 if the link is used or expired.

    Submitting a valid password signs the user in.
    """
    user = find_user_by_link(uid, token)
    if user is None:
        return render(request, "registration/link_spent.html", status=410)
    form = JoinForm(user, request.POST or None, initial={"language": get_language()})
    if request.method == "POST" and form.is_valid():
        return accept_link(request, user, form)
    status = 422 if request.method == "POST" else 200
    page = {"form": form, "person": user, "is_new": people.is_invited(user), "uid": uid, "token": token}
    page["providers"] = settings.IDENTITY.providers
    return render(request, "registration/join.html", page, status=status)


def accept_link(request: HttpRequest, user: User, form: JoinForm) -> HttpResponse:
    """Store the user's choices and sign the user in. Return 410 if the link has been used in the meantime."""
    language = form.cleaned_data["language"]
    actor = Actor("person", user.get_username(), visitor_address(request), read_request_id(request))
    try:
        people.choose_password(actor, user, form.cleaned_data["new_password1"], language=language)
    except ActionError:
        return render(request, "registration/link_spent.html", status=410)
    login(request, user, backend=BACKEND)
    response = redirect("/")
    remember_language(response, language)
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def password_change(request: HttpRequest) -> HttpResponse:
    user = user_or_404(request.user.pk)
    form = PasswordForm(user, request.POST or None, visitor_address(request))
    if request.method == "POST" and form.is_valid():
        try:
            key = request.session.session_key or ""
            people.choose_password(request_actor(request), user, form.cleaned_data["new_password1"], staying=key)
        except ActionError as refusal:
            form.add_error(None, str(refusal))
        else:
            # Django binds a session to the hash of the password, so the current session would end without this call.
            update_session_auth_hash(request, user)
            messages.success(request, _("Password changed; other sessions have ended"))
            return redirect("password_change")
    page = {"form": form, "identities": list_identities(user), "providers": settings.IDENTITY.providers}
    response = render(request, "users/password.html", page, status=422 if request.method == "POST" else 200)
    if form.wait:
        refuse_throttled(response, form)
    return response
