"""The one meaning of "the last 24 hours", and of every length in hours or days: whole hours of the clock.

The window begins with the hour in which the moment that long ago lies, so 24 hours are never less than that, at most an
hour more. Sums are kept by the hour: this is the only window that pages, searches and sums can all count alike.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
DAY_HOURS = 24
DAY = DAY_HOURS * HOUR


def hour_of(moment: datetime) -> datetime:
    """Return the beginning of the moment's hour, in UTC as the log keeps it."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def window_start(now: datetime, length: timedelta = DAY) -> datetime:
    """Return when the window of that length began that ends now."""
    return hour_of(now - length)
