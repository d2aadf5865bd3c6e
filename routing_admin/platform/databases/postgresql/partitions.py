"""Daily partitions of the request log, created in advance and dropped in milliseconds.

Days are in UTC. Rows of days without a partition go to the default partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import connections, transaction

from capabilities.runtime import owned
from routing_admin.platform.databases.router import LOGS, POSTGRESQL

DAYS_AHEAD = 3
"""How many days ahead partitions are created, in case a clock is wrong or the upkeep thread is late."""
LOCK = 0x64617973
"""Key of the advisory lock for creating and dropping partitions."""
DAY_NAME = re.compile(r"_(\d{8})$")


@dataclass(frozen=True, slots=True)
class DailyTable:
    """A table partitioned by the day of a timestamp; the columns `unique` identify a row within a day."""

    name: str
    moment: str
    unique: str

    @property
    def rest(self) -> str:
        return f"{self.name}_default"

    def part(self, day: date) -> str:
        return f"{self.name}_{day:%Y%m%d}"


@dataclass(slots=True)
class _Days:
    """Start of the first day and end of the last day that have partitions, as far as this process knows."""

    bounds: tuple[datetime, datetime] | None = None


_found = owned(_Days)

REQUESTS = DailyTable("routing_admin_requestlog", "started_at", "id")
ATTEMPTS = DailyTable("routing_admin_attemptlog", "at", "request_id, position")


def make_days(now: datetime) -> int:
    """Create missing partitions from yesterday to `DAYS_AHEAD` days ahead, and return their number.

    Return 0 on databases other than PostgreSQL. Database errors propagate.
    """
    connection = connections[LOGS]
    if connection.vendor != POSTGRESQL:
        return 0
    today = now.astimezone(UTC).date()
    expected = [
        (table, today + timedelta(days=days)) for days in range(-1, DAYS_AHEAD + 1) for table in (REQUESTS, ATTEMPTS)
    ]
    with connection.cursor() as cursor:
        names = _existing_names(cursor)
    missing = [(table, day) for table, day in expected if table.part(day) not in names]
    parts = {*names, *(table.part(day) for table, day in expected)}
    begins = [began for name in parts if (began := _parse_day(name))]
    _found().bounds = (min(begins), max(begins) + timedelta(days=1))
    for table, day in missing:
        _make_day(table, day)
    return len(missing)


def existing_days() -> tuple[datetime, datetime] | None:
    """Return when the first day with a partition starts and when the last one ends, or None before `make_days` has run.

    Days may have been dropped since then, and the default partition may contain rows of other days.
    """
    return _found().bounds


def drop_days(before: datetime) -> int:
    """Drop the partitions of days that ended by `before`, and delete rows before `before` from the default partitions.

    Return the number of deleted requests. The partition of the day that contains `before` is kept. Database errors
    propagate.
    """
    total: int = 0
    for day in _days_before(before):
        with transaction.atomic(using=LOGS), connections[LOGS].cursor() as cursor:
            _lock(cursor)
            cursor.execute(f"SELECT count(*) FROM {REQUESTS.part(day)}")  # noqa: S608  # our own names, here and below
            total += int(cursor.fetchone()[0])
            cursor.execute(f"DROP TABLE IF EXISTS {REQUESTS.part(day)}, {ATTEMPTS.part(day)}")
    with transaction.atomic(using=LOGS), connections[LOGS].cursor() as cursor:
        cursor.execute(f"DELETE FROM {ATTEMPTS.rest} WHERE at < %s", [before])  # noqa: S608
        cursor.execute(f"DELETE FROM {REQUESTS.rest} WHERE started_at < %s", [before])  # noqa: S608
        total += int(cursor.rowcount)
    return total


def _days_before(before: datetime) -> Iterator[date]:
    with connections[LOGS].cursor() as cursor:
        names = _existing_names(cursor)
    for name in sorted(names):
        day = _parse_day(name)
        if day is not None and name.startswith(REQUESTS.name) and day + timedelta(days=1) <= before:
            yield day.date()


def _parse_day(name: str) -> datetime | None:
    match = DAY_NAME.search(name)
    return datetime.strptime(match[1], "%Y%m%d").replace(tzinfo=UTC) if match else None


def _existing_names(cursor: Any) -> set[str]:
    cursor.execute(
        "SELECT part.relname FROM pg_inherits JOIN pg_class part ON part.oid = inhrelid"
        " WHERE inhparent = ANY (ARRAY[to_regclass(%s), to_regclass(%s)]::oid[])",
        [REQUESTS.name, ATTEMPTS.name],
    )
    return {name for (name,) in cursor.fetchall()}


def _make_day(table: DailyTable, day: date) -> None:
    start = datetime.combine(day, time(), UTC)
    bounds = [start.isoformat(), (start + timedelta(days=1)).isoformat()]
    with transaction.atomic(using=LOGS), connections[LOGS].cursor() as cursor:
        _lock(cursor)
        # Another process may have created the partition in the meantime.
        if table.part(day) in _existing_names(cursor):
            return
        # Create the partition as a separate table and then attach it, so that writers do not wait.
        cursor.execute(partition_statements(table, table.part(day)))
        cursor.execute(
            f"WITH late AS (DELETE FROM {table.rest} WHERE {table.moment} >= %s AND {table.moment} < %s RETURNING *) "  # noqa: S608
            f"INSERT INTO {table.part(day)} SELECT * FROM late",
            bounds,
        )
        cursor.execute(
            f"ALTER TABLE {table.name} ATTACH PARTITION {table.part(day)} FOR VALUES FROM (%s) TO (%s)", bounds
        )


def partition_statements(table: DailyTable, part: str) -> str:
    """Return the statements that create a partition's table with its own unique index."""
    return (
        f"CREATE TABLE {part} (LIKE {table.name} INCLUDING DEFAULTS INCLUDING CONSTRAINTS); "
        # Each partition has its own unique index, because no unique index can span partitions.
        f"CREATE UNIQUE INDEX {part}_once ON {part} ({table.unique})"
    )


def _lock(cursor: Any) -> None:
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
