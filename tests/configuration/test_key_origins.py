"""A key from a variable is sent only to the origin it was first used with, unless an administrator allows another."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client

from capabilities.acts import SYSTEM, Actor
from capabilities.core.permissions import SCOPES
from capabilities.models import Provider, VariableOrigin
from routing_admin.configuration import snapshot
from routing_admin.configuration.keys import KeyFrom
from routing_admin.console.history.actions import restore, undo
from routing_admin.console.providers.actions import KeyAct, KeyChange, add_provider_key, delete_provider, save_provider
from routing_admin.models import AuditEvent
from tests.cast import browser_of, key_of, person, token_of
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
SECRET = "sk-canary-of-the-environment-93b1"
VARIABLE, REFERENCE = "LLM_PROVIDER_KEYED_API_KEY", "${LLM_PROVIDER_KEYED_API_KEY}"
VENDOR, HOSTILE = "https://api.openai.com/v1", "https://evil.example/v1"
ADA = Actor("person", "ada")


@pytest.fixture(autouse=True)
def installed(demo: None, monkeypatch: pytest.MonkeyPatch) -> None:
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


def by_token(method: str, path: str, body: Any, scope: str) -> Any:
    owner = User.objects.filter(username="root").first() or person("root", is_staff=True)
    token = token_of(owner, scope, name=f"{scope} {AuditEvent.objects.count()}")
    client = Client(headers={"authorization": f"Bearer {token}"})
    return client.generic(method, f"/api/v1/admin{path}", json.dumps(body).encode(), "application/json")


def by_agent(body: Any) -> Any:
    client = Client(headers={"authorization": f"Bearer {key_of('text-agent', scopes=SCOPES)}"})
    return client.post("/api/v1/config/import", json.dumps(body).encode(), "application/json")


def file_with(name: str, **fields: str) -> Any:
    provider = {"providerName": name, "apiKey": REFERENCE, "endpoint": HOSTILE, "defaultModel": "m", **fields}
    return {"providers": [provider], "routing": {"default": {"provider": "echo"}}}


def test_a_token_that_changes_the_address_does_not_take_the_key_along() -> None:
    """If a token changes the endpoint, the key is withheld until the endpoint has the old origin again."""
    body = {"endpoint": HOSTILE, "defaultModel": "gpt-4o"}
    assert by_token("PUT", "/providers/keyed", body, "providers:write").status_code == 200
    assert usable_key("keyed") is None
    reason = str(snapshot.current().keys["keyed"].reason)
    assert "https://api.openai.com:443" in reason
    assert "https://evil.example:443" in reason
    assert "An administrator can allow" in reason
    by_token("PUT", "/providers/keyed", {**body, "endpoint": f"{VENDOR}/elsewhere"}, "providers:write")
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
def test_imported_provider_at_another_host_gets_no_foreign_key(name: str, fields: dict[str, str]) -> None:
    """No imported provider with another host gets the key, whether by its name, `envName` or a reference."""
    assert by_agent(file_with(name, **fields)).status_code == 200
    assert usable_key(name) is None
    answer = by_token("POST", "/config/import", file_with(name, **fields, displayName="again"), "config:write")
    assert answer.status_code == 200
    assert usable_key(name) is None


def test_the_name_of_a_deleted_provider_does_not_bring_its_key_to_another_host() -> None:
    """A variable remains bound to its origin after its provider is deleted."""
    delete_provider(ADA, Provider.objects.get(name="keyed"))
    by_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    assert usable_key("keyed") is None


def test_a_further_key_is_bound_like_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{VARIABLE}_2", SECRET)
    row = Provider.objects.get(name="keyed")
    add_provider_key(ADA, row, "second", KeyChange(KeyAct.ENVIRONMENT))
    assert [key.state.value for key in snapshot.current().provider_keys["keyed"].every] == [SECRET, SECRET]
    row.endpoint = HOSTILE
    save_provider(Actor("token", "root's token"), row)
    assert [key.state.value for key in snapshot.current().provider_keys["keyed"].every] == [None, None]


def test_an_administrators_edit_waits_for_the_button_too() -> None:
    """Saving the form does not allow a new origin, since the form may contain another user's text."""
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


def test_one_button_allows_the_new_address_and_the_audit_says_so(admin_account: User) -> None:
    """Allowing the origin is audited and stored. A later undo needs no further approval."""
    by_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    admin = browser_of(admin_account)
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


def test_only_an_administrator_on_the_page_allows_an_origin(viewer_account: User) -> None:
    """Only administrators can allow an origin. Editors and viewers see why the key is withheld."""
    by_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    for account in (person("eve", is_editor=True), viewer_account):
        page = Page(browser_of(account).get("/providers/keyed/"))
        assert page.shows("is sent to https://api.openai.com:443 only")
        assert not page.shows("Send this variable")
        assert allow(browser_of(account)).status_code == 403
    assert usable_key("keyed") is None


@pytest.mark.parametrize(
    "fields", [{"origin": "https://worse.example:443"}, {"variable": "LLM_PROVIDER_SPARE_API_KEY"}, {"origin": ""}]
)
def test_only_what_the_page_showed_is_allowed(admin_account: User, fields: dict[str, str]) -> None:
    """An approval applies only to the origin and variable that the page showed."""
    by_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    before = VariableOrigin.objects.count()
    assert allow(browser_of(admin_account), **fields).status_code == 302
    assert (usable_key("keyed"), VariableOrigin.objects.count()) == (None, before)


def test_undo_restore_and_import_respect_the_binding() -> None:
    """After a revision is restored, the key is used only if the provider's origin is allowed."""
    first = snapshot.current().revision
    by_token("PUT", "/providers/keyed", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    second = snapshot.current().revision
    assert first
    assert second
    restore(ADA, first)
    assert usable_key("keyed") == SECRET
    restore(ADA, second)
    assert usable_key("keyed") is None


def test_what_a_script_makes_before_the_variable_is_set_works_once_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider created before its variable was set can use the key, since there was no key to protect."""
    by_token("PUT", "/providers/later", {"endpoint": HOSTILE, "defaultModel": "m"}, "providers:write")
    monkeypatch.setenv("LLM_PROVIDER_LATER_API_KEY", SECRET)
    snapshot.refresh()
    assert usable_key("later") == SECRET


def test_existing_installation_keeps_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The migration binds all variables, including those of additional keys, to their providers' current origins."""
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
