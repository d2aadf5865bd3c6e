"""Periods of the usage page: a number of days until today, or a chosen range of days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from routing_admin.console.base.tags.charting import Step
from routing_admin.request_log.summed_times import HOURS_UP_TO

DAY = timedelta(days=1)
PERIODS: Mapping[str, tuple[timedelta, Step, str | Promise]] = {
    "1": (DAY, Step.HOUR, gettext_lazy("24 hours")),
    "7": (7 * DAY, Step.DAY, gettext_lazy("7 days")),
    "30": (30 * DAY, Step.DAY, gettext_lazy("30 days")),
    "90": (90 * DAY, Step.WEEK, gettext_lazy("90 days")),
    "365": (365 * DAY, Step.MONTH, gettext_lazy("a year")),
}
"""Maps a number of days to the length of the period and of its buckets.

No period has more than 31 buckets, so that each bucket is easy to point at.
"""
DEFAULT = "30"
LONGEST_BY_DAY, LONGEST_BY_WEEK = 31 * DAY, 31 * 7 * DAY
EARLIEST = date(2000, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period from `since` to `until` (exclusive), where None means now. `params` are the query parameters for it."""

    since: datetime
    until: datetime | None
    length: timedelta
    step: Step
    params: Mapping[str, str]

    @property
    def name(self) -> str:
        """The period as it appears in file names."""
        return "-to-".join(self.params.values()) if self.until else f"{self.params['days']}-days"


def read_period(params: Mapping[str, str]) -> Period:
    """Return the period of the last `days` days, or from the day `from` to the day `to`; by default the last month.

    If only one of these two days is given, the period is a month long. Days in the wrong order are swapped.
    """
    first, last = _read_day(params.get("from", "")), _read_day(params.get("to", ""))
    if params.get("days") in PERIODS or (first is None and last is None):
        return _last_days(params.get("days", ""))
    today = timezone.localdate()
    last = last or min(today, (first or today) + 29 * DAY)
    first = first or last - 29 * DAY
    first, last = max(EARLIEST, min(first, last, today)), min(max(first, last), today)
    length = (last - first) + DAY
    step = Step.MONTH
    if length <= LONGEST_BY_WEEK:
        step = Step.DAY if length <= LONGEST_BY_DAY else Step.WEEK
    return Period(
        since=_midnight(first),
        until=_midnight(last + DAY),
        length=length,
        step=step,
        params={"from": first.isoformat(), "to": last.isoformat()},
    )


def _last_days(days: str) -> Period:
    word = days if days in PERIODS else DEFAULT
    length, step, _label = PERIODS[word]
    whole_days = length if length <= HOURS_UP_TO else length - DAY
    return Period(since=timezone.now() - whole_days, until=None, length=length, step=step, params={"days": word})


def _read_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))
