"""A provider key in an environment variable is sent only to the origin (scheme, host, port) of its first use.

An administrator can allow other origins.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client

from capabilities.actors import SYSTEM, Actor
from capabilities.core.permissions import SCOPES
from capabilities.models import Provider, VariableOrigin
from routing_admin.configuration import snapshot
from routing_admin.configuration.keys import KeyFrom
from routing_admin.console.history.actions import restore, undo
from routing_admin.console.providers.actions import KeyAct, KeyChange, add_provider_key, delete_provider, save_provider
from routing_admin.models import AuditEvent
from tests.cast import create_key, create_token, open_browser, person
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
SECRET = "sk-canary-of-the-environment-93b1"
VARIABLE, REFERENCE = "LLM_PROVIDER_KEYED_API_KEY", "${LLM_PROVIDER_KEYED_API_KEY}"
VENDOR, HOSTILE = "https://api.openai.com/v1", "https://evil.example/v1"
ADA = Actor("person", "ada")


@pytest.fixture(autouse=True)
def keyed_provider(demo: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a provider whose key is in a variable, and set another variable to a key that no provider uses."""
    monkeypatch.setenv(VARIABLE, SECRET)
    monkeypatch.setenv("LLM_PROVIDER_SPARE_API_KEY", SECRET)
    row = Provider(name="keyed", endpoint=VENDOR, default_model="gpt-4o")
    save_provider(ADA, row, key=KeyChange(KeyAct.ENVIRONMENT))
    assert usable_key("keyed") == SECRET


def usable_key(name: str) -> str | None:
    """Return the provider's key, or None if it is not usable."""
    state = snapshot.current().keys[name]
    assert state.usable == bool(state.value), state
    return state.value


def call_with_token(method: str, path: str, body: Any, scope: str) -> Any:
    owner = User.objects.filter(username="root").first() or person("root", is_staff=True)
    token = create_token(owner, scope, name=f"{scope} {AuditEvent.objects.count()}")
    client = Client(headers={"authorization": f"Bearer {token}"})
    return client.generic(method, f"/api/v1/admin{path}", json.dumps(body).encode(), "application/json")


def import_as_agent(body: Any) -> Any:
    client = Client(headers={"authorization": f"Bearer {create_key('text-agent', scopes=SCOPES)}"})
    return client.post("/api/v1/config/import", json.dumps(body).encode(), "application/json")


def routing_file(name: str, **fields: str) -> Any:
    provider = {"providerName": name, "apiKey": REFERENCE, "endpoint": HOSTILE, "defaultModel": "m", **fields}
    return {"providers": [provider], "routing": {"default": {"provider": "echo"}}}


def test_token_that_changes_the_endpoint_cannot_redirect_the_key() -> None:
    body = {"endpoint": HOSTILE, "defaultModel": "gpt-4o"}
    assert call_with_token("PUT", "/providers/keyed", body, "providers:write").status_code == 200
    assert usable_key("keyed") is None
    reason = str(snapshot.current().keys["keyed"].reason)
    assert "https://api.openai.com:443" in reason
    assert "https://evil.example:443" in reason
    assert "An administrator can allow" in reason
    call_with_token("PUT", "/providers/keyed", {**body, "endpoint": f"{VENDOR}/elsewhere"}, "providers:write")
    assert usable_key("keyed") == SECRET


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("keyed", {}),
        ("other", {}),
        ("other", {"envName": "KEYED"}),
        ("other", {"envName": VARIABLE}),
        ("spare", {"apiKey": "${LLM_PROVIDER_SPARE_API_KEY}"}),
        ("other", {"apiKey": "${LLM_PROVIDER_SPARE_API_KEY}"}),
    ],
)
def test_imported_provider_with_another_host_gets_no_existing_key(name: str, fields: dict[str, str]) -> None:
    assert import_as_agent(routing_file(name, **fields)).status_code == 200
    assert usable_key(name) is None
    answer = call_with_token(
        "POST", "/config/import", routing_file(name, **fields, displayName="again"), "config:write"
    )
    assert answer.status_code == 200
    assert usable_key(name) is None


def test_variable_stays_bound_to_its_origin_after_its_provider_is_deleted() -> None:
    delete_provider(ADA, Provider.objects.get(name="keyed"))
    call_with_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    assert usable_key("keyed") is None


