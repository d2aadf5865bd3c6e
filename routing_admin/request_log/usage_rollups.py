"""Roll-ups: totals of ended hours and days by single columns, so that pages read thousands of rows, not a million.

Each serving process rolls up hours and days of `UsageSum` that have no roll-up yet, newest first, including those that
a migration or `restore` added. It first writes a mark, a row with a random token. A late request deletes the mark in
its own transaction, and another process that begins the same roll-up replaces it. A process that has lost its mark
stops, and readers ignore the rows that it wrote: for every hour or day without a complete mark they read `UsageSum`.
Therefore locks are held only for one batch of rows at a time.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.db import connections, transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from capabilities.runtime import owned
from routing_admin.models import UsageRollup, UsageSum
from routing_admin.platform.databases.router import LOGS, POSTGRESQL, borrowed_connections
from routing_admin.platform.server.repeating_thread import RepeatingThread
from routing_admin.request_log.latencies import ALL, count_latencies
from routing_admin.request_log.summed_times import period_end
from routing_admin.request_log.time_ranges import HOUR
from routing_admin.request_log.usage_sums import COUNTS, LENGTHS, ROLLUP_LOCK

log = logging.getLogger(__name__)

DIMENSIONS = ("agent", "task_type", "provider", "model", "team", "project", "end_user")
FOLD_DELAY = 2 * HOUR
"""How long after its end an hour or day is rolled up: late requests are rare by then, and clocks may differ."""
BATCH = 500
"""Number of rows per transaction."""
PAUSE_SECONDS, LOOK_SECONDS = 0.5, 60.0
"""Seconds between two roll-ups, and seconds until the next check if nothing is left to roll up."""
STARTS = """
WITH RECURSIVE starts (start) AS (
    SELECT MIN(start) FROM routing_admin_usagesum WHERE span = %s AND start >= %s
    UNION ALL
    SELECT (SELECT MIN(start) FROM routing_admin_usagesum WHERE span = %s AND start > starts.start)
    FROM starts WHERE starts.start IS NOT NULL
)
SELECT start FROM starts WHERE start IS NOT NULL
"""
"""Query for the start times of all hours or days since a time that have usage totals; it finds each with a single index
lookup.
"""


def list_starts(span: str, since: datetime) -> list[datetime]:
    """Return the start times, since the given time, of the hours or days that have usage totals, in ascending order."""
    connection = connections[LOGS]
    with connection.cursor() as cursor:
        cursor.execute(STARTS, [span, connection.ops.adapt_datetimefield_value(since), span])
        return [as_aware(start) for (start,) in cursor.fetchall()]


def as_aware(start: Any) -> datetime:
    """Return a timezone-aware datetime; SQLite returns naive datetimes in UTC."""
    moment = start if isinstance(start, datetime) else datetime.fromisoformat(start)
    return moment.replace(tzinfo=UTC) if timezone.is_naive(moment) else moment


def list_folded(span: str, starts: Sequence[datetime]) -> set[datetime]:
    """Return the given hours or days that have a complete roll-up."""
    marks = UsageRollup.objects.filter(span=span, start__in=starts, dimension="", value="")
    return set(marks.values_list("start", flat=True))


class UsageRollups:
    """Writes roll-ups in a background thread, each for one hour or day."""

    def __init__(self) -> None:
        self._thread = RepeatingThread("usage-rollups", PAUSE_SECONDS, self.round, connections.close_all)
        self._due = float("-inf")
        self._failed: set[tuple[str, datetime]] = set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def round(self) -> None:
        """Roll up one hour or day; if none is left, do nothing until the next check. Database errors propagate."""
        if time.monotonic() < self._due:
            return
        with borrowed_connections():
            if not self.fold_next(timezone.now()):
                self._due = time.monotonic() + LOOK_SECONDS

    def fold_next(self, now: datetime) -> bool:
        """Roll up the newest ended hour or day that has no roll-up; return False if there is none."""
        for span, length in LENGTHS.items():
            ended = [start for start in list_starts(span, datetime.min) if start + length + FOLD_DELAY <= now]
            folded = list_folded(span, ended)
            left = [start for start in ended if start not in folded and (span, start) not in self._failed]
            if left:
                # If this fails, roll up all other hours and days before trying this one again.
                self._failed.add((span, left[-1]))
                fold(span, left[-1])
                self._failed.discard((span, left[-1]))
                if len(left) % 24 == 1 and len(left) > 1:
                    log.info("Usage roll-ups: %d to go", len(left) - 1)
                return True
        self._failed.clear()
        return False


def fold(span: str, start: datetime) -> None:
    """Write the roll-up of an hour or day; stop if a late request or another process interferes."""
    period = UsageRollup.objects.filter(span=span, start=start)
    mark = UsageRollup(span=span, start=start, value=secrets.token_hex(8))
    with _exclusive():
        period.delete()
        mark.save()
    rows = [row for dimension in DIMENSIONS for row in sum_up(span, start, dimension)]
    histograms = count_latencies(start, period_end(span, start))
    for row in rows:
        # There is one row for each currency, but only the first of them contains the histograms.
        row.latencies = histograms.pop((row.dimension, row.value), None)
    # Hold the lock for one batch at a time, so that late requests do not wait for the whole roll-up.
    for at in range(0, len(rows), BATCH):
        with _exclusive():
            if not _holds(period, mark):
                return
            UsageRollup.objects.bulk_create(rows[at : at + BATCH])
    with _exclusive():
        _holds(period, mark) and period.filter(pk=mark.pk).update(value="", latencies=histograms[ALL])


def _holds(period: QuerySet[UsageRollup], mark: UsageRollup) -> bool:
    return period.filter(dimension="", value=mark.value).exists()


def sum_up(span: str, start: datetime, dimension: str) -> Iterator[UsageRollup]:
    rows = UsageSum.objects.filter(span=span, start=start).order_by().values_list(dimension, "currency")
    for value, currency, *counts in rows.annotate(*(Sum(name) for name in COUNTS)):
        # PostgreSQL returns sums of bigint columns as decimals.
        sums = dict(zip(COUNTS, map(int, counts), strict=True))
        yield UsageRollup(span=span, start=start, dimension=dimension, value=value, currency=currency, **sums)


@contextmanager
def _exclusive() -> Iterator[None]:
    # The lock excludes other roll-ups and late requests. SQLite allows only one writer at a time anyway.
    with transaction.atomic(using=LOGS):
        if connections[LOGS].vendor == POSTGRESQL:
            with connections[LOGS].cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ROLLUP_LOCK])
        yield


usage_rollups = owned(UsageRollups)
