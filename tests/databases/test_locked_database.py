"""While a database is locked, calls that store nothing are served, and other calls fail after a short wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, ProgrammingError, connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from capabilities.access import Principal, authenticate, make_key
from capabilities.last_use import WRITE_INTERVAL, LastUses, last_uses
from capabilities.models import AgentKey, Drift
from capabilities.refused_files import RefusalBuffer, RefusedFile
from routing_admin.configuration import snapshot
from routing_admin.configuration.stamped_cache import FRESH_SECONDS
from routing_admin.console.base.tags.ui import exact
from routing_admin.gateway import key_cache
from routing_admin.gateway.admission import open_endpoint
from routing_admin.platform.databases.lock_timeout import lock_timeout, queued_work
from routing_admin.platform.databases.unavailable import WAIT_SECONDS, is_unavailable
from routing_admin.platform.server.upkeep import Upkeep
from tests.cast import open_browser
from tests.chaos.callers import ask, chat
from tests.engines.others import LOG, MAIN, locked, other_connection
from tests.gateway.plane import PNG_URL, chat_body, image, post, unreadable_tables
from tests.gateway.serving import Server, listening, served, server_environment
from tests.processes import wait_until

rows = pytest.mark.django_db(databases=["default", "logs"], transaction=True)
LOCKS = ["IMMEDIATE", "EXCLUSIVE"]


def clear_uses(file: Path) -> None:
    """Clear each key's time of last use, and make the server read the keys again."""
    with other_connection(file) as second_connection:
        second_connection.execute("UPDATE capabilities_agentkey SET last_used_at = NULL")
        second_connection.execute("UPDATE routing_admin_installation SET version = version + 1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("locked")) as started:
        yield started


@pytest.mark.parametrize("mode", LOCKS)
def test_calls_that_store_nothing_succeed_while_the_database_is_locked(server: Server, mode: str) -> None:
    """Known keys stay valid, although the time of their last use cannot be written."""
    file = server.directory / MAIN
    clear_uses(file)
    with locked(file, mode):
        for _ in range(3):
            reply = chat(server, "")
            assert (reply.status, reply.headers["x-routing-provider"]) == (200, "one")


def test_key_use_during_a_lock_is_written_at_shutdown_at_the_latest(tmp_path: Path) -> None:
    file = tmp_path / MAIN
    with served(tmp_path) as server:
        clear_uses(file)
        reread_at = time.monotonic() + FRESH_SECONDS  # After this, the server knows that no use is stored.
        with locked(file, "IMMEDIATE"):
            started = 0.0
            while started <= reread_at:
                started = time.monotonic()
                assert chat(server, "").status == 200
        key = server.key.split("_")[1]
        with other_connection(file) as second_connection:
            query = f"SELECT last_used_at FROM capabilities_agentkey WHERE public_id = '{key}'"
            server.process.terminate()
            server.process.wait(timeout=40)
            used = second_connection.execute(query).fetchone()
    assert used != (None,)


def test_call_that_must_store_a_file_returns_503_while_the_database_is_locked(server: Server) -> None:
    """The 503 has OpenAI's error format, and the call is logged."""
    body = chat_body(image(PNG_URL), model="one/lab")
    with locked(server.directory / MAIN):
        refused = ask(server, "POST", "/v1/chat/completions", body)
    error = refused.json["error"]
    assert (refused.status, error["code"], refused.headers["x-should-retry"]) == (503, "unavailable", "true")
    assert int(refused.headers["retry-after"]) > 0
    assert "again in a few seconds" in error["message"]
    entry = server.timeline(refused.headers["x-request-id"])
    assert (entry["outcome"], entry["status"]) == ("unavailable", 503)
    assert ask(server, "POST", "/v1/chat/completions", body).status == 200


def test_agents_api_returns_503_in_its_own_format_while_the_database_is_locked(server: Server) -> None:
    artifact = {"text": "a few words", "filename": "notes.txt"}
    with locked(server.directory / MAIN):
        refused = ask(server, "POST", "/api/v1/artifacts", artifact)
    assert (refused.status, refused.json["error"]) == (503, "unavailable")
    assert "again in a few seconds" in refused.json["message"]
    assert int(refused.headers["retry-after"]) > 0
    assert "Traceback" not in server.log
    assert ask(server, "POST", "/api/v1/artifacts", artifact).status == 201


@pytest.mark.parametrize(
    ("error", "unavailable"),
    [
        (OperationalError("database is locked"), True),
        (InterfaceError("connection already closed"), True),
        (DatabaseError("file is not a database"), True),
        (IntegrityError("UNIQUE constraint failed"), False),
        (ProgrammingError("Incorrect number of bindings"), False),
        (ValueError("no error of a database"), False),
    ],
)
def test_only_an_unavailable_database_causes_a_503(error: Exception, unavailable: bool) -> None:
    """A violated constraint or invalid SQL causes a 500 instead."""
    assert is_unavailable(error) is unavailable


LOCK_TIMEOUT_QUERY = "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'"


def current_lock_timeout() -> float:
    query = "PRAGMA busy_timeout" if connection.vendor == "sqlite" else LOCK_TIMEOUT_QUERY
    with connection.cursor() as cursor:
        cursor.execute(query)
        return float(cursor.fetchone()[0]) / 1000


@rows
def test_api_waits_one_second_for_a_lock_and_pages_wait_longer() -> None:
    """After the call, the usual timeout applies again."""
    usual = current_lock_timeout()

    @open_endpoint("GET")
    def view(request: Any) -> HttpResponse:
        connection.close()
        return HttpResponse(str(current_lock_timeout()))

    assert float(view(RequestFactory().get("/v1/files")).content) == WAIT_SECONDS == 1
    assert current_lock_timeout() == usual > WAIT_SECONDS


@rows
def test_lock_timeouts_of_calls_queued_in_one_thread_do_not_add_up() -> None:

    def fail() -> None:
        raise OperationalError("database is locked")

    with lock_timeout(WAIT_SECONDS):
        first, second, third = (queued_work(step) for step in (current_lock_timeout, fail, current_lock_timeout))
    assert first() == WAIT_SECONDS
    with pytest.raises(OperationalError):
        second()
    assert third() < WAIT_SECONDS
    assert queued_work(current_lock_timeout)() == current_lock_timeout()


@rows
@pytest.mark.sqlite
def test_failed_statement_is_closed_immediately() -> None:
    """Another thread might garbage-collect an open statement, and would then wait for the lock."""
    with lock_timeout(0), locked(), connection.cursor() as cursor:
        with pytest.raises(OperationalError):
            cursor.execute("BEGIN IMMEDIATE")
        with pytest.raises(ProgrammingError, match="closed cursor"):
            cursor.fetchone()


def open_browser_in(language: str, account: Any) -> Client:
    return open_browser(account, raise_request_exception=False, headers={"accept-language": language})


@rows
def test_page_that_must_write_to_a_locked_database_returns_503(key: str, admin_account: Any) -> None:
    client, before = open_browser_in("en", admin_account), snapshot.build().configuration
    with lock_timeout(0), locked():
        response = client.post(reverse("demo_remove"))
    assert (response.status_code, response.headers["Retry-After"]) == (503, "2")
    assert "The database is not responding" in response.content.decode()
    assert snapshot.build().configuration == before


@rows
@pytest.mark.parametrize(("language", "sentence"), [("en", "for up to 15 minutes"), ("zh-hans", "最长 15 分钟")])
def test_every_page_returns_503_if_the_database_is_unreadable(
    key: str, language: str, sentence: str, admin_account: Any
) -> None:
    """The page says since when the database is unavailable, and that known keys still work."""
    client, headers = open_browser_in(language, admin_account), {"authorization": f"Bearer {key}"}
    assert client.get(reverse("dashboard")).status_code == 200
    assert isinstance(key_cache.principal_by_key(headers), Principal)
    with lock_timeout(0.2), unreadable_tables("routing_admin_installation", "capabilities_agentkey", "django_session"):
        response = client.get(reverse("dashboard"))
        since = snapshot.unread_since()
        assert since is not None
        assert (response.status_code, sentence in response.content.decode()) == (503, True)
        assert exact(since) in response.content.decode()
        assert isinstance(key_cache.principal_by_key(headers), Principal)
        assert post(key, chat_body("hello")).status_code == 200
        assert post(f"{make_key()[0]}", chat_body("hello")).status_code == 503
    assert client.get(reverse("dashboard")).status_code == 200


@rows
def test_last_use_of_a_key_is_written_at_most_once_a_minute(key: str) -> None:
    row = AgentKey.objects.get(public_id=key.split("_")[1])
    assert isinstance(authenticate({"x-api-key": key}), Principal)
    row.refresh_from_db()
    assert row.last_used_at is None
    assert last_uses().latest(row) is not None
    Upkeep().round()
    row.refresh_from_db()
    assert row.last_used_at is not None
    uses = LastUses()
    uses.note(row, row.last_used_at + WRITE_INTERVAL)
    assert uses.list_noted() == []
    uses.note(row, row.last_used_at + 2 * WRITE_INTERVAL)
    assert uses.list_noted() == [row.public_id]


@rows
def test_unwritten_key_use_is_kept_and_shown(key: str) -> None:
    row, uses = AgentKey.objects.get(public_id=key.split("_")[1]), LastUses()
    uses.note(row, now := timezone.now())
    with lock_timeout(0), locked():
        assert not uses.write()
    assert uses.latest(row) == now
    assert uses.write()
    assert uses.list_noted() == []
    row.refresh_from_db()
    assert row.last_used_at == now


def test_log_entries_are_spooled_while_the_log_database_is_locked(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        with locked(tmp_path / LOG, "IMMEDIATE"):
            ids = []
            for _ in range(5):
                reply = chat(server, "", "task:planning")
                assert reply.status == 200
                ids.append(reply.headers["x-request-id"])
            reply = ask(server, "GET", f"/api/v1/requests/{ids[0]}")
            assert (reply.status, reply.json["error"], reply.headers["retry-after"]) == (503, "unavailable", "2")
            (spooled,) = (tmp_path / "spool").glob("*.jsonl")
            assert spooled.read_bytes().count(b"\n") == 5
            server.process.kill()
            server.process.wait()
        restarted = listening(server_environment(tmp_path, server.lab), server.key, server.lab, tmp_path)
        try:
            paths = [f"/api/v1/requests/{request_id}" for request_id in ids]
            wait_until(lambda: all(ask(restarted, "GET", path).status != 503 for path in paths))
            responses = [ask(restarted, "GET", path) for path in paths]
        finally:
            restarted.process.terminate()
            restarted.process.wait(timeout=40)
    assert [response.status for response in responses] == [200] * 5


@rows
def test_file_refusal_is_recorded_after_the_lock_ends(key: str) -> None:
    refused = RefusedFile("echo", "echo-vision", frozenset({"vision", "audio"}), "r1", 400, timezone.now())
    refusals = RefusalBuffer()
    refusals.note(refused)
    with lock_timeout(0), locked():
        assert not refusals.write()
    Upkeep(refusals=refusals).round()
    drift = Drift.objects.get()
    assert (drift.model, drift.capability, drift.request) == ("echo-vision", "vision", "r1")
