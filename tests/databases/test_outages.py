"""A database that only reads, denies a right, or has tables of another version: an outage that loses nothing."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    connections,
)
from django.utils import timezone

from routing_admin.databases.away import DatabaseFault, explain, fault_of, is_away, is_of_values
from routing_admin.databases.probing import check_writable
from routing_admin.models import RequestLog
from routing_admin.request_log.entries import Entry, RequestFacts, entry_of
from routing_admin.request_log.insertion import rows_of
from routing_admin.request_log.journal import BATCH, Journal
from tests.engines.databases import is_postgresql
from tests.engines.others import other_connection

rows = pytest.mark.django_db(databases=["default", "logs"], transaction=True)


def raised(kind: type[DatabaseError], cause: Exception, text: str = "") -> DatabaseError:
    error = kind(text)
    error.__cause__ = cause
    return error


def of_sqlite(code: int, text: str = "") -> DatabaseError:
    cause = sqlite3.OperationalError(text)
    cause.sqlite_errorcode = code  # type: ignore[attr-defined]
    return raised(OperationalError, cause, text)


@pytest.mark.parametrize(
    ("code", "kind", "fault"),
    [
        ("25006", InternalError, DatabaseFault.READ_ONLY),
        ("42501", ProgrammingError, DatabaseFault.FORBIDDEN),
        ("42P01", ProgrammingError, DatabaseFault.OUTDATED),
        ("42703", ProgrammingError, DatabaseFault.OUTDATED),
        ("53100", OperationalError, DatabaseFault.FULL),
        ("53300", OperationalError, DatabaseFault.DOWN),
        ("57P01", OperationalError, DatabaseFault.DOWN),
        ("08006", OperationalError, DatabaseFault.DOWN),
        ("XX001", InternalError, DatabaseFault.DOWN),
        ("55P03", OperationalError, DatabaseFault.LOCKED),
        ("22001", DataError, DatabaseFault.VALUE),
        ("23502", IntegrityError, DatabaseFault.VALUE),
        ("54000", OperationalError, DatabaseFault.VALUE),
        ("42804", ProgrammingError, DatabaseFault.VALUE),
        ("42601", ProgrammingError, DatabaseFault.CODE),
        ("25P02", InternalError, DatabaseFault.CODE),
        ("0A000", NotSupportedError, DatabaseFault.CODE),
    ],
)
def test_postgresql_s_codes_tell_an_outage_from_a_value_and_from_our_code(
    code: str, kind: type[DatabaseError], fault: DatabaseFault
) -> None:
    """Whatever class the driver raises it as."""
    error = raised(kind, psycopg.errors.lookup(code)())
    assert fault_of(error) is fault
    assert is_away(error) is (fault not in (DatabaseFault.VALUE, DatabaseFault.CODE))
    assert is_of_values(error) is (fault is DatabaseFault.VALUE)


@pytest.mark.parametrize(
    ("code", "text", "fault"),
    [
        (sqlite3.SQLITE_READONLY_DBMOVED, "attempt to write a readonly database", DatabaseFault.READ_ONLY),
        (sqlite3.SQLITE_FULL, "database or disk is full", DatabaseFault.FULL),
        (sqlite3.SQLITE_IOERR_WRITE, "disk I/O error", DatabaseFault.DOWN),
        (sqlite3.SQLITE_CANTOPEN, "unable to open database file", DatabaseFault.DOWN),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "database is locked", DatabaseFault.LOCKED),
        (sqlite3.SQLITE_ERROR, "no such table: t", DatabaseFault.OUTDATED),
        (sqlite3.SQLITE_TOOBIG, "string or blob too big", DatabaseFault.VALUE),
    ],
)
def test_sqlite_s_codes_do_so_too(code: int, text: str, fault: DatabaseFault) -> None:
    """With what it adds to them."""
    assert fault_of(of_sqlite(code, text)) is fault


def test_each_outage_has_its_sentence() -> None:
    """The caller learns whether it only reads, lacks a right, or is being upgraded."""
    said = [explain(raised(InternalError, psycopg.errors.lookup(code)())) for code in ("25006", "42501", "42P01")]
    words = ("read-only", "denies this server a right", "lacks a table or column")
    assert [word in each for word, each in zip(words, said, strict=True)] == [True] * 3


@contextmanager
def read_only() -> Iterator[None]:
    """This thread's connections, as to a database that only reads."""
    statement = "SET default_transaction_read_only = {}" if is_postgresql() else "PRAGMA query_only = {}"
    for alias in ("default", "logs"):
        connections[alias].cursor().execute(statement.format("on"))
    try:
        yield
    finally:
        for alias in ("default", "logs"):
            connections[alias].cursor().execute(statement.format("off"))


