"""No log entry is lost if a database is read-only, denies a privilege, or has another schema version."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from django.core.management import call_command
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
from django.db.backends.signals import connection_created
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from routing_admin.models import RequestLog
from routing_admin.platform.databases.explaining import check_writable, list_missing_rights
from routing_admin.platform.databases.unavailable import (
    DatabaseFault,
    classify_error,
    explain,
    is_unavailable,
    is_value_fault,
)
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.insertion import build_rows
from routing_admin.request_log.journal import BATCH, Journal
from tests.cast import PASSWORD, open_browser
from tests.chaos.callers import Reply, ask, chat
from tests.engines.databases import database_environment, is_postgresql
from tests.engines.journals import catch_up, spooling_journal
from tests.engines.others import MAIN, other_connection
from tests.gateway.plane import PNG_URL, chat_body, image
from tests.gateway.serving import served
from tests.processes import wait_until

rows = pytest.mark.django_db(databases=["default", "logs"], transaction=True)


def make_error(kind: type[DatabaseError], cause: Exception, text: str = "") -> DatabaseError:
    error = kind(text)
    error.__cause__ = cause
    return error


def sqlite_error(code: int, text: str = "") -> DatabaseError:
    cause = sqlite3.OperationalError(text)
    cause.sqlite_errorcode = code  # type: ignore[attr-defined]
    return make_error(OperationalError, cause, text)


@pytest.mark.parametrize(
    ("code", "kind", "fault"),
    [
        ("25006", InternalError, DatabaseFault.READ_ONLY),  # read_only_sql_transaction
        ("42501", ProgrammingError, DatabaseFault.FORBIDDEN),  # insufficient_privilege
        ("42P01", ProgrammingError, DatabaseFault.OUTDATED),  # undefined_table
        ("42703", ProgrammingError, DatabaseFault.OUTDATED),  # undefined_column
        ("53100", OperationalError, DatabaseFault.FULL),  # disk_full
        ("53300", OperationalError, DatabaseFault.DOWN),  # too_many_connections
        ("57P01", OperationalError, DatabaseFault.DOWN),  # admin_shutdown
        ("08006", OperationalError, DatabaseFault.DOWN),  # connection_failure
        ("XX001", InternalError, DatabaseFault.DOWN),  # data_corrupted
        ("55P03", OperationalError, DatabaseFault.LOCKED),  # lock_not_available
        ("22001", DataError, DatabaseFault.VALUE),  # string_data_right_truncation
        ("23502", IntegrityError, DatabaseFault.VALUE),  # not_null_violation
        ("54000", OperationalError, DatabaseFault.VALUE),  # program_limit_exceeded
        ("42804", ProgrammingError, DatabaseFault.VALUE),  # datatype_mismatch
        ("42601", ProgrammingError, DatabaseFault.CODE),  # syntax_error
        ("25P02", InternalError, DatabaseFault.CODE),  # in_failed_sql_transaction
        ("0A000", NotSupportedError, DatabaseFault.CODE),  # feature_not_supported
    ],
)
def test_postgresql_error_codes_are_classified_as_outage_value_or_bug(
    code: str, kind: type[DatabaseError], fault: DatabaseFault
) -> None:
    error = make_error(kind, psycopg.errors.lookup(code)())
    assert classify_error(error) is fault
    assert is_unavailable(error) is (fault not in (DatabaseFault.VALUE, DatabaseFault.CODE))
    assert is_value_fault(error) is (fault is DatabaseFault.VALUE)


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
def test_sqlite_error_codes_are_classified(code: int, text: str, fault: DatabaseFault) -> None:
    """Both SQLite's primary and its extended error codes are classified."""
    assert classify_error(sqlite_error(code, text)) is fault


def test_outage_explanation_names_the_kind_of_outage() -> None:
    messages = [
        explain(make_error(InternalError, psycopg.errors.lookup(code)())) for code in ("25006", "42501", "42P01")
    ]
    phrases = ("read-only", "denies this server a right", "lacks a table or column")
    assert [phrase in message for phrase, message in zip(phrases, messages, strict=True)] == [True] * 3


@contextmanager
def connection_setup(statement: str) -> Iterator[None]:
    """Close all connections of this thread, and run the statement on every new connection."""

    def limit(connection: Any, **_: Any) -> None:
        connection.cursor().execute(statement)

    connections.close_all()
    connection_created.connect(limit)
    try:
        yield
    finally:
        connection_created.disconnect(limit)
        connections.close_all()