def test_additional_key_is_bound_to_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{VARIABLE}_2", SECRET)
    row = Provider.objects.get(name="keyed")
    add_provider_key(ADA, row, "second", KeyChange(KeyAct.ENVIRONMENT))
    assert [key.state.value for key in snapshot.current().provider_keys["keyed"].every] == [SECRET, SECRET]
    row.endpoint = HOSTILE
    save_provider(Actor("token", "root's token"), row)
    assert [key.state.value for key in snapshot.current().provider_keys["keyed"].every] == [None, None]


def test_provider_form_does_not_approve_a_new_origin() -> None:
    """The new origin may have been entered by another user, so it must be allowed with a separate button."""
    row = Provider.objects.get(name="keyed")
    row.endpoint = HOSTILE
    save_provider(ADA, row)
    assert usable_key("keyed") is None
    row.endpoint = "https://API.openai.com:443/v2"
    save_provider(ADA, row)
    assert usable_key("keyed") == SECRET


def allow(client: Client, **fields: str) -> Any:
    body = {"variable": VARIABLE, "origin": "https://evil.example:443", **fields}
    return client.post("/providers/keyed/keys/allow/", body)


def test_allowed_origin_is_audited_and_survives_undo(admin_account: User) -> None:
    call_with_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    admin = open_browser(admin_account)
    assert Page(admin.get("/providers/keyed/")).button("Send this variable's key to https://evil.example:443")
    stamp = snapshot.stamp()
    assert allow(admin).status_code == 302
    assert snapshot.stamp() > stamp
    assert usable_key("keyed") == SECRET
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.object_name, event.actor) == ("provider.key_origin", "keyed", "admin")
    assert event.details == {"variable": VARIABLE, "origin": "https://evil.example:443"}
    assert not Page(admin.get("/providers/keyed/")).shows("Send this variable")
    snapshot.refresh()
    assert usable_key("keyed") == SECRET
    undo(ADA, snapshot.current().revision or 0)
    assert usable_key("keyed") == SECRET


def test_only_administrators_can_allow_an_origin(viewer_account: User) -> None:
    call_with_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    for account in (person("eve", is_editor=True), viewer_account):
        page = Page(open_browser(account).get("/providers/keyed/"))
        assert page.shows("is sent to https://api.openai.com:443 only")
        assert not page.shows("Send this variable")
        assert allow(open_browser(account)).status_code == 403
    assert usable_key("keyed") is None


@pytest.mark.parametrize(
    "fields", [{"origin": "https://worse.example:443"}, {"variable": "LLM_PROVIDER_SPARE_API_KEY"}, {"origin": ""}]
)
def test_approval_applies_only_to_the_displayed_origin_and_variable(
    admin_account: User, fields: dict[str, str]
) -> None:
    call_with_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    before = VariableOrigin.objects.count()
    assert allow(open_browser(admin_account), **fields).status_code == 302
    assert (usable_key("keyed"), VariableOrigin.objects.count()) == (None, before)


def test_restored_revision_uses_the_key_only_for_an_allowed_origin() -> None:
    first = snapshot.current().revision
    call_with_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    second = snapshot.current().revision
    assert first
    assert second
    restore(ADA, first)
    assert usable_key("keyed") == SECRET
    restore(ADA, second)
    assert usable_key("keyed") is None


def test_provider_created_before_its_variable_can_use_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the variable was set, there was no key to protect."""
    call_with_token("PUT", "/providers/later", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    monkeypatch.setenv("LLM_PROVIDER_LATER_API_KEY", SECRET)
    snapshot.refresh()
    assert usable_key("later") == SECRET


def test_migration_binds_all_variables_to_their_current_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{VARIABLE}_2", SECRET)
    row = Provider.objects.get(name="keyed")
    add_provider_key(ADA, row, "second", KeyChange(KeyAct.ENVIRONMENT))
    twin = Provider(name="twin", endpoint=HOSTILE, default_model="m")
    save_provider(SYSTEM, twin, key=KeyChange(KeyAct.ENVIRONMENT, REFERENCE))
    VariableOrigin.objects.all().delete()
    assert snapshot.refresh().keys["keyed"].source is KeyFrom.MISSING
    import_module("capabilities.migrations.0013_variable_origins").bind_present_uses(apps, None)
    keys = snapshot.refresh().provider_keys
    assert [key.state.value for key in (*keys["keyed"].every, *keys["twin"].every)] == [SECRET] * 3
