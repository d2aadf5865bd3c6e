"""Administrators' API for users: list, invite, change the role, deactivate and reactivate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router

from capabilities.access import role_for
from capabilities.core.permissions import ROLE_SCOPES, UserRole
from capabilities.errors import InvalidError
from routing_admin.api.calls import answer, read_as, takes
from routing_admin.console.base.api import (
    TAG,
    check_grantable,
    form_problems,
    iso,
    read_expectation,
    require,
    script_actor,
)
from routing_admin.console.base.schemas import InvitedOut, InviteIn, PeopleOut, PersonIn, PersonOut, PersonThing
from routing_admin.console.exchange.actions import check_expectation
from routing_admin.console.people import actions as people
from routing_admin.console.people.forms import InviteForm
from routing_admin.console.people.queries import find_user_named, list_users
from routing_admin.core.files.entries import entity_tag

if TYPE_CHECKING:
    from django.contrib.auth.models import User

router = Router(tags=[TAG])


def person_out(user: User) -> PersonThing:
    state = "deactivated" if not user.is_active else "invited" if people.is_invited(user) else "active"
    role = role_for(user).value
    return PersonThing(username=user.get_username(), role=role, state=state, lastSignIn=iso(user.last_login))


def check_rank(request: HttpRequest, *roles: str) -> None:
    """Raise `CallError` 403 if the token has fewer rights than any of these roles."""
    # Otherwise a token could grant rights that it does not have.
    for role in roles:
        check_grantable(request, ROLE_SCOPES[UserRole(role)], f"The role {role}")


@router.get("/people", response=PeopleOut)
def admin_list_people(request: HttpRequest) -> HttpResponse:
    """List all users. Deactivated users are last."""
    return answer(PeopleOut(people=[person_out(user) for user in list_users()]))


@router.post("/people", response={201: InvitedOut}, openapi_extra=takes(InviteIn))
def admin_invite_person(request: HttpRequest) -> HttpResponse:
    """Invite a user, who chooses a password through a link that is shown only in this response.

    The status is 422 for a name that is taken or invalid, and 403 for a role with more rights than the token's scopes.
    """
    body = read_as(request, InviteIn)
    check_rank(request, body.role)
    form = InviteForm({"username": body.username, "role": body.role})
    if not form.is_valid():
        raise InvalidError(form_problems(form, {}))
    user, token = people.invite(script_actor(request), form.cleaned_data["username"], form.cleaned_data["role"])
    return answer_link(user, token, 201)


@router.post("/people/{username}/link", response={201: InvitedOut})
def admin_link_person(request: HttpRequest, username: str) -> HttpResponse:
    """Create a link for choosing a password, which replaces earlier links; 409 for a deactivated user.

    The status is 403 if the user's role has more rights than the token's scopes.
    """
    user = require(find_user_named(username), "person", username)
    check_rank(request, role_for(user).value)
    return answer_link(user, people.new_link(script_actor(request), user), 201)


@router.delete("/people/{username}", response={204: None})
def admin_withdraw_person(request: HttpRequest, username: str) -> HttpResponse:
    """Withdraw an invitation; 409 if the user has accepted it. A missing user is not an error."""
    user = find_user_named(username)
    if user is not None:
        check_expectation(read_expectation(request), person_entry(user))
        people.withdraw_invitation(script_actor(request), user.pk)
    return HttpResponse(status=204)


def answer_link(user: User, token: str, status: int) -> HttpResponse:
    uid, _, word = token.partition("/")
    link = settings.PUBLIC_URL + reverse("join", args=[uid, word])
    days = settings.PASSWORD_RESET_TIMEOUT // 86_400
    return answer(InvitedOut(person=person_out(user), link=link, days=days), status)


def person_entry(user: User) -> dict[str, Any]:
    """Return the fields from which a user's ETag is derived."""
    # The time of the last sign-in is excluded, because a sign-in must not conflict with an edit.
    return person_out(user).model_dump(exclude={"lastSignIn"})


def answer_person(user: User) -> HttpResponse:
    return answer(PersonOut(person=person_out(user)), ETag=f'"{entity_tag(person_entry(user))}"')


@router.get("/people/{username}", response=PersonOut)
def admin_get_person(request: HttpRequest, username: str) -> HttpResponse:
    """Return one user."""
    return answer_person(require(find_user_named(username), "person", username))


@router.put("/people/{username}", response=PersonOut, openapi_extra=takes(PersonIn))
def admin_put_person(request: HttpRequest, username: str) -> HttpResponse:
    """Change a user's role, deactivate or reactivate a user; 409 for the last administrator.

    Losing rights ends all sessions. The status is 403 if the old or the new role has more rights than the token's
    scopes. Deactivation only needs the scope `people:write`.
    """
    user = require(find_user_named(username), "person", username)
    body, actor = read_as(request, PersonIn), script_actor(request)
    check_expectation(read_expectation(request), person_entry(user))
    role = role_for(user).value
    if body.role not in (None, role):
        check_rank(request, role, body.role)
    # Reactivating a user grants the rights of the user's role, so this role is checked. Deactivation grants no rights.
    if body.active and not user.is_active:
        check_rank(request, role)
    if body.role is not None:
        people.set_role(actor, user.pk, body.role, expected=role)
    if body.active is not None:
        people.set_active(actor, user.pk, active=body.active)
    return answer_person(require(find_user_named(username), "person", username))
