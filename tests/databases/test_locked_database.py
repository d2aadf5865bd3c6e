"""While the main database is locked, requests that write nothing are served, and the others soon get an error."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, ProgrammingError, connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from capabilities.access import Principal, authenticate, make_key
from capabilities.doubts import NotedRefusals, RefusedFile
from capabilities.last_use import EVERY, LastUses, last_uses
from capabilities.models import AgentKey, Drift
from routing_admin.configuration import snapshot
from routing_admin.configuration.stamped_cache import FRESH_SECONDS
from routing_admin.console.base.tags.moments import exact
from routing_admin.gateway import key_cache
from routing_admin.gateway.admission import open_endpoint
from routing_admin.platform.databases.lock_timeout import lock_timeout, queued_work
from routing_admin.platform.databases.unavailable import WAIT_SECONDS, is_unavailable
from routing_admin.platform.server.upkeep import Upkeep
from tests.cast import browser_of
from tests.engines.others import LOG, MAIN, locked, other_connection
from tests.gateway.plane import PNG_URL, image, post, said, without
from tests.gateway.serving import Server, environment_of, listening, served

rows = pytest.mark.django_db(databases=["default", "logs"], transaction=True)
LOCKS = ["IMMEDIATE", "EXCLUSIVE"]


def call(server: Server, body: object, path: str = "/v1/chat/completions") -> tuple[int, Any, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    told = json.loads(response.read())
    connection.close()
    return response.status, response.headers, told


def forget_uses(file: Path) -> None:
    """Reset the last use of all keys, and make the server read them again."""
    with other_connection(file) as other:
        other.execute("UPDATE capabilities_agentkey SET last_used_at = NULL")
        other.execute("UPDATE routing_admin_installation SET version = version + 1")


@pytest.mark.parametrize("how", LOCKS)
def test_a_locked_database_stops_no_call_that_stores_nothing(tmp_path: Path, how: str) -> None:
    """While the database is locked, known keys stay valid, although their last use cannot be written."""
    file = tmp_path / MAIN
    with served(tmp_path) as server:
        forget_uses(file)
        with locked(file, how):
            for _ in range(3):
                status, headers, _ = call(server, said("hello", model="one/lab"))
                assert (status, headers["x-routing-provider"]) == (200, "one")


def test_a_use_that_nobody_could_write_is_in_the_database_after_the_servers_end(tmp_path: Path) -> None:
    """A use noted during the lock is written afterwards, at the latest when the server ends."""
    file = tmp_path / MAIN
    with served(tmp_path) as server:
        forget_uses(file)
        looked_again = time.monotonic() + FRESH_SECONDS  # later calls have read the row without a use
        with locked(file, "IMMEDIATE"):
            began = 0.0
            while began <= looked_again:
                began = time.monotonic()
                assert call(server, said("hello", model="one/lab"))[0] == 200
        key = server.key.split("_")[1]
        with other_connection(file) as other:
            asked = f"SELECT last_used_at FROM capabilities_agentkey WHERE public_id = '{key}'"
            server.process.terminate()
            server.process.wait(timeout=40)
            used = other.execute(asked).fetchone()
    assert used != (None,)


def test_a_call_that_must_store_a_file_is_told_to_come_again(tmp_path: Path) -> None:
    """A call that has to store a file gets a 503 with Retry-After in OpenAI's shape, which is logged."""
    body = said(image(PNG_URL), model="one/lab")
    with served(tmp_path) as server:
        with locked(tmp_path / MAIN):
            status, headers, told = call(server, body)
        assert (status, told["error"]["code"], headers["x-should-retry"]) == (503, "unavailable", "true")
        assert int(headers["Retry-After"]) > 0
        assert "again in a few seconds" in told["error"]["message"]
        entry = server.timeline(headers["x-request-id"])
        assert (entry["outcome"], entry["status"]) == ("unavailable", 503)
        assert call(server, body)[0] == 200