def read_only() -> AbstractContextManager[None]:
    return connection_setup("SET default_transaction_read_only = on" if is_postgresql() else "PRAGMA query_only = on")


@contextmanager
def without_privileges() -> Iterator[None]:
    with other_connection() as connection:
        connection.execute("CREATE ROLE limited; GRANT SELECT ON ALL TABLES IN SCHEMA public TO limited")
        try:
            with connection_setup("SET ROLE limited"):
                yield
        finally:
            connection.execute("DROP OWNED BY limited; DROP ROLE limited")


@contextmanager
def temporary_change(statement: str, reverse_statement: str) -> Iterator[None]:
    with other_connection("logs") as connection:
        connection.execute(statement)
        try:
            yield
        finally:
            connection.execute(reverse_statement)


TABLE = "routing_admin_requestlog"
OUTAGES = {
    "read-only": read_only,
    "no right": without_privileges,
    "no column": lambda: temporary_change(
        f"ALTER TABLE {TABLE} RENAME COLUMN agent TO agent_2", f"ALTER TABLE {TABLE} RENAME COLUMN agent_2 TO agent"
    ),
    "no table": lambda: temporary_change(f"ALTER TABLE {TABLE} RENAME TO away", f"ALTER TABLE away RENAME TO {TABLE}"),
}


def entry(name: str) -> Entry:
    return build_entry(RequestFacts(name, timezone.now(), "v1", agent="ada"), ())


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with spooling_journal(tmp_path) as spooling:
        yield spooling


