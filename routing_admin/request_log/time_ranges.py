"""Split the log into time ranges for queries, and define windows of hours and days.

PostgreSQL plans a query for every daily partition in the query's range. Therefore the log is searched a few days at a
time, beginning with the newest days, which usually contain the result. Without partitions, the log is a single range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TypeVar

from django.db.models import Model, QuerySet

from routing_admin.platform.databases.postgresql.partitions import existing_days

Row = TypeVar("Row", bound=Model)
FIRST, GROWTH = timedelta(days=2), 16
"""Length of the first range, and the factor by which the length grows from each range to the next."""


@dataclass(frozen=True, slots=True)
class DayRange:
    """A half-open time range; None means no bound."""

    start: datetime | None = None
    stop: datetime | None = None


EVER = DayRange()


def back_from(newest: datetime) -> Iterator[DayRange]:
    """Yield time ranges of the log backwards from `newest`; the first range also covers newer rows."""
    days, stop = existing_days(), None
    if days is not None:
        length, start = FIRST, _midnight(newest) + timedelta(days=1) - FIRST
        while start > days[0]:
            yield DayRange(start, stop)
            length *= GROWTH
            start, stop = start - length, start
    yield DayRange(None, stop)


def on_from(oldest: datetime) -> Iterator[DayRange]:
    """Yield time ranges of the log forwards from `oldest`."""
    days, start = existing_days(), _midnight(oldest)
    if days is not None:
        length, stop = FIRST, start + FIRST
        while stop < days[1]:
            yield DayRange(start, stop)
            length *= GROWTH
            start, stop = stop, stop + length
    yield DayRange(start, None)


def within(rows: QuerySet[Row], day_range: DayRange, column: str, later: timedelta = timedelta()) -> QuerySet[Row]:
    """Return the rows whose `column` is in the range, or up to `later` after the range's end."""
    rows = rows.filter(**{f"{column}__gte": day_range.start}) if day_range.start else rows
    return rows.filter(**{f"{column}__lt": day_range.stop + later}) if day_range.stop else rows


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)


# This is the only definition of "the last 24 hours" and of every other period in hours or days. A window starts at the
# beginning of a clock hour, so it is up to an hour longer than its name says. Totals are stored by the hour, so pages,
# searches and totals all cover the same window.

HOUR = timedelta(hours=1)
DAY_HOURS = 24
DAY = DAY_HOURS * HOUR


def hour_start(moment: datetime) -> datetime:
    """Return the start of the clock hour in UTC."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def window_start(now: datetime, length: timedelta = DAY) -> datetime:
    """Return the start of the window of this length that ends at `now`."""
    return hour_start(now - length)
