"""Concurrent writes: a write is rejected if another writer has just made one of its preconditions false.

The other writer, called the rival, changes the entry when the first writer begins its transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections

from capabilities.actors import SYSTEM
from capabilities.models import Agent, AgentKey, Provider, Service
from routing_admin.configuration.integrity import configuration
from routing_admin.console.providers.actions import enable_providers, save_provider
from routing_admin.console.routes.actions import save_alias
from routing_admin.console.services.actions import delete_service
from tests.api.test_administration import Script
from tests.cast import HTMX, create_token, load_demo, open_browser, person

pytestmark = pytest.mark.django_db(databases=["default", "logs"], transaction=True)
# Entries that both writers change, each with the rival's change.
ENTRIES = {
    "/routes/planning": {"temperature": 0.3},
    "/providers/echo": {"displayName": "Echoes"},
    "/services/text-model": {"capabilities": {"input": ["text", "vision"], "output": ["text"]}},
    "/agents/text-agent": {"description": "changed"},
    "/aliases/gpt-4o": {"target": "task:planning"},
    "/languages/ja": {"directive": "日本語で。"},
}
READ_ONLY = {"version", "origin", "keys", "builtIn", "code"}


@pytest.fixture
def script() -> Script:
    load_demo()
    save_alias(SYSTEM, "gpt-4o", "task:default")
    new_script = Script(create_token(person("admin", is_staff=True)))
    assert new_script.call("PUT", "/languages/ja", {"directive": "日本語で答えてください。"}).status_code == 201
    return new_script


@contextmanager
def act_before_next_write(act: Callable[[], Any]) -> Iterator[None]:
    """Run `act` in another connection the next time that this thread begins to write."""
    waiting = [act]

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        # SQLite starts a write with BEGIN, PostgreSQL with the advisory lock.
        if waiting and ("BEGIN" in sql or "pg_advisory_xact_lock" in sql):
            run_in_thread(waiting.pop())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield
    assert not waiting


def run_in_thread(act: Callable[[], Any]) -> None:
    def run() -> None:
        act()
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def entry_at(script: Script, path: str) -> tuple[dict[str, Any], str]:
    response = script.call("GET", path)
    (entry,) = [value for value in response.json().values() if isinstance(value, dict)]
    return {name: value for name, value in entry.items() if name not in READ_ONLY}, response["etag"]


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("path", ENTRIES)
def test_write_with_an_outdated_etag_never_overwrites_a_concurrent_change(
    method: str, path: str, script: Script
) -> None:
    entry, tag = entry_at(script, path)
    second_script = Script(script.headers["authorization"].removeprefix("Bearer "))
    with act_before_next_write(lambda: second_script.call("PUT", path, entry | ENTRIES[path])):
        answer = script.call(method, path, entry if method == "PUT" else None, if_match=tag)
    assert (answer.status_code, answer.json()["error"]) == (409, "changed_meanwhile")
    stored, _tag = entry_at(script, path)
    assert stored | ENTRIES[path] == stored
    assert configuration() == []


@pytest.mark.parametrize("path", ["/routes/planning", "/aliases/gpt-4o", "/languages/ja", "/agents/lonely"])
def test_conditional_put_does_not_recreate_a_deleted_entry(path: str, script: Script) -> None:
    """Without If-Match, a PUT creates the deleted entry again."""
    script.call("PUT", "/agents/lonely", {"name": "Lonely"})
    Agent.objects.filter(task_type="planning").update(task_type="")
    entry, tag = entry_at(script, path)
    second_script = Script(script.headers["authorization"].removeprefix("Bearer "))
    with act_before_next_write(lambda: second_script.call("DELETE", path)):
        assert script.call("PUT", path, entry, if_match=tag).status_code == 409
    assert script.call("GET", path).status_code == 404
    assert script.call("PUT", path, entry).status_code == 201


def test_unconditional_put_creates_or_replaces_despite_a_concurrent_change(script: Script) -> None:
    path, agent = "/agents/text-agent", {"name": "Mine"}
    second_script = Script(script.headers["authorization"].removeprefix("Bearer "))
    with act_before_next_write(lambda: second_script.call("PUT", path, {"name": "Theirs"})):
        assert script.call("PUT", path, agent).status_code == 200
    with act_before_next_write(lambda: second_script.call("DELETE", path)):
        assert script.call("PUT", path, agent | {"name": "Again"}).status_code == 201
    assert Agent.objects.get(agent_id="text-agent").name == "Again"


def test_rotation_of_a_key_that_is_being_revoked_is_rejected(script: Script) -> None:
    """A key that is revoked because it has leaked must not get a successor."""
    key = script.call("POST", "/agents/text-agent/keys", {}).json()["issued"]["id"]
    before = AgentKey.objects.count()
    path = f"/agents/text-agent/keys/{key}"
    second_script = Script(script.headers["authorization"].removeprefix("Bearer "))
    with act_before_next_write(lambda: second_script.call("DELETE", path)):
        assert script.call("POST", f"{path}/rotate", {}).status_code == 409
    assert AgentKey.objects.count() == before


def test_key_for_an_agent_that_is_being_deleted_is_rejected(script: Script) -> None:
    second_script = Script(script.headers["authorization"].removeprefix("Bearer "))
    with act_before_next_write(lambda: second_script.call("DELETE", "/agents/text-agent")):
        assert script.call("POST", "/agents/text-agent/keys", {}).status_code == 409


def test_matrix_change_of_a_service_being_deleted_does_not_recreate_the_service(script: Script) -> None:
    service = Service.objects.create(
        service_id="gone", name="gone", provider=Provider.objects.get(name="echo"), model="x"
    )
    browser = open_browser(User.objects.get(username="admin"))
    address = f"/matrix/cell/{service.pk}/?side=input&name=vision"
    with act_before_next_write(lambda: delete_service(SYSTEM, Service.objects.get(pk=service.pk))):
        answer = browser.post(address, {"on": "on"}, headers=HTMX)
    assert (answer.status_code, answer.headers.get("HX-Refresh")) == (204, "true")
    assert not Service.objects.filter(service_id="gone").exists()
    assert "Someone else changed this" in browser.get("/matrix/").content.decode()


def test_bulk_change_during_a_concurrent_change_is_rejected(script: Script) -> None:
    """The concurrent change is saved after the form was opened and before it is submitted."""
    row = Provider.objects.get(name="echo")
    with act_before_next_write(lambda: script_rename("echo")):
        enable_providers(SYSTEM, [row], enabled=False)
    assert (Provider.objects.get(name="echo").version, row.version) == (3, 3)


def script_rename(name: str) -> None:
    row = Provider.objects.get(name=name)
    row.display_name = "Else"
    save_provider(SYSTEM, row)