@rows
@pytest.mark.parametrize("outage", OUTAGES)
def test_requests_logged_during_an_outage_are_not_lost(
    journal: Journal, outage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Entries are spooled and written after the outage. The log has one line about the outage, without a traceback."""
    if outage == "no right" and not is_postgresql():
        pytest.skip("SQLite knows no rights")
    with OUTAGES[outage]():
        for number in range(BATCH + 5):
            journal.record(entry(f"r{number}"))
        journal.flush()
        assert (journal.lost, journal.spool.waiting()) == (0, BATCH + 5)
        with pytest.raises(DatabaseError) as failed:
            check_writable()
        assert is_unavailable(failed.value)
    catch_up(journal)
    assert RequestLog.objects.count() == BATCH + 5
    check_writable()
    records = [record for record in caplog.records if "writing the request log" in record.getMessage()]
    assert [(record.levelname, record.exc_info) for record in records] == [("ERROR", None), ("WARNING", None)]


@rows
@pytest.mark.skipif(not is_postgresql(), reason="about PostgreSQL: python -m tests.engines")
@pytest.mark.parametrize(
    ("right", "table", "is_probed"),
    [("INSERT", "attemptlog", True), ("UPDATE", "usagesum", True), ("INSERT", "auditevent", False)],
)
def test_missing_privilege_on_the_log_tables_is_reported(right: str, table: str, is_probed: bool) -> None:
    """The write check fails, and `doctor` names the privilege."""
    with other_connection() as connection:
        connection.execute("CREATE ROLE limited; GRANT ALL ON ALL TABLES IN SCHEMA public TO limited")
        connection.execute(f"REVOKE {right} ON routing_admin_{table} FROM limited")
        try:
            with connection_setup("SET ROLE limited"):
                expected = [f"INSERT ON routing_admin_{table}"] if right == "INSERT" else []
                assert list_missing_rights() == expected
                with pytest.raises(DatabaseError) if is_probed else nullcontext() as failed:
                    check_writable()
                assert not is_probed or classify_error(failed.value) is DatabaseFault.FORBIDDEN
        finally:
            connection.execute("DROP OWNED BY limited; DROP ROLE limited")


@rows
def test_doctor_reports_a_read_only_database(capsys: pytest.CaptureFixture[str]) -> None:
    with read_only(), pytest.raises(SystemExit):
        call_command("doctor")
    output = capsys.readouterr()
    assert "bad  databases" in output.out
    assert "is read-only: " in output.err


@rows
def test_one_invalid_row_of_a_batch_is_found_by_bisection(journal: Journal) -> None:
    """The valid rows are written in a few transactions. Only the invalid row is lost."""
    invalid_entry = build_entry(RequestFacts("bad", cast(Any, "no moment"), "v1"), ())
    for valid_or_bad in (
        *(entry(f"r{number}") for number in range(100)),
        invalid_entry,
        *(entry(f"s{number}") for number in range(BATCH - 101)),
    ):
        journal.record(valid_or_bad)
    statements: list[str] = []

    def note(execute, sql, *arguments):
        statements.append(sql)
        return execute(sql, *arguments)

    with connections["logs"].execute_wrapper(note):
        journal.flush()
    assert (RequestLog.objects.count(), journal.lost) == (BATCH - 1, 1)
    assert journal.lost_at is not None
    assert len([sql for sql in statements if "SELECT" in sql and "requestlog" in sql]) < 40


@rows
def test_invalid_spool_lines_and_rows_do_not_block_valid_rows(journal: Journal) -> None:
    invalid_entry = build_entry(RequestFacts("bad", cast(Any, "no moment"), "v1"), ())
    journal.spool.append(build_rows([entry("first")]))
    (path,) = journal.folder().iterdir()
    with path.open("ab") as file:
        file.write(b"\0\0\0\n")
    journal.spool.append(build_rows([invalid_entry, entry("last")]))
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


def is_read_only(reply: Reply) -> bool:
    return reply.status == 503 and b"read-only" in reply.body


@pytest.mark.skipif(not is_postgresql(), reason="about PostgreSQL: python -m tests.engines")
def test_server_with_a_read_only_database_answers_calls_and_loses_no_entry(tmp_path: Path) -> None:
    database = database_environment(tmp_path)["DATABASE_URL"].rpartition("/")[2]
    with served(tmp_path) as server:
        text = {"text": "a few words", "filename": "notes.txt"}
        ids = [f"before-{number}" for number in range(3)]
        assert [chat(server, name).status for name in ids] == [200] * 3
        change_setting(tmp_path, f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
        # The setting applies only to new connections, which replace the terminated ones.
        wait_until(lambda: is_read_only(ask(server, "POST", "/api/v1/artifacts", text)))
        assert is_read_only(ask(server, "POST", "/v1/chat/completions", chat_body(image(PNG_URL), model="one/lab")))
        meanwhile = [f"meanwhile-{number}" for number in range(20)]
        assert [chat(server, name).status for name in meanwhile] == [200] * 20
        ready = ask(server, "GET", "/readyz?full")
        assert (ready.status, ready.json["checks"]["databases"]) == (503, "failed")
        numbers = ask(server, "GET", "/metrics").body.decode()
        assert "routing_admin_database_up 0.0" in numbers
        assert "routing_admin_log_entries_lost_total 0.0" in numbers
        assert ask(server, "GET", "/login/").status == 200
        change_setting(tmp_path, f'ALTER DATABASE "{database}" RESET default_transaction_read_only', end=False)
        wait_until(lambda: ask(server, "GET", f"/api/v1/requests/{meanwhile[-1]}").status != 503)
        assert [server.timeline(name)["outcome"] for name in (*ids, *meanwhile)] == ["ok"] * 23
        wait_until(lambda: ask(server, "POST", "/api/v1/artifacts", text).status != 503)
        assert "Traceback" not in server.log
        assert server.log.count("writing the request log works again") == 1


def change_setting(directory: Path, statement: str, *, end: bool = True) -> None:
    """Change a database setting for new connections. If `end` is true, terminate the existing connections."""
    with other_connection(directory / MAIN) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(statement)
        if end:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@rows
@pytest.mark.parametrize(("language", "sentence"), [("en", "The database is read-only"), ("zh-hans", "数据库目前只读")])
def test_page_that_must_write_to_a_read_only_database_returns_503(
    demo: None, admin_account: Any, language: str, sentence: str
) -> None:
    signed_in = open_browser(admin_account, raise_request_exception=False, headers={"accept-language": language})
    anonymous = Client(raise_request_exception=False, headers={"accept-language": language})
    with read_only():
        assert signed_in.get(reverse("dashboard")).status_code == 200
        credentials = {"username": admin_account.username, "password": PASSWORD}
        for response in (signed_in.post(reverse("demo_remove")), anonymous.post(reverse("login"), credentials)):
            assert (response.status_code, response.headers["Retry-After"]) == (503, "2")
            assert sentence in response.content.decode()
