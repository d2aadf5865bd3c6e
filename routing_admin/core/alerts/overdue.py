"""Is a daily or weekly job overdue? Its own earlier runs say how often it is to run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

DAY = timedelta(days=1)
APART = timedelta(hours=6)
"""Runs closer together than this are one occasion: a run that was repeated says nothing of a schedule."""
UNKNOWN = timedelta(days=4)
"""What is taken for the interval of a job that has run once."""
LONGEST = 31 * DAY


def is_overdue(runs: Sequence[datetime], now: datetime) -> bool:
    """Whether twice the usual interval has passed since the last run; `runs` are the newest first.

    A job that never ran was never set up, and is not overdue.
    """
    if not runs:
        return False
    last = runs[0]
    usual = next((last - each for each in runs if last - each >= APART), UNKNOWN)
    return now - last > 2 * min(max(usual, DAY), LONGEST)
