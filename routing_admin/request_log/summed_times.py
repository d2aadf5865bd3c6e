"""Split a time range into hours and days with usage totals, and ranges that must be read from the log's rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from routing_admin.models import UsageSum
from routing_admin.request_log.time_ranges import DAY, HOUR, hour_start
from routing_admin.request_log.usage_sums import HOUR_RETENTION, day_start

HOURS_UP_TO = timedelta(days=2)
"""Ranges up to this length are read by the hour, longer ranges by the day."""
Range = tuple[datetime, datetime]
Select = Callable[[str, Sequence[datetime]], Collection[datetime]]


def period_start(span: str, at: datetime) -> datetime:
    return hour_start(at) if span == UsageSum.HOUR else day_start(at)


def period_end(span: str, start: datetime) -> datetime:
    # The start of the next day, which may be 23 to 25 hours later.
    return start + HOUR if span == UsageSum.HOUR else day_start(start + DAY + HOUR)


def round_up(span: str, at: datetime) -> datetime:
    start = period_start(span, at)
    return at if start == at else period_end(span, start)


def _oldest_hour(now: datetime) -> datetime:
    return now - HOUR_RETENTION + HOUR  # Allow an hour for differences between the clocks of processes.


def has_hours(since: datetime, now: datetime) -> bool:
    """Return whether all hourly totals since a time are still kept; daily totals are kept even longer than the log."""
    return since > _oldest_hour(now)


@dataclass(frozen=True, slots=True)
class Split:
    """The days and hours with usage totals, by span (day or hour), and the ranges between them, in order."""

    starts: Mapping[str, Sequence[datetime]]
    rest: Sequence[Range]


def in_any(starts: Mapping[str, Collection[datetime]]) -> Q:
    """Return the query condition for the usage totals or roll-ups of these days and hours."""
    found = Q(pk__in=())
    for span, moments in starts.items():
        found |= Q(span=span, start__in=moments)
    return found


def list_touched(span: str, begin: datetime, stop: datetime) -> Iterator[datetime]:
    """Yield the start times of the days or hours that overlap a range."""
    at = period_start(span, begin)
    while at < stop:
        yield at
        at = period_end(span, at)


def split_range(start: datetime, stop: datetime | None, now: datetime, select: Select | None = None) -> Split:
    """Split the range from `start` to `stop` (exclusive) into days and hours with usage totals, and the rest.

    If `stop` is None, the range ends in the future, because other processes' clocks may be ahead. A range of more than
    two days, or one that begins before the oldest hourly totals, is split into days, with hours at its ends. `select`
    returns those of the given days or hours whose totals can be used, by default all.
    """
    has_days = (stop or now) - start > HOURS_UP_TO or not has_hours(start, now)
    if stop is None:
        stop = _tomorrow(_tomorrow(now)) if has_days else hour_start(now) + 2 * HOUR
    starts: dict[str, Sequence[datetime]] = {}
    covered, rest = list[Range](), [(start, stop)]
    for span in (UsageSum.DAY, UsageSum.HOUR) if has_days else (UsageSum.HOUR,):
        earliest = start if span == UsageSum.DAY else _oldest_hour(now)
        whole = [at for begin, end in rest for at in _list_whole(span, max(begin, earliest), end)]
        starts[span] = list(select(span, whole)) if select else whole
        covered += [(at, period_end(span, at)) for at in starts[span]]
        rest = list(_gaps(start, stop, sorted(covered)))
    return Split(starts, rest)


def _tomorrow(at: datetime) -> datetime:
    return period_end(UsageSum.DAY, day_start(at))


def _list_whole(span: str, begin: datetime, stop: datetime) -> Iterator[datetime]:
    return (at for at in list_touched(span, round_up(span, begin), stop) if period_end(span, at) <= stop)


def _gaps(start: datetime, stop: datetime, covered: Sequence[Range]) -> Iterator[Range]:
    for begin, end in covered:
        if start < begin:
            yield start, begin
        start = max(start, end)
    if start < stop:
        yield start, stop
