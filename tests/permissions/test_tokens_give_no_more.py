"""A script's token cannot be used to gain rights beyond its scopes: no role, no password link, no key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from capabilities.core.permissions import ADMIN_CALLS, ADMIN_SCOPES, CALLS, PAGES, ROLE_SCOPES, SCOPES, Right, UserRole
from capabilities.models import AgentKey
from routing_admin.models import AdminToken, AuditEvent, Person
from routing_admin.platform.auth.admin_tokens import AdminCaller, refuse_admin_call
from tests.cast import create_key, create_token, person

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
READING = [scope for scope in ADMIN_SCOPES if scope.endswith(":read")]
EDITING = [*READING, "services:write", "routes:write", "agents:write", "history:write", "people:write"]


@pytest.fixture(autouse=True)
def people(demo: None) -> None:
    for name, flags in {"root": {"is_staff": True}, "ada": {"is_staff": True}, "eve": {"is_editor": True}}.items():
        person(name, **flags)
    person("vera")


def call(scopes: list[str], method: str, path: str, body: Any = None) -> Any:
    token = create_token(User.objects.get(username="root"), *scopes, name=f"t{AuditEvent.objects.count()}")
    client = Client(headers={"authorization": f"Bearer {token}"})
    return client.generic(method, f"/api/v1/admin{path}", json.dumps(body or {}).encode(), "application/json")


def read_role(name: str) -> str:
    user = User.objects.get(username=name)
    return (
        "administrator" if user.is_staff else "editor" if Person.objects.filter(user=user, is_editor=True) else "viewer"
    )


@pytest.mark.parametrize("role", ["administrator", "editor", "viewer"])
def test_people_write_scope_alone_cannot_invite_users(role: str) -> None:
    answer = call(["people:write"], "POST", "/people", {"username": "new", "role": role})
    assert (answer.status_code, answer.json()["error"]) == (403, "scope_missing")
    assert "providers:read" in answer.json()["message"]
    assert "link" not in answer.json()
    assert not User.objects.filter(username="new").exists()


@pytest.mark.parametrize(
    ("scopes", "may"),
    [
        (["people:write"], []),
        (["people:write", *READING], ["viewer"]),
        (EDITING, ["viewer", "editor"]),
        ([scope for scope in ADMIN_SCOPES if scope != "settings:write"], ["viewer", "editor"]),
        (list(ADMIN_SCOPES), ["viewer", "editor", "administrator"]),
    ],
)
def test_token_grants_only_roles_and_password_links_covered_by_its_scopes(scopes: list[str], may: list[str]) -> None:
    holders = {"viewer": "vera", "editor": "eve", "administrator": "ada"}
    for role, account in holders.items():
        status = 201 if role in may else 403
        assert call(scopes, "POST", f"/people/{account}/link").status_code == status
        assert call(scopes, "POST", "/people", {"username": f"new-{role}", "role": role}).status_code == status
    for role in ("editor", "administrator"):
        assert (call(scopes, "PUT", "/people/vera", {"role": role}).status_code == 200) == (role in may)
        assert read_role("vera") == (role if role in may else read_role("vera"))
        assert read_role("vera") in ("viewer", *may)


def test_token_cannot_demote_a_user_with_more_rights() -> None:
    """If a token could demote a user with more rights, it could then create that user's password link and restore the
    role.
    """
    scopes = ["people:write", *READING]
    assert call(scopes, "PUT", "/people/ada", {"role": "viewer"}).status_code == 403
    assert read_role("ada") == "administrator"


def test_people_write_scope_deactivates_users_but_cannot_reactivate_them() -> None:
    """The scope `people:write` suffices to deactivate a user, but not to reactivate one, because that would grant
    rights.

    No part of a rejected request is applied.
    """
    assert call(["people:write"], "PUT", "/people/ada", {"active": False}).status_code == 200
    assert call(["people:write"], "PUT", "/people/ada", {"active": True}).status_code == 403
    assert call(["people:write", *READING], "PUT", "/people/ada", {"active": True}).status_code == 403
    assert not User.objects.get(username="ada").is_active
    assert call(["people:write"], "PUT", "/people/eve", {"role": "editor", "active": True}).status_code == 200
    assert call(["people:write"], "PUT", "/people/eve", {"role": "administrator", "active": False}).status_code == 403
    assert User.objects.get(username="eve").is_active


@pytest.mark.parametrize("scope", ["config:read", "config:write", "agents:write"])
def test_token_cannot_issue_a_key_with_configuration_scopes_that_the_token_lacks(scope: str) -> None:
    body = {"scopes": ["route", scope]}
    assert call(["keys:write"], "POST", "/agents/text-agent/keys", body).status_code == 403
    assert call(["keys:write", scope], "POST", "/agents/text-agent/keys", body).status_code == 201
    create_key("text-agent", scopes=SCOPES)
    identity = AgentKey.objects.order_by("id").last()
    assert identity
    path = f"/agents/text-agent/keys/{identity.public_id}/rotate"
    assert call(["keys:write"], "POST", path).status_code == 403
    assert call(["keys:write", "config:read", "config:write", "agents:write"], "POST", path).status_code == 201


def test_keys_write_scope_alone_issues_keys_with_default_scopes() -> None:
    assert call(["keys:write"], "POST", "/agents/text-agent/keys").status_code == 201


def test_no_call_creates_tokens_and_no_agent_call_creates_keys_or_users() -> None:
    assert not [
        call_name for call_name in (*ADMIN_CALLS, *CALLS) if "token" in call_name and not call_name.endswith("_tokens")
    ]
    assert not [call_name for call_name in CALLS if "key" in call_name or "people" in call_name]


def test_role_has_exactly_the_write_scopes_of_the_pages_that_the_role_may_change() -> None:
    changed_by = {
        "services:write": "service",
        "routes:write": "route",
        "agents:write": "agent",
        "history:write": "restore",
        "providers:write": "provider",
        "keys:write": "key_issue",
        "people:write": "user_invite",
        "settings:write": "settings_rate_set",
        "config:write": "config_import",
    }
    rows = {name: cells for family in PAGES.values() for name, cells in family.items()}
    for column, role in enumerate(UserRole):
        if role is not UserRole.ANONYMOUS:
            may = {scope for scope, page in changed_by.items() if Right.CHANGE in rows[page][column]}
            assert may == {scope for scope in ROLE_SCOPES[role] if scope.endswith(":write")}


def test_call_without_its_scope_is_refused_with_403() -> None:
    caller = AdminCaller(AdminToken(), "secret", "script", frozenset({"services:read"}))
    assert refuse_admin_call(caller, "GET", "/api/v1/admin/services") is None
    for method, path in (("PUT", "/api/v1/admin/services/{service_id}"), ("GET", "/api/v1/admin/unlisted")):
        refusal = refuse_admin_call(caller, method, path)
        assert refusal is not None
        assert refusal.status == 403
