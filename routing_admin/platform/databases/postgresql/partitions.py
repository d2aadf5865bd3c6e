"""The request log by day: a table for each, made ahead, and gone in milliseconds when the day's time is over.

What began on a day that has no table, or came late, stands in a table for the rest. A day is UTC's.
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

AHEAD = 3
"""Days after today that have their tables: a clock, or upkeep, may be late."""
LOCK = 0x64617973
"""The number of the lock that whoever makes or drops a day holds."""
DAY_NAME = re.compile(r"_(\d{8})$")


@dataclass(frozen=True, slots=True)
class DailyTable:
    """A table in parts by the day of a moment; within a part these columns stand for one row."""

    name: str
    moment: str
    unique: str

    @property
    def rest(self) -> str:
        """The part that takes what belongs to no day that there is."""
        return f"{self.name}_default"

    def part(self, day: date) -> str:
        """A day's part."""
        return f"{self.name}_{day:%Y%m%d}"


@dataclass(slots=True)
class _Days:
    """What this process found when it last made days: when the first began that has a table, and when the last ends."""

    bounds: tuple[datetime, datetime] | None = None


_found = owned(_Days)

REQUESTS = DailyTable("routing_admin_requestlog", "started_at", "id")
ATTEMPTS = DailyTable("routing_admin_attemptlog", "at", "request_id, position")


def make_days(now: datetime) -> int:
    """Makes what is missing of yesterday, today and the days ahead; how many parts. Only PostgreSQL has any.

    Raises what the database raises.
    """
    connection = connections[LOGS]
    if connection.vendor != POSTGRESQL:
        return 0
    today = now.astimezone(UTC).date()
    wanted = [(table, today + timedelta(days=days)) for days in range(-1, AHEAD + 1) for table in (REQUESTS, ATTEMPTS)]
    with connection.cursor() as cursor:
        names = _names_there(cursor)
    missing = [(table, day) for table, day in wanted if table.part(day) not in names]
    parts = {*names, *(table.part(day) for table, day in wanted)}
    begins = [began for name in parts if (began := _day_of(name))]
    _found().bounds = (min(begins), max(begins) + timedelta(days=1))
    for table, day in missing:
        _make_day(table, day)
    return len(missing)


def days_there() -> tuple[datetime, datetime] | None:
    """When the first day began that has a table, and when the last ends; None where this process has made none.

    Days may be gone since, and what has no day stands in the rest.
    """
    return _found().bounds


def drop_days(before: datetime) -> int:
    """Drops the days that were over at that moment, and takes rows that are older out of the rest; how many requests.

    A request so goes up to a day after its time. Raises what the database raises.
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
        names = _names_there(cursor)
    for name in sorted(names):
        day = _day_of(name)
        if day is not None and name.startswith(REQUESTS.name) and day + timedelta(days=1) <= before:
            yield day.date()


def _day_of(name: str) -> datetime | None:
    match = DAY_NAME.search(name)
    return datetime.strptime(match[1], "%Y%m%d").replace(tzinfo=UTC) if match else None


def _names_there(cursor: Any) -> set[str]:
    cursor.execute(
        "SELECT part.relname FROM pg_inherits JOIN pg_class part ON part.oid = inhrelid"
        " WHERE inhparent = ANY (ARRAY[to_regclass(%s), to_regclass(%s)]::oid[])",
        [REQUESTS.name, ATTEMPTS.name],
    )
    return {name for (name,) in cursor.fetchall()}


def _make_day(table: DailyTable, day: date) -> None:
    """Makes a day's part beside the table, and takes it in: nobody who writes is kept waiting."""
    start = datetime.combine(day, time(), UTC)
    bounds = [start.isoformat(), (start + timedelta(days=1)).isoformat()]
    with transaction.atomic(using=LOGS), connections[LOGS].cursor() as cursor:
        _lock(cursor)
        if table.part(day) in _names_there(cursor):  # another process was quicker
            return
        cursor.execute(statements_of(table, table.part(day)))
        cursor.execute(
            f"WITH late AS (DELETE FROM {table.rest} WHERE {table.moment} >= %s AND {table.moment} < %s RETURNING *) "  # noqa: S608
            f"INSERT INTO {table.part(day)} SELECT * FROM late",
            bounds,
        )
        cursor.execute(
            f"ALTER TABLE {table.name} ATTACH PARTITION {table.part(day)} FOR VALUES FROM (%s) TO (%s)", bounds
        )


def statements_of(table: DailyTable, part: str) -> str:
    """What makes a part that is not yet one; its rows are unique by themselves, since no key goes across days."""
    return (
        f"CREATE TABLE {part} (LIKE {table.name} INCLUDING DEFAULTS INCLUDING CONSTRAINTS); "
        f"CREATE UNIQUE INDEX {part}_once ON {part} ({table.unique})"
    )


def _lock(cursor: Any) -> None:
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