def test_the_agents_api_says_the_same_in_its_own_shape(tmp_path: Path) -> None:
    """The agents' API answers a 503 with Retry-After while the database is locked."""
    words = {"text": "a few words", "filename": "notes.txt"}
    with served(tmp_path) as server:
        with locked(tmp_path / MAIN):
            status, headers, told = call(server, words, "/api/v1/artifacts")
        assert (status, told["error"]) == (503, "unavailable")
        assert "again in a few seconds" in told["message"]
        assert int(headers["Retry-After"]) > 0
        assert "Traceback" not in server.log
        assert call(server, words, "/api/v1/artifacts")[0] == 201


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (OperationalError("database is locked"), True),
        (InterfaceError("connection already closed"), True),
        (DatabaseError("file is not a database"), True),
        (IntegrityError("UNIQUE constraint failed"), False),
        (ProgrammingError("Incorrect number of bindings"), False),
        (ValueError("no error of a database"), False),
    ],
)
def test_a_fault_of_ours_is_no_database_that_is_away(error: Exception, away: bool) -> None:
    """Only an unavailable database becomes a 503; a violated constraint or invalid SQL stays a 500."""
    assert is_unavailable(error) is away


ASKED = "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'"


def waiting() -> float:
    """Return the lock timeout that the database has now, in seconds."""
    asked = "PRAGMA busy_timeout" if connection.vendor == "sqlite" else ASKED
    with connection.cursor() as cursor:
        cursor.execute(asked)
        return float(cursor.fetchone()[0]) / 1000


@rows
def test_the_data_plane_waits_a_second_where_pages_wait_longer() -> None:
    """The API waits for a lock only one second; the usual timeout applies again after the call."""
    usual = waiting()

    @open_endpoint("GET")
    def view(request: Any) -> HttpResponse:
        connection.close()
        return HttpResponse(str(waiting()))

    assert float(view(RequestFactory().get("/v1/files")).content) == WAIT_SECONDS == 1
    assert waiting() == usual > WAIT_SECONDS


@rows
def test_who_stood_in_line_behind_a_vain_wait_waits_the_less() -> None:
    """Calls that share a thread do not add up their waits for the lock."""

    def in_vain() -> None:
        raise OperationalError("database is locked")

    with lock_timeout(WAIT_SECONDS):
        first, next_one, behind = (queued_work(each) for each in (waiting, in_vain, waiting))
    assert first() == WAIT_SECONDS
    with pytest.raises(OperationalError):
        next_one()
    assert behind() < WAIT_SECONDS
    assert queued_work(waiting)() == waiting()


@rows
@pytest.mark.sqlite
def test_a_statement_that_fails_is_let_go_at_once() -> None:
    """A failed statement is closed at once, or another thread could collect it as garbage and wait for the lock."""
    with lock_timeout(0), locked(), connection.cursor() as cursor:
        with pytest.raises(OperationalError):
            cursor.execute("BEGIN IMMEDIATE")
        with pytest.raises(ProgrammingError, match="closed cursor"):
            cursor.fetchone()


def browser_in(language: str, account: Any) -> Client:
    return browser_of(account, raise_request_exception=False, headers={"accept-language": language})


@rows
def test_a_page_that_must_write_to_a_locked_database_says_so(key: str, admin_account: Any) -> None:
    """A page that has to write answers 503 with Retry-After, and nothing is changed."""
    client, before = browser_in("en", admin_account), snapshot.build().configuration
    with lock_timeout(0), locked():
        told = client.post(reverse("demo_remove"))
    assert (told.status_code, told.headers["Retry-After"]) == (503, "2")
    assert "The database is not responding" in told.content.decode()
    assert snapshot.build().configuration == before


