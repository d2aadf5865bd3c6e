"""In which stretches of days is the log searched? PostgreSQL plans for each day's table, so for few of them at a time.

The newest days come first, and mostly have what is looked for; a log without tables of days is one stretch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TypeVar

from django.db.models import Model, QuerySet

from routing_admin.platform.databases.postgresql.partitions import days_there

Row = TypeVar("Row", bound=Model)
FIRST, GROWTH = timedelta(days=2), 16
"""How long the first stretch is, and how many times as long each next one."""


@dataclass(frozen=True, slots=True)
class DayRange:
    """From a moment on until before another; None is without end."""

    start: datetime | None = None
    stop: datetime | None = None


EVER = DayRange()


def back_from(newest: datetime) -> Iterator[DayRange]:
    """The stretches of the log, those before that moment one after the other; the first has what is newer, too."""
    days, stop = days_there(), None
    if days is not None:
        length, start = FIRST, _midnight(newest) + timedelta(days=1) - FIRST
        while start > days[0]:
            yield DayRange(start, stop)
            length *= GROWTH
            start, stop = start - length, start
    yield DayRange(None, stop)


def on_from(oldest: datetime) -> Iterator[DayRange]:
    """The stretches of the log after that moment, the oldest of them first."""
    days, start = days_there(), _midnight(oldest)
    if days is not None:
        length, stop = FIRST, start + FIRST
        while stop < days[1]:
            yield DayRange(start, stop)
            length *= GROWTH
            start, stop = stop, stop + length
    yield DayRange(start, None)


def within(rows: QuerySet[Row], stretch: DayRange, column: str, later: timedelta = timedelta()) -> QuerySet[Row]:
    """The rows of a stretch by that column, which may be so much later than it ends."""
    rows = rows.filter(**{f"{column}__gte": stretch.start}) if stretch.start else rows
    return rows.filter(**{f"{column}__lt": stretch.stop + later}) if stretch.stop else rows


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)


# The one meaning of "the last 24 hours", and of every length in hours or days: whole hours of the clock.
#
# The window begins with the hour in which the moment that long ago lies, so 24 hours are never less than that, at
# most an hour more. Sums are kept by the hour: this is the only window that pages, searches and sums can all count
# alike.

HOUR = timedelta(hours=1)
DAY_HOURS = 24
DAY = DAY_HOURS * HOUR


def hour_of(moment: datetime) -> datetime:
    """Return the beginning of the moment's hour, in UTC as the log keeps it."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def window_start(now: datetime, length: timedelta = DAY) -> datetime:
    """Return when the window of that length began that ends now."""
    return hour_of(now - length)
