"""Sums of ended hours and days by single columns, so that pages read thousands of rows where `UsageSum` has a million.

Each serving process writes the roll-ups ("folds" the hours and days) that are missing, newest first, including those of
hours and days that a migration or `restore` added. A fold starts by writing a mark with a random token. A late request
deletes the mark in its own transaction, and another process that starts the same fold replaces it. A fold that lost its
mark stops, and readers ignore its rows: they use the sums of every hour or day without a complete mark. Locks are
therefore held for one batch of rows only.
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
"""Delay of a roll-up after the end of its hour or day. Late requests are rare by then, and clocks may differ."""
BATCH = 500
"""Number of rows per transaction."""
PAUSE_SECONDS, LOOK_SECONDS = 0.5, 60.0
"""Seconds between two folds, and seconds before the next check if nothing was left to fold."""
STARTS = """
WITH RECURSIVE starts (start) AS (
    SELECT MIN(start) FROM routing_admin_usagesum WHERE span = %s AND start >= %s
    UNION ALL
    SELECT (SELECT MIN(start) FROM routing_admin_usagesum WHERE span = %s AND start > starts.start)
    FROM starts WHERE starts.start IS NOT NULL
)
SELECT start FROM starts WHERE start IS NOT NULL
"""
"""Query for the starts of the hours or days that have sums, each found by one index lookup."""


def list_starts(span: str, since: datetime) -> list[datetime]:
    """Return, in order, the starts of the hours or days that have sums."""
    connection = connections[LOGS]
    with connection.cursor() as cursor:
        cursor.execute(STARTS, [span, connection.ops.adapt_datetimefield_value(since), span])
        return [as_aware(start) for (start,) in cursor.fetchall()]


def as_aware(start: Any) -> datetime:
    """Return a datetime with a time zone; SQLite returns naive datetimes in UTC."""
    moment = start if isinstance(start, datetime) else datetime.fromisoformat(start)
    return moment.replace(tzinfo=UTC) if timezone.is_naive(moment) else moment


def list_folded(span: str, starts: Sequence[datetime]) -> set[datetime]:
    """Return the given hours or days that have a complete roll-up."""
    marks = UsageRollup.objects.filter(span=span, start__in=starts, dimension="", value="")
    return set(marks.values_list("start", flat=True))


class UsageRollups:
    """Folds hours and days for this process, in a background thread; each fold writes one roll-up."""

    def __init__(self) -> None:
        self._thread = RepeatingThread("usage-rollups", PAUSE_SECONDS, self.round, connections.close_all)
        self._due = float("-inf")
        self._failed: set[tuple[str, datetime]] = set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def round(self) -> None:
        """Fold one hour or day, or wait for the next check if none is left. Raise database errors."""
        if time.monotonic() < self._due:
            return
        with borrowed_connections():
            if not self.fold_next(timezone.now()):
                self._due = time.monotonic() + LOOK_SECONDS

    def fold_next(self, now: datetime) -> bool:
        """Fold the newest ended hour or day without a roll-up; return False if there is none."""
        for span, length in LENGTHS.items():
            ended = [start for start in list_starts(span, datetime.min) if start + length + FOLD_DELAY <= now]
            folded = list_folded(span, ended)
            left = [start for start in ended if start not in folded and (span, start) not in self._failed]
            if left:
                # If the fold fails, other hours and days are folded before this one is tried again.
                self._failed.add((span, left[-1]))
                fold(span, left[-1])
                self._failed.discard((span, left[-1]))
                if len(left) % 24 == 1 and len(left) > 1:
                    log.info("Usage roll-ups: %d to go", len(left) - 1)
                return True
        self._failed.clear()
        return False


def fold(span: str, start: datetime) -> None:
    """Write the roll-up of an hour or day, unless a late request or another process interferes."""
    period = UsageRollup.objects.filter(span=span, start=start)
    mark = UsageRollup(span=span, start=start, value=secrets.token_hex(8))
    with _exclusive():
        period.delete()
        mark.save()
    rows = [row for dimension in DIMENSIONS for row in sum_up(span, start, dimension)]
    histograms = count_latencies(start, period_end(span, start))
    for row in rows:
        # A time has one row per currency, and only the first of them has the histograms.
        row.latencies = histograms.pop((row.dimension, row.value), None)
    # The lock is held for one batch only, so that late requests do not wait for the whole fold.
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
        sums = dict(zip(COUNTS, map(int, counts), strict=True))  # PostgreSQL returns sums as decimals.
        yield UsageRollup(span=span, start=start, dimension=dimension, value=value, currency=currency, **sums)


@contextmanager
def _exclusive() -> Iterator[None]:
    # The lock excludes other folds and late requests. SQLite always has only one writer at a time.
    with transaction.atomic(using=LOGS):
        if connections[LOGS].vendor == POSTGRESQL:
            with connections[LOGS].cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ROLLUP_LOCK])
        yield


usage_rollups = owned(UsageRollups)
