"""While the log's database is locked entries wait on disk; none is lost, and nobody waits for them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.db import connections
from django.utils import timezone

from capabilities.core.translatable import translatable
from routing_admin.core.fallback.chain import Attempt, Try
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.server.file_locks import hold_unless_locked
from routing_admin.platform.server.metrics import OTHER, request_metrics
from routing_admin.request_log import entries
from routing_admin.request_log.call_outcomes import call_outcomes
from routing_admin.request_log.entries import Entry, RequestFacts, entry_of
from routing_admin.request_log.insertion import rows_of
from routing_admin.request_log.journal import AGAIN_SECONDS, BATCH, Journal
from routing_admin.request_log.spool import Spool
from routing_admin.request_log.tracing import tracing
from tests.engines import others
from tests.engines.journals import catch_up, spooling_journal

pytestmark = pytest.mark.django_db(databases=["default", "logs"], transaction=True)


def entry(name: str, **facts: Any) -> Entry:
    attempt = Attempt("one", "m", "http_503", 503, translatable("down"), tries=(Try(0.0, 1.0, "http_503", 503),))
    return entry_of(RequestFacts(name, timezone.now(), "v1", **facts), (attempt,))


def locked() -> AbstractContextManager[None]:
    """The log's database, locked by somebody else who writes."""
    return others.locked("logs", "IMMEDIATE")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with spooling_journal(tmp_path) as made:
        yield made


def ids() -> set[str]:
    return set(RequestLog.objects.values_list("pk", flat=True))


def test_entries_of_a_locked_log_wait_on_disk_and_are_written_afterwards(journal: Journal) -> None:
    """In the order in which they came, with their attempts and their words as they would have been."""
    journal.record(entry("before"))
    journal.flush()
    with locked():
        for number in range(3 * BATCH):
            journal.record(entry(f"meanwhile {number}", error=translatable("no %(what)s", what="key"), agent="ada"))
        journal.flush()
        assert (len(journal.waiting), journal.spool.waiting()) == (0, 3 * BATCH)
        assert journal.behind_since is not None
    journal.record(entry("after"))
    catch_up(journal)
    assert ids() == {"before", "after", *(f"meanwhile {number}" for number in range(3 * BATCH))}
    straight, waited = RequestLog.objects.get(pk="before"), RequestLog.objects.get(pk="meanwhile 7")
    assert (waited.agent, waited.sentence) == ("ada", {"code": "no %(what)s", "facts": {"what": "key"}})
    shown = [list(row.attempts.values("provider", "sentence", "tries", "status")) for row in (straight, waited)]
    assert shown[0] == shown[1]
    assert AttemptLog.objects.count() == 3 * BATCH + 2
    assert (journal.lost, journal.spool.waiting()) == (0, 0)


