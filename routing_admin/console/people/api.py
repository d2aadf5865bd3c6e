"""People: who there is, and with which role; invited, given roles, deactivated and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router

from capabilities.access import role_of
from capabilities.core.permissions import ROLE_SCOPES, UserRole
from capabilities.errors import InvalidError
from routing_admin.api.calls import answer, read_as, takes
from routing_admin.console.base.api import (
    TAG,
    check_gives,
    expectation_in,
    iso,
    problems_of,
    require,
    script_actor,
)
from routing_admin.console.base.schemas import InvitedOut, InviteIn, PeopleOut, PersonIn, PersonOut, PersonThing
from routing_admin.console.exchange.entries import check_expectation
from routing_admin.console.people import actions as people
from routing_admin.console.people.forms import InviteForm
from routing_admin.console.people.queries import find_user_named, list_users
from routing_admin.core.files.entries import tag_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User

router = Router(tags=[TAG])


def person_out(user: User) -> PersonThing:
    """A person, as the pages show one."""
    state = "deactivated" if not user.is_active else "invited" if people.is_invited(user) else "active"
    role = role_of(user).value
    return PersonThing(username=user.get_username(), role=role, state=state, lastSignIn=iso(user.last_login))


def check_rank(request: HttpRequest, *roles: str) -> None:
    """Raise `CallError` 403 for a token that can do less than a person of one of these roles."""
    for role in roles:
        check_gives(request, ROLE_SCOPES[UserRole(role)], f"The role {role}")


@router.get("/people", response=PeopleOut)
def admin_list_people(request: HttpRequest) -> HttpResponse:
    """All users, those who can sign in first."""
    return answer(PeopleOut(people=[person_out(user) for user in list_users()]))


@router.post("/people", response={201: InvitedOut}, openapi_extra=takes(InviteIn))
def admin_invite_person(request: HttpRequest) -> HttpResponse:
    """Invites a user, who chooses a password through the link shown only in this answer.

    422 for a name that is taken or invalid, 403 for a role with more than the token's scopes.
    """
    body = read_as(request, InviteIn)
    check_rank(request, body.role)
    form = InviteForm({"username": body.username, "role": body.role})
    if not form.is_valid():
        raise InvalidError(problems_of(form, {}))
    user, token = people.invite(script_actor(request), form.cleaned_data["username"], form.cleaned_data["role"])
    return linked(user, token, 201)


@router.post("/people/{username}/link", response={201: InvitedOut})
def admin_link_person(request: HttpRequest, username: str) -> HttpResponse:
    """A new link for choosing a password; it replaces the previous one. 409 for a deactivated user.

    403 for one whose role can do more than the token.
    """
    user = require(find_user_named(username), "person", username)
    check_rank(request, role_of(user).value)
    return linked(user, people.new_link(script_actor(request), user), 201)


@router.delete("/people/{username}", response={204: None})
def admin_withdraw_person(request: HttpRequest, username: str) -> HttpResponse:
    """Withdraws an invitation; 409 for a user who has accepted it. A missing one is no error."""
    user = find_user_named(username)
    if user is not None:
        check_expectation(expectation_in(request), entry_of(user))
        people.withdraw(script_actor(request), user.pk)
    return HttpResponse(status=204)


def linked(user: User, token: str, status: int) -> HttpResponse:
    """The one answer that holds a link."""
    uid, _, word = token.partition("/")
    link = settings.PUBLIC_URL + reverse("join", args=[uid, word])
    days = settings.PASSWORD_RESET_TIMEOUT // 86_400
    return answer(InvitedOut(person=person_out(user), link=link, days=days), status)


def entry_of(user: User) -> dict[str, Any]:
    """What of a person its tag speaks of: not when they signed in."""
    return person_out(user).model_dump(exclude={"lastSignIn"})


def answer_person(user: User) -> HttpResponse:
    """A person, with an ETag."""
    return answer(PersonOut(person=person_out(user)), ETag=f'"{tag_of(entry_of(user))}"')


@router.get("/people/{username}", response=PersonOut)
def admin_get_person(request: HttpRequest, username: str) -> HttpResponse:
    """One person."""
    return answer_person(require(find_user_named(username), "person", username))


@router.put("/people/{username}", response=PersonOut, openapi_extra=takes(PersonIn))
def admin_put_person(request: HttpRequest, username: str) -> HttpResponse:
    """Changes a role, deactivates or reactivates; 409 for the last administrator. Losing rights signs out.

    403 where the role before or after can do more than the token; deactivating takes `people:write` alone.
    """
    user = require(find_user_named(username), "person", username)
    body, actor = read_as(request, PersonIn), script_actor(request)
    check_expectation(expectation_in(request), entry_of(user))
    role = role_of(user).value
    if body.role not in (None, role):
        check_rank(request, role, body.role)
    if body.active and not user.is_active:
        check_rank(request, role)
    if body.role is not None:
        people.set_role(actor, user.pk, body.role, expected=role)
    if body.active is not None:
        people.set_active(actor, user.pk, active=body.active)
    return answer_person(require(find_user_named(username), "person", username))
