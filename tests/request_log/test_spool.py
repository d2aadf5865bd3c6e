"""While the log database is locked, entries wait in a spool on disk. No entry is lost, and no request waits."""

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
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import build_rows
from routing_admin.request_log.journal import BATCH, RETRY_SECONDS, Journal
from routing_admin.request_log.spool import Spool
from routing_admin.request_log.tracing import tracing
from tests.engines import others
from tests.engines.journals import catch_up, spooling_journal

pytestmark = pytest.mark.django_db(databases=["default", "logs"], transaction=True)


def entry(name: str, **facts: Any) -> Entry:
    attempt = Attempt("one", "m", "http_503", 503, translatable("down"), tries=(Try(0.0, 1.0, "http_503", 503),))
    return build_entry(RequestFacts(name, timezone.now(), "v1", **facts), (attempt,))


def locked() -> AbstractContextManager[None]:
    """Return a context manager that locks the log database for other writers."""
    return others.locked("logs", "IMMEDIATE")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with spooling_journal(tmp_path) as spooling:
        yield spooling


def ids() -> set[str]:
    return set(RequestLog.objects.values_list("pk", flat=True))


def test_entries_are_spooled_while_the_log_database_is_locked_and_written_afterwards(journal: Journal) -> None:
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


def test_flush_waits_for_the_lock_only_once(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routing_admin.request_log.journal.RETRY_SECONDS", 3600.0)
    statements: list[str] = []

    def note(execute: Any, sql: str, *arguments: Any) -> Any:
        statements.append(sql)
        return execute(sql, *arguments)

    with locked(), connections["logs"].execute_wrapper(note):
        for _ in range(2):
            for number in range(5 * BATCH):
                journal.record(entry(f"n{number}"))
            journal.flush()
    tries = [sql for sql in statements if "BEGIN" in sql or sql.startswith("INSERT")]
    assert len(tries) == 1
    assert journal.spool.waiting() == 10 * BATCH


def test_spool_of_a_killed_process_is_written_by_the_next_process(journal: Journal) -> None:
    Spool(journal.folder()).folder.mkdir(parents=True)
    orphan = journal.folder() / "1-dead.jsonl"
    other_spool = Spool(journal.folder())
    other_spool.append(build_rows([entry("left behind")]))
    (written,) = [path for path in journal.folder().iterdir() if path != orphan]
    orphan.write_bytes(written.read_bytes() + b'[{"id": "cut')
    other_spool.close()
    written.unlink()
    journal.start()
    journal.stop()
    assert ids() == {"left behind"}
    assert not list(journal.folder().glob("*.jsonl"))


def test_rows_stored_just_before_a_crash_are_not_written_twice(journal: Journal) -> None:
    spooled_rows = build_rows([entry("same"), entry("other")])
    for _ in range(2):
        journal.spool.append(spooled_rows)
        journal.behind_since = timezone.now()
        catch_up(journal)
    assert RequestLog.objects.count() == 2
    journal.spool.append(build_rows([entry("same")]))
    journal.behind_since = timezone.now()
    catch_up(journal)
    assert RequestLog.objects.count() == 3


def test_spool_file_locked_by_another_process_is_skipped(journal: Journal) -> None:
    program = (
        "import sys, fcntl, os\n"
        "file = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True); input()"
    )
    other_spool = Spool(journal.folder())
    other_spool.append(build_rows([entry("theirs")]))
    (path,) = journal.folder().iterdir()
    held_file = path.with_name("2-held.jsonl")
    held_file.write_bytes(path.read_bytes())
    path.unlink()
    with subprocess.Popen(
        [sys.executable, "-c", program, str(held_file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        journal.behind_since = timezone.now()
        catch_up(journal)
        assert (ids(), held_file.exists()) == (set(), True)
        holder.communicate(b"\n")
    other_spool.close()


def test_entries_wait_in_memory_while_the_disk_is_full(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    journal.spool.append(build_rows([entry("first")]))
    (path,) = journal.folder().iterdir()
    whole, usual = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    with locked():
        # A file size limit makes the write fail halfway, as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (whole + 50, usual[1]))
        try:
            journal.record(entry("second"))
            for _ in range(3):
                journal.flush()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        assert ([waiting.facts.id for waiting in journal.waiting], path.stat().st_size) == (["second"], whole)
        assert (journal.disk_is_full, caplog.text.count("the disk does not take them")) == (True, 1)
    catch_up(journal)
    assert not journal.disk_is_full
    assert ids() == {"first", "second"}


def test_batch_being_written_counts_as_waiting(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, most of the backlog is in the batch that is being written."""
    counts = list[int]()
    monkeypatch.setattr(Spool, "append", lambda *_: counts.append(len(journal.waiting)))
    with locked():
        journal.record(entry("one"))
        journal.record(entry("two"))
        journal.flush()
    assert (counts, len(journal.waiting)) == ([2], 0)


def test_recovery_is_not_logged_by_a_process_that_wrote_nothing(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    """Every process looks for orphaned spool files. If it finds none, it must not log that the database works again."""
    journal.spool.append(build_rows([entry("left")]))
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


def test_backlog_start_is_the_time_of_the_first_unwritten_entry(journal: Journal) -> None:
    """The backlog keeps its start time even if the spool cannot be written."""
    # A file in place of the spool's directory makes every write fail.
    journal.folder().write_text("no folder can be made here")
    with locked():
        journal.record(entry("one"))
        journal.flush()
        # This is long enough for the journal to retry the write.
        since, until = journal.behind_since, time.monotonic() + 1.2 * RETRY_SECONDS
        while time.monotonic() < until:
            journal.flush()
            time.sleep(0.01)
        assert (journal.behind_since, journal.disk_is_full, len(journal.waiting)) == (since, True, 1)
    catch_up(journal)
    assert ids() == {"one"}


def test_row_rejected_by_the_database_does_not_block_other_rows(journal: Journal) -> None:
    journal.spool.append(build_rows([entry("good"), entry("bad", status=-1), entry("also good")]))
    journal.behind_since = timezone.now()
    catch_up(journal)
    assert (ids(), journal.lost, journal.repaired) == ({"good", "bad", "also good"}, 0, 1)


@pytest.mark.parametrize("disk_is_full", [False, True])
def test_requests_logged_after_an_outage_reach_metrics_alerts_and_traces_exactly_once(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, disk_is_full: bool
) -> None:
    traced, doubted = list[str](), list[str]()
    monkeypatch.setattr(tracing(), "writer", SimpleNamespace(write=lambda written: traced.append(written.facts.id)))
    monkeypatch.setattr(entries, "find_refused_files", lambda checked: doubted.append(checked.facts.id) or ())
    call_outcomes().take()
    before = counted_requests()
    if disk_is_full:
        # A file in place of the spool's directory makes every write fail.
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
    """Return the value of the request counter for unconfigured routes."""
    labels = {"route": OTHER, "surface": "v1", "outcome": "ok", "ending": "answered"}
    family = next(candidate for candidate in request_metrics().families() if candidate.name == "routing_admin_requests")
    return float(family.values.get(tuple(labels[name] for name in family.labels), 0))


def refused(name: str, route: str) -> Entry:
    """Return the log entry of a request with a file. The provider rejected the API key."""
    attempt = Attempt("one", "m", "http_401", 401, tries=(Try(0.0, 1.0, "http_401", 401),))
    refused_entry = build_entry(RequestFacts(name, timezone.now(), "v1", task_type=route), (attempt,))
    refused_entry.sent = {1: cast("Any", ("a file",))}
    return refused_entry


def test_spool_files_are_readable_by_their_owner_only(journal: Journal) -> None:
    """The spool contains the same data as the log."""
    journal.spool.append(build_rows([entry("one")]))
    (path,) = journal.folder().iterdir()
    assert (path.stat().st_mode & 0o777, os.stat(journal.folder()).st_mode & 0o777) == (0o600, 0o700)
