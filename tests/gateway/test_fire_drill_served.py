"""A fire drill, which makes a provider appear to fail, over real sockets with two workers.

During the drill the provider is not called, and the drill always ends.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.callers import CUT, ask, chat, send
from tests.gateway.serving import Server, manage, manage_all, served, server_environment
from tests.gateway.test_limits_served import workers
from tests.processes import wait_until

CALLS = 20
TOKEN = (
    "from django.contrib.auth.models import User; from routing_admin.console.people.actions import issue_token; "
    "from capabilities.actors import SYSTEM; "
    "print(issue_token(SYSTEM, User.objects.get(username='admin'), 'ci', ['providers:write'])[0])"
)
SOON = (
    "from datetime import timedelta; from django.db.models import F; from django.utils import timezone; "
    "from routing_admin.models import FireDrill, Installation; "
    "FireDrill.objects.update(ends_at=timezone.now() + timedelta(seconds=1)); "
    "Installation.objects.update(version=F('version') + 1)"
)
"""Code that makes the running drill end in one second."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("drill"), options=("--workers", "2")) as server:
        yield server


@pytest.fixture(scope="module")
def script(server: Server) -> Server:
    return replace(server, key=shell(server, TOKEN))


def shell(server: Server, code: str) -> str:
    return manage(server_environment(server.directory, server.lab), "shell", "-v", "0", "-c", code)


def providers_reached(server: Server) -> list[str]:
    """Return the providers that answered twenty calls to the fallback chain, each call over its own connection."""
    server.lab.requests.clear()
    answers = [chat(server, "", "task:chain") for _ in range(CALLS)]
    assert {answer.status for answer in answers} == {200}
    return sorted({received.name for received in server.lab.requests})


def logged(server: Server, query: str, database: str = "logs") -> list[Any]:
    with closing(sqlite3.connect(server.directory / f"{database}.sqlite3", timeout=30)) as rows:
        return rows.execute(query).fetchall()


def drill_ends(provider: str, server: Server) -> list[Any]:
    """Return the audit events that record the end of each of a provider's drills."""
    query = f"SELECT * FROM routing_admin_auditevent WHERE action = 'provider.drill_end' AND object_name = '{provider}'"
    return logged(server, query, "routing_admin")


def test_provider_is_not_called_until_the_drill_expires(server: Server, script: Server) -> None:
    """A drill applies in both workers, and in workers that replace killed ones.

    When the drill expires, the provider is called again immediately.
    """
    assert providers_reached(server) == ["one"]
    begun = ask(script, "POST", "/api/v1/admin/providers/one/drill", {"seconds": 300})
    assert (begun.status, begun.json["drill"]["seconds"]) == (201, 300)
    second = ask(script, "POST", "/api/v1/admin/providers/two/drill", {})
    assert (second.status, second.json["error"]) == (409, "drill_refused")
    assert "is running a fire drill of one until" in second.json["message"]
    wait_until(lambda: providers_reached(server) == ["two"])
    assert providers_reached(server) == ["two"]

    for worker in workers(server):
        os.kill(worker, signal.SIGKILL)

    def answers() -> bool:
        with suppress(*CUT):
            return chat(server, "", "two/lab").status == 200
        return False

    wait_until(answers)
    assert providers_reached(server) == ["two"]
    shell(server, SOON)
    wait_until(lambda: providers_reached(server) == ["one"])
    metrics = send(server, "GET", "/metrics").body.decode()
    assert "routing_admin_cooling_seconds{" not in metrics
    wait_until(lambda: drill_ends("one", server))
    (count,) = logged(server, "SELECT COUNT(*) FROM routing_admin_attemptlog WHERE outcome = 'fire_drill'")[0]
    assert count >= CALLS
    env = server_environment(server.directory, server.lab)
    audit, configuration = manage_all(env, ("audit_export",), ("export_config", "llm-routing"))
    assert audit.count("provider.drill_end") == len(drill_ends("one", server)) == 1
    assert "drill" not in configuration.lower()


def test_route_without_a_fallback_fails_until_a_script_ends_the_drill(server: Server, script: Server) -> None:
    """During a drill, a call to a route without another candidate gets a 502 whose attempt names the drill.

    Ending the drill twice is not an error, and the provider is called again.
    """
    assert ask(script, "POST", "/api/v1/admin/providers/three/drill", {}).status == 201

    def refused() -> Any:
        answer = chat(server, "", "three/lab")
        return answer if answer.status == 502 else None

    answer = wait_until(refused)
    (attempt,) = answer.json["error"]["attempts"]
    assert attempt["outcome"] == "fire_drill"
    assert "Fire drill by admin" in attempt["error"]
    assert answer.headers["x-routing-attempts"] == "1"
    for _ in range(2):
        assert ask(script, "DELETE", "/api/v1/admin/providers/three/drill").status == 204
    wait_until(lambda: chat(server, "", "three/lab").status == 200)


def test_drill_that_expired_while_the_server_was_stopped_is_audited_once(server: Server) -> None:
    """If a drill expires while no process is running, it has ended at the next start."""
    past = "from django.utils import timezone; from datetime import timedelta; now = timezone.now(); "
    past += "from routing_admin.models import FireDrill; from django.db.models import F; "
    past += "from routing_admin.models import Installation; "
    past += "FireDrill.objects.create(provider='by-gemini', actor='Ada', started_at=now - timedelta(seconds=60), "
    past += "ends_at=now - timedelta(seconds=5)); Installation.objects.update(version=F('version') + 1)"
    shell(server, past)
    assert providers_reached(server) == ["one"]
    assert len(wait_until(lambda: drill_ends("by-gemini", server))) == 1
