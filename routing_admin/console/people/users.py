"""Pages for managing users: the list of users, invitations, roles and deactivation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from capabilities.access import request_actor, role_for
from capabilities.core.permissions import UserRole, can_change
from capabilities.errors import ActionError, InvalidError
from capabilities.labels import ROLES
from capabilities.sentences import translate_refusal
from routing_admin.configuration.guards import find_refusal
from routing_admin.console.base.lists import Choice, Column, arrange, choose_state, natural_key, page_size
from routing_admin.console.base.page_responses import wants_fragment
from routing_admin.console.people import actions as people
from routing_admin.console.people.forms import InviteForm, RoleForm
from routing_admin.console.people.queries import SessionLine, find_user, list_sessions, list_users

ACTIVE, INVITED, DEACTIVATED = "active", "invited", "deactivated"
STATES: Mapping[str, Promise] = {
    ACTIVE: gettext_lazy("Active"),
    INVITED: gettext_lazy("Invited"),
    DEACTIVATED: gettext_lazy("Deactivated"),
}


@dataclass(frozen=True, slots=True)
class UserRow:
    user: User
    role: UserRole
    state: str


COLUMNS: Mapping[str, Column[UserRow]] = {
    "name": Column(lambda row: natural_key(row.user.get_username())),
    "role": Column(lambda row: list(ROLES).index(row.role)),
    "state": Column(lambda row: list(STATES).index(row.state)),
    "seen": Column(lambda row: row.user.last_login.timestamp() if row.user.last_login else 0, falling=True),
}
CHOICES: Sequence[Choice[UserRow]] = (
    Choice(
        name="role",
        label=gettext_lazy("Role"),
        everything=gettext_lazy("All roles"),
        values=ROLES,
        values_of=lambda row: (row.role.value,),
    ),
    choose_state(STATES, lambda row: (row.state,)),
)


def user_row(user: User) -> UserRow:
    active = INVITED if people.is_invited(user) else ACTIVE
    return UserRow(user, role_for(user), active if user.is_active else DEACTIVATED)


def user_or_404(pk: int | None) -> User:
    user = find_user(pk)
    if user is None:
        raise Http404
    return user


def summarize(lines: list[UserRow]) -> str:
    active = [line for line in lines if line.state == ACTIVE]
    administrators = sum(line.role is UserRole.ADMINISTRATOR for line in active)
    count = ngettext("%(count)s person can sign in", "%(count)s people can sign in", len(active)) % {
        "count": len(active)
    }
    template = ngettext("%(count)s of them an administrator", "%(count)s of them administrators", administrators)
    return _("%(people)s, %(administrators)s.") % {
        "people": count,
        "administrators": template % {"count": administrators},
    }


@require_http_methods(["GET", "HEAD"])
def users(request: HttpRequest) -> HttpResponse:
    return show_users(request, InviteForm())


@require_POST
def user_invite(request: HttpRequest) -> HttpResponse:
    form = InviteForm(request.POST)
    if form.is_valid():
        try:
            user, token = people.invite(
                request_actor(request), form.cleaned_data["username"], form.cleaned_data["role"]
            )
        except InvalidError as refusal:
            for problem in refusal.problems:
                form.add_error(problem.field, problem.message)
        else:
            return show_users(request, InviteForm(), link=link_context(user, token))
    return show_users(request, form, status=422)


def show_users(
    request: HttpRequest, form: InviteForm, link: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    lines = [user_row(user) for user in list_users()]
    listing = arrange(
        lines,
        request.GET,
        texts=lambda row: (row.user.get_username(),),
        columns=COLUMNS,
        choices=CHOICES,
        per_page=page_size(request),
    )
    page = {"listing": listing, "list_url": reverse("users"), "sentence": summarize(lines), "form": form, "link": link}
    template = "users/users.html#rows" if wants_fragment(request) else "users/users.html"
    return render(request, template, page, status=status)


@require_safe
def user(request: HttpRequest, pk: int) -> HttpResponse:
    person = user_or_404(pk)
    return show_user(request, person)


@require_POST
def user_role(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a user's role. Return 409 if it changed in the meantime, or if the user is the last administrator."""
    person = user_or_404(pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        return show_user(request, person, form=form, status=422)
    try:
        people.set_role(request_actor(request), pk, form.cleaned_data["role"], expected=form.cleaned_data["was"])
    except ActionError as refusal:
        form.add_error("role", translate_refusal(refusal))
        return show_user(request, user_or_404(pk), form=form, status=refusal.status)
    return redirect_to_user(request, pk, _("Role saved"))


@require_POST
def user_active(request: HttpRequest, pk: int) -> HttpResponse:
    active = request.POST.get("active") == "1"
    try:
        person = people.set_active(request_actor(request), pk, active=active)
    except ActionError as refusal:
        return show_user(request, user_or_404(pk), refusal=translate_refusal(refusal), status=refusal.status)
    template = (
        _("%(name)s can sign in again") if active else _("%(name)s was signed out everywhere and cannot sign in again")
    )
    return redirect_to_user(request, pk, template % {"name": person.get_username()})


def redirect_to_user(request: HttpRequest, pk: int, text: str) -> HttpResponse:
    # If the action has ended the actor's own session, redirect to the sign-in page.
    if not request.session.exists(request.session.session_key or ""):
        logout(request)
        return redirect("login")
    messages.success(request, text)
    return redirect("user", pk)


@require_POST
def user_link(request: HttpRequest, pk: int) -> HttpResponse:
    person = user_or_404(pk)
    try:
        token = people.new_link(request_actor(request), person)
    except ActionError as refusal:
        return show_user(request, user_or_404(pk), refusal=translate_refusal(refusal), status=refusal.status)
    return show_user(request, person, link=link_context(person, token))


@require_POST
def user_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        name = people.withdraw_invitation(request_actor(request), pk)
    except ActionError as refusal:
        return show_user(request, user_or_404(pk), refusal=translate_refusal(refusal), status=refusal.status)
    messages.success(request, _("Invitation of %(name)s revoked") % {"name": name})
    return redirect("users")


def show_user(
    request: HttpRequest, user: User, *, form: RoleForm | None = None, status: int = 200, **more: Any
) -> HttpResponse:
    line = user_row(user)
    role = line.role.value
    context = {
        "line": line,
        "form": form or RoleForm(initial={"role": role, "was": role}),
        "role": role,
        "stays": find_refusal(people.check_can_step_down, user),
        "is_self": user.pk == request.user.pk,
        "sessions": shown_sessions(request, user),
        **more,
    }
    return render(request, "users/user.html", context, status=status)


def shown_sessions(request: HttpRequest, user: User) -> list[SessionLine] | None:
    if user.pk == request.user.pk or can_change(role_for(request.user), "user_session_end"):
        return list_sessions(user.pk, request.session.session_key)
    return None


def link_context(user: User, token: str) -> dict[str, Any]:
    uid, _slash, word = token.partition("/")
    return {
        "name": user.get_username(),
        "is_new": people.is_invited(user),
        "url": settings.PUBLIC_URL + reverse("join", args=[uid, word]),
        "days": settings.PASSWORD_RESET_TIMEOUT // 86_400,
    }