@contextmanager
def without_rights() -> Iterator[None]:
    """The same as another user, who may read."""
    with other_connection() as other:
        other.execute("CREATE ROLE limited; GRANT SELECT ON ALL TABLES IN SCHEMA public TO limited")
        for alias in ("default", "logs"):
            connections[alias].cursor().execute("SET ROLE limited")
        try:
            yield
        finally:
            for alias in ("default", "logs"):
                connections[alias].cursor().execute("RESET ROLE")
            other.execute("DROP OWNED BY limited; DROP ROLE limited")


@contextmanager
def renamed(what: str, back: str) -> Iterator[None]:
    with other_connection("logs") as other:
        other.execute(what)
        try:
            yield
        finally:
            other.execute(back)


TABLE = "routing_admin_requestlog"
OUTAGES = {
    "read-only": read_only,
    "no right": without_rights,
    "no column": lambda: renamed(
        f"ALTER TABLE {TABLE} RENAME COLUMN agent TO agent_2", f"ALTER TABLE {TABLE} RENAME COLUMN agent_2 TO agent"
    ),
    "no table": lambda: renamed(f"ALTER TABLE {TABLE} RENAME TO away", f"ALTER TABLE away RENAME TO {TABLE}"),
}


def entry(name: str) -> Entry:
    return entry_of(RequestFacts(name, timezone.now(), "v1", agent="ada"), ())


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(folder=lambda: tmp_path / "spool")
    yield made
    made.spool.close()


def catch_up(journal: Journal) -> None:
    until = time.monotonic() + 30
    while journal.behind_since is not None and time.monotonic() < until:
        journal.flush()
    assert journal.behind_since is None


@rows
@pytest.mark.parametrize("outage", OUTAGES)
def test_no_request_of_an_outage_is_lost(journal: Journal, outage: str, caplog: pytest.LogCaptureFixture) -> None:
    """They wait on disk and are written when it is over; the log has one line, and no traceback."""
    if outage == "no right" and not is_postgresql():
        pytest.skip("SQLite knows no rights")
    with OUTAGES[outage]():
        for number in range(BATCH + 5):
            journal.record(entry(f"r{number}"))
        journal.flush()
        assert (journal.lost, journal.spool.waiting()) == (0, BATCH + 5)
        if outage != "no column":
            with pytest.raises(DatabaseError) as failed:
                check_writable()
            assert is_away(failed.value)
    catch_up(journal)
    assert RequestLog.objects.count() == BATCH + 5
    check_writable()
    said = [each for each in caplog.records if "writing the request log" in each.getMessage()]
    assert [(each.levelname, each.exc_info) for each in said] == [("ERROR", None), ("WARNING", None)]


@rows
def test_one_bad_row_of_a_batch_is_found_by_halves(journal: Journal) -> None:
    """The good ones are written in few transactions, and the bad one alone is lost."""
    bad = entry_of(RequestFacts("bad", cast(Any, "no moment"), "v1"), ())
    for each in (*(entry(f"r{number}") for number in range(100)), bad, *(entry(f"s{at}") for at in range(BATCH - 101))):
        journal.record(each)
    began: list[str] = []

    def note(execute, sql, *more):
        began.append(sql)
        return execute(sql, *more)

    with connections["logs"].execute_wrapper(note):
        journal.flush()
    assert (RequestLog.objects.count(), journal.lost) == (BATCH - 1, 1)
    assert journal.lost_at is not None
    assert len([sql for sql in began if "SELECT" in sql and "requestlog" in sql]) < 40


@rows
def test_a_damaged_line_and_a_bad_row_on_disk_are_lost_once_and_hold_up_no_other(journal: Journal) -> None:
    """Though an outage has their file read from its start again and again."""
    bad = entry_of(RequestFacts("bad", cast(Any, "no moment"), "v1"), ())
    journal.spool.append(rows_of([entry("first")]))
    (path,) = journal.folder().iterdir()
    with path.open("ab") as file:
        file.write(b"\0\0\0\n")
    journal.spool.append(rows_of([bad, entry("last")]))
    journal.behind_since = timezone.now()
    with read_only():
        until = time.monotonic() + 30
        while journal.lost < 2 and time.monotonic() < until:
            journal.flush()
        journal.behind_since = timezone.now()
        journal.flush()
    catch_up(journal)
    assert set(RequestLog.objects.values_list("pk", flat=True)) == {"first", "last"}
    assert journal.lost == 2
