"""People: who there is, and with which role; roles given, people deactivated and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from capabilities.access import role_of
from capabilities.api.calls import answer, gives, read_as, takes
from routing_admin.actions import people
from routing_admin.agents_api.administration.calls import TAG, iso, require, script_actor
from routing_admin.agents_api.administration.schemas import PeopleOut, PersonIn, PersonOut
from routing_admin.queries.people import find_user_named, list_users

if TYPE_CHECKING:
    from django.contrib.auth.models import User

router = Router(tags=[TAG])


def person_json(user: User) -> dict[str, Any]:
    """A person, as the pages show one."""
    state = "deactivated" if not user.is_active else "invited" if people.is_invited(user) else "active"
    role = role_of(user).value
    return {"username": user.get_username(), "role": role, "state": state, "lastSignIn": iso(user.last_login)}


@router.get("/people", openapi_extra=gives(PeopleOut))
def admin_list_people(request: HttpRequest) -> HttpResponse:
    """Everybody, those who can sign in first."""
    return answer({"people": [person_json(user) for user in list_users()]})


@router.get("/people/{username}", openapi_extra=gives(PersonOut))
def admin_get_person(request: HttpRequest, username: str) -> HttpResponse:
    """One person."""
    return answer({"person": person_json(require(find_user_named(username), "person", username))})


@router.put("/people/{username}", openapi_extra={**takes(PersonIn), **gives(PersonOut)})
def admin_put_person(request: HttpRequest, username: str) -> HttpResponse:
    """Gives a role, deactivates or reactivates; 409 for the last administrator. Who gets less is signed out."""
    user = require(find_user_named(username), "person", username)
    body, actor = read_as(request, PersonIn), script_actor(request)
    if body.role is not None:
        people.set_role(actor, user.pk, body.role, expected=role_of(user).value)
    if body.active is not None:
        people.set_active(actor, user.pk, active=body.active)
    return answer({"person": person_json(require(find_user_named(username), "person", username))})