@rows
@pytest.mark.parametrize(("language", "words"), [("en", "for up to 15 minutes"), ("zh-hans", "最长 15 分钟")])
def test_a_database_that_nobody_can_read_is_told_on_every_page(
    key: str, language: str, words: str, admin_account: Any
) -> None:
    """Every page is a 503 that says since when the database is unavailable and that known keys still work."""
    client, entered = browser_in(language, admin_account), {"authorization": f"Bearer {key}"}
    assert client.get(reverse("dashboard")).status_code == 200
    assert isinstance(key_cache.principal_of_key(entered), Principal)
    with lock_timeout(0.2), without("routing_admin_installation", "capabilities_agentkey", "django_session"):
        told = client.get(reverse("dashboard"))
        since = snapshot.unread_since()
        assert since is not None
        assert (told.status_code, words in told.content.decode()) == (503, True)
        assert exact(since) in told.content.decode()
        assert isinstance(key_cache.principal_of_key(entered), Principal)
        assert post(key, said("hello")).status_code == 200
        assert post(f"{make_key()[0]}", said("hello")).status_code == 503
    assert client.get(reverse("dashboard")).status_code == 200


@rows
def test_the_last_use_of_a_key_is_written_behind_the_call_at_most_once_a_minute(key: str) -> None:
    """The last use of a key is noted by the call and written by upkeep, at most once a minute."""
    row = AgentKey.objects.get(public_id=key.split("_")[1])
    assert isinstance(authenticate({"x-api-key": key}), Principal)
    row.refresh_from_db()
    assert row.last_used_at is None
    assert last_uses().latest(row) is not None
    Upkeep().round()
    row.refresh_from_db()
    assert row.last_used_at is not None
    uses = LastUses()
    uses.note(row, row.last_used_at + EVERY)
    assert uses.list_noted() == []
    uses.note(row, row.last_used_at + 2 * EVERY)
    assert uses.list_noted() == [row.public_id]


@rows
def test_a_use_that_cannot_be_written_stays_noted(key: str) -> None:
    """A noted use is kept until it can be written; pages show it before."""
    row, uses = AgentKey.objects.get(public_id=key.split("_")[1]), LastUses()
    uses.note(row, now := timezone.now())
    with lock_timeout(0), locked():
        assert not uses.write()
    assert uses.latest(row) == now
    assert uses.write()
    assert uses.list_noted() == []
    row.refresh_from_db()
    assert row.last_used_at == now


def ask(server: Server, path: str) -> tuple[int, Any, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", path, headers={"authorization": f"Bearer {server.key}"})
    response = connection.getresponse()
    told = json.loads(response.read())
    connection.close()
    return response.status, response.headers, told


def test_while_the_log_is_locked_calls_go_on_and_their_entries_wait_on_disk(tmp_path: Path) -> None:
    """While the log is locked, entries are spooled; they are complete after the lock and a restart."""
    with served(tmp_path) as server:
        with locked(tmp_path / LOG, "IMMEDIATE"):
            ids = []
            for _ in range(5):
                status, headers, _body = call(server, said("hello"))
                assert status == 200
                ids.append(headers["x-request-id"])
            status, headers, told = ask(server, f"/api/v1/requests/{ids[0]}")
            assert (status, told["error"], headers["Retry-After"]) == (503, "unavailable", "2")
            (waiting,) = (tmp_path / "spool").glob("*.jsonl")
            assert waiting.read_bytes().count(b"\n") == 5
            server.process.kill()
            server.process.wait()
        again = listening(environment_of(tmp_path, server.lab), server.key, server.lab, tmp_path)
        try:
            found = [ask(again, f"/api/v1/requests/{each}") for each in ids]
            until = time.monotonic() + 20
            while any(status == 503 for status, _, _ in found) and time.monotonic() < until:
                found = [ask(again, f"/api/v1/requests/{each}") for each in ids]
        finally:
            again.process.terminate()
            again.process.wait(timeout=40)
    assert [status for status, _, _ in found] == [200] * 5


@rows
def test_a_refused_file_is_written_by_the_upkeep_once_the_database_takes_it(key: str) -> None:
    """A refusal is written when the database is no longer locked, for declared capabilities only."""
    refused = RefusedFile("echo", "echo-vision", frozenset({"vision", "audio"}), "r1", 400, timezone.now())
    refusals = NotedRefusals()
    refusals.note(refused)
    with lock_timeout(0), locked():
        assert not refusals.write()
    Upkeep(refusals=refusals).round()
    found = Drift.objects.get()
    assert (found.model, found.capability, found.request) == ("echo-vision", "vision", "r1")
