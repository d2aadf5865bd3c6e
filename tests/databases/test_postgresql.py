"""PostgreSQL only: daily partitions of the request log, notifications, lock timeouts, and lost connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from capabilities.core.translatable import translatable
from routing_admin.configuration import snapshot
from routing_admin.console.settings.pruning import prune_requests
from routing_admin.models import AttemptLog, Installation, RequestLog
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.postgresql.notices import Listener
from routing_admin.platform.databases.postgresql.partitions import DAYS_AHEAD, make_days
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.search import PAGE, find
from routing_admin.request_log.search_words import parse

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL: python -m tests.engines"),
    pytest.mark.django_db(databases=["default", "logs"], transaction=True),
]
NOW = datetime(2031, 5, 7, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def request(name: str, began: datetime) -> RequestLog:
    row = RequestLog.objects.create(id=name, started_at=began, surface="chat", outcome="ok")
    AttemptLog.objects.create(request=row, position=0, provider="p", outcome="ok", at=began)
    return row


def table_name(name: str) -> str:
    with connections["logs"].cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM routing_admin_requestlog WHERE id = %s", [name])
        return str(cursor.fetchone()[0])


@pytest.fixture
def day_partitions():
    make_days(NOW)
    yield
    prune_requests(NOW + 30 * DAY)


def test_request_is_stored_in_the_partition_of_its_day(day_partitions: None) -> None:
    """A partition's day begins at midnight UTC."""
    assert make_days(NOW) == 0
    request("before midnight", NOW.replace(hour=0) - timedelta(microseconds=1))
    request("midnight", NOW.replace(hour=0))
    request("ahead", NOW + DAYS_AHEAD * DAY)
    assert table_name("before midnight") == "routing_admin_requestlog_20310506"
    assert table_name("midnight") == "routing_admin_requestlog_20310507"
    assert table_name("ahead") == "routing_admin_requestlog_20310510"


def test_row_in_the_default_partition_moves_when_its_day_partition_is_created(day_partitions: None) -> None:
    late, early = request("late", NOW - 9 * DAY), request("early", NOW + (DAYS_AHEAD + 1) * DAY)
    assert {table_name("late"), table_name("early")} == {"routing_admin_requestlog_default"}
    assert list(RequestLog.objects.values_list("pk", flat=True)) == ["early", "late"]
    make_days(NOW + DAY)
    assert table_name("early") == "routing_admin_requestlog_20310511"
    assert early.attempts.get().at == early.started_at
    assert late.attempts.count() == 1


def test_partitions_of_expired_days_are_dropped(day_partitions: None) -> None:
    """Expired partitions are dropped as a whole. Only rows in the default partition are deleted individually."""
    request("yesterday", NOW - DAY)
    request("today", NOW)
    request("long ago", NOW - 90 * DAY)
    with connections["logs"].execute_wrapper(note := Statements()):
        assert prune_requests(NOW - timedelta(hours=12)) == 2
    assert list(RequestLog.objects.values_list("pk", flat=True)) == ["today"]
    assert list(AttemptLog.objects.values_list("request_id", flat=True)) == ["today"]
    assert [sql for sql in note.seen if "DROP" in sql] == [
        "DROP TABLE IF EXISTS routing_admin_requestlog_20310506, routing_admin_attemptlog_20310506"
    ]
    assert all("_default" in sql for sql in note.seen if "DELETE" in sql)


class Statements:
    """A wrapper around database calls that records every SQL statement."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, execute, sql, *arguments):
        self.seen.append(sql)
        return execute(sql, *arguments)


def test_request_id_reused_on_another_day_overwrites_no_row(day_partitions: None) -> None:
    """A request id is unique only within its partition."""
    for started in (NOW - DAY, NOW, NOW):
        write([build_entry(RequestFacts("same", started, "v1", error=translatable("x")), ())])
    assert RequestLog.objects.get(pk="same").started_at == NOW - DAY
    assert RequestLog.objects.count() == 3


def test_change_notifies_the_listening_processes_on_commit() -> None:
    notified = threading.Event()
    listener = Listener(notified.set)
    listener.start()
    try:
        until = timezone.now() + timedelta(seconds=30)
        # The first change may happen before LISTEN takes effect.
        while not notified.wait(0.2) and timezone.now() < until:
            with transaction.atomic():
                Installation.objects.update_or_create(id=1, defaults={"version": snapshot.stamp() + 1})
        assert notified.is_set()
    finally:
        listener.stop()


def test_statement_stops_waiting_for_a_lock_after_its_timeout(key: str) -> None:
    with psycopg.connect(**connection_parameters()) as second_connection:
        second_connection.execute("LOCK TABLE routing_admin_installation IN EXCLUSIVE MODE")
        with lock_timeout(0.05), pytest.raises(OperationalError, match="lock timeout"):
            Installation.objects.update(version=7)
        assert Installation.objects.get().version > 0
    Installation.objects.update(version=7)
    with connection.cursor() as cursor:
        assert cursor.execute("SHOW lock_timeout").fetchone() == ("5s",)


def test_connection_closed_by_the_server_is_replaced(key: str) -> None:
    backend_pid = connection.cursor().execute("SELECT pg_backend_pid()").fetchone()
    with psycopg.connect(**connection_parameters(), autocommit=True) as second_connection:
        second_connection.execute("SELECT pg_terminate_backend(%s, 5000)", backend_pid)
    with pytest.raises(OperationalError):
        Installation.objects.get()
    assert Installation.objects.get().pk == 1


def test_connection_closed_by_the_server_is_discarded_at_the_end_of_a_request(key: str) -> None:
    """The connection is discarded without opening a new one."""
    backend_pid = connection.cursor().execute("SELECT pg_backend_pid()").fetchone()
    with psycopg.connect(**connection_parameters(), autocommit=True) as second_connection:
        second_connection.execute("SELECT pg_terminate_backend(%s, 5000)", backend_pid)
    with pytest.raises(OperationalError):
        Installation.objects.get()
    connection.close_if_unusable_or_obsolete()
    assert connection.connection is None


def connection_parameters() -> dict[str, object]:
    parameters = connection.get_connection_params()
    return {name: value for name, value in parameters.items() if name not in ("context", "cursor_factory")}


@pytest.fixture
def two_months_of_partitions() -> Iterator[None]:
    """Create partitions for days around `NOW` and up to 60 days before it, and remove them afterwards."""
    for days_ago in (60, 40, 10, 0):
        make_days(NOW - days_ago * DAY)
    yield
    prune_requests(NOW + 30 * DAY)


def test_pages_of_a_search_cover_all_days_without_a_gap(two_months_of_partitions: None) -> None:
    for number in range(PAGE + 20):
        request(f"r{number:02}", NOW - number * DAY)
    for typed, newest in (("", 0), ("provider:p", 0), ("provider:p until:2031-05-04", 4)):
        search = parse(typed, NOW)
        first = find(search, now=NOW)
        second = find(search, before=first.older, now=NOW)
        ids = [row.pk for row in (*first.rows, *second.rows)]
        assert ids == [f"r{number:02}" for number in range(newest, PAGE + 20)]
        assert find(search, after=second.newer, now=NOW).rows == first.rows


def test_search_with_enough_results_queries_the_newest_partitions_only(
    two_months_of_partitions: None, django_assert_num_queries: Any
) -> None:
    for number in range(PAGE + 1):
        request(f"r{number}", NOW - timedelta(minutes=number))
    with django_assert_num_queries(1, using="logs") as queries:
        assert len(find(parse(""), now=NOW).rows) == PAGE
    assert "2031-05-06" in queries.captured_queries[0]["sql"]