def test_whoever_flushes_waits_once_for_the_lock(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each batch: what follows goes to disk at once, and so does what comes meanwhile."""
    monkeypatch.setattr("routing_admin.request_log.journal.AGAIN_SECONDS", 3600.0)
    asked: list[str] = []

    def note(execute: Any, sql: str, *more: Any) -> Any:
        asked.append(sql)
        return execute(sql, *more)

    with locked(), connections["logs"].execute_wrapper(note):
        for _ in range(2):
            for number in range(5 * BATCH):
                journal.record(entry(f"n{number}"))
            journal.flush()
    tries = [sql for sql in asked if "BEGIN" in sql or sql.startswith("INSERT")]
    assert len(tries) == 1
    assert journal.spool.waiting() == 10 * BATCH


def test_what_a_dead_process_left_is_written_by_the_next(journal: Journal) -> None:
    """Killed in the middle: its file is not held any more, and a line that was cut off is none."""
    Spool(journal.folder()).folder.mkdir(parents=True)
    left = journal.folder() / "1-dead.jsonl"
    theirs = Spool(journal.folder())
    theirs.append(rows_of([entry("left behind")]))
    (written,) = [path for path in journal.folder().iterdir() if path != left]
    left.write_bytes(written.read_bytes() + b'[{"id": "cut')
    theirs.close()
    written.unlink()
    journal.start()
    journal.stop()
    assert ids() == {"left behind"}
    assert not list(journal.folder().glob("*.jsonl"))


def test_what_was_written_just_before_a_crash_is_not_written_twice(journal: Journal) -> None:
    """The file outlived the writing of its rows: they are there already, another request of that id is not."""
    one = rows_of([entry("same"), entry("other")])
    for _ in range(2):
        journal.spool.append(one)
        journal.behind_since = timezone.now()
        catch_up(journal)
    assert RequestLog.objects.count() == 2
    journal.spool.append(rows_of([entry("same")]))
    journal.behind_since = timezone.now()
    catch_up(journal)
    assert RequestLog.objects.count() == 3


def test_a_file_that_another_process_holds_is_left_to_it(journal: Journal) -> None:
    """It writes its own rows when it can."""
    program = (
        "import sys, fcntl, os\n"
        "file = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True); input()"
    )
    theirs = Spool(journal.folder())
    theirs.append(rows_of([entry("theirs")]))
    (path,) = journal.folder().iterdir()
    held = path.with_name("2-held.jsonl")
    held.write_bytes(path.read_bytes())
    path.unlink()
    with subprocess.Popen(
        [sys.executable, "-c", program, str(held)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        journal.behind_since = timezone.now()
        catch_up(journal)
        assert (ids(), held.exists()) == (set(), True)
        holder.communicate(b"\n")
    theirs.close()


def test_on_a_full_disk_entries_wait_in_memory(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is lost, no half line is left, and the server's log says so once, however often it is tried."""
    journal.spool.append(rows_of([entry("first")]))
    (path,) = journal.folder().iterdir()
    whole, usual = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    with locked():
        resource.setrlimit(resource.RLIMIT_FSIZE, (whole + 50, usual[1]))
        try:
            journal.record(entry("second"))
            for _ in range(3):
                journal.flush()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        assert ([each.facts.id for each in journal.waiting], path.stat().st_size) == (["second"], whole)
        assert (journal.disk_is_full, caplog.text.count("the disk does not take them")) == (True, 1)
    catch_up(journal)
    assert not journal.disk_is_full
    assert ids() == {"first", "second"}


def test_what_is_being_written_counts_as_waiting(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time that the database is away, a batch of 200 is on its way to a disk that does not take it."""
    counts = list[int]()
    monkeypatch.setattr(Spool, "append", lambda *_: counts.append(len(journal.waiting)))
    with locked():
        journal.record(entry("one"))
        journal.record(entry("two"))
        journal.flush()
    assert (counts, len(journal.waiting)) == ([2], 0)


def test_nothing_is_said_to_work_again_that_was_not_tried(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    """What another process left behind is written by one of those that look; the others learn nothing of the log."""
    journal.spool.append(rows_of([entry("left")]))
    other = Journal(folder=journal.folder, behind_since=timezone.now())
    with locked():
        journal.spool.close()
        other.flush()
        (path,) = journal.folder().iterdir()
        with hold_unless_locked(path):
            catch_up(other)
    assert "works again" not in caplog.text
    other.record(entry("next"))
    other.flush()
    assert caplog.text.count("works again after 1 failed") == 1


def test_a_log_that_takes_nothing_is_behind_since_the_first_entry(journal: Journal) -> None:
    """Though nothing waits on a disk that is full, too: memory is tried, and the moment stays what it was."""
    journal.folder().write_text("no folder can be made here")
    with locked():
        journal.record(entry("one"))
        journal.flush()
        since, until = journal.behind_since, time.monotonic() + 1.2 * AGAIN_SECONDS
        while time.monotonic() < until:
            journal.flush()
        assert (journal.behind_since, journal.disk_is_full, len(journal.waiting)) == (since, True, 1)
    catch_up(journal)
    assert ids() == {"one"}


def test_a_row_that_the_database_never_takes_holds_up_no_other(journal: Journal) -> None:
    """It is stored repaired, and counted."""
    journal.spool.append(rows_of([entry("good"), entry("bad", status=-1), entry("also good")]))
    journal.behind_since = timezone.now()
    catch_up(journal)
    assert (ids(), journal.lost, journal.repaired) == ({"good", "bad", "also good"}, 0, 1)


@pytest.mark.parametrize("disk_is_full", [False, True])
def test_requests_of_an_outage_reach_counts_alerts_traces_and_doubts_once(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, disk_is_full: bool
) -> None:
    """Those that waited on disk, and those that waited in memory until the database came back."""
    traced, doubted = list[str](), list[str]()
    monkeypatch.setattr(tracing(), "writer", SimpleNamespace(write=lambda each: traced.append(each.facts.id)))
    monkeypatch.setattr(entries, "find_refused_files", lambda each: doubted.append(each.facts.id) or ())
    call_outcomes().take()
    before = counted_requests()
    if disk_is_full:
        journal.folder().write_text("no folder can be made here")
    with locked():
        for number in range(BATCH + 3):
            journal.record(refused(f"meanwhile {number}", f"outage {disk_is_full}"))
        journal.flush()
    journal.record(refused("after", f"outage {disk_is_full}"))
    catch_up(journal)
    journal.flush()
    assert sorted(traced) == sorted(doubted) == sorted(ids())
    assert len(ids()) == BATCH + 4
    assert [sign.outcome for sign in call_outcomes().take()] == ["http_401"]
    assert counted_requests() - before == BATCH + 4


def counted_requests() -> float:
    """Requests of routes that are not configured, as the metrics count them."""
    labels = {"route": OTHER, "surface": "v1", "outcome": "ok", "ending": "answered"}
    family = next(each for each in request_metrics().families() if each.name == "routing_admin_requests")
    return float(family.values.get(tuple(labels[name] for name in family.labels), 0))


def refused(name: str, route: str) -> Entry:
    """A request with a file, and with a key that its provider refuses."""
    attempt = Attempt("one", "m", "http_401", 401, tries=(Try(0.0, 1.0, "http_401", 401),))
    made = entry_of(RequestFacts(name, timezone.now(), "v1", task_type=route), (attempt,))
    made.sent = {1: cast("Any", ("a file",))}
    return made


def test_the_files_are_their_owners_alone(journal: Journal) -> None:
    """They hold what the log holds."""
    journal.spool.append(rows_of([entry("one")]))
    (path,) = journal.folder().iterdir()
    assert (path.stat().st_mode & 0o777, os.stat(journal.folder()).st_mode & 0o777) == (0o600, 0o700)
