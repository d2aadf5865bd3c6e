"""Count the requests that a search matches by outcome, over time.

If a search has only terms for which usage totals exist (agent, route and ending), its whole hours and days are read
from these totals. Incomplete hours and days, and any other search, are counted from the log's rows, but only from the
newest `MAX_SCANNED`, because a chart is not worth reading a million rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum

from django.db.models import CharField, Count
from django.db.models.functions import Cast, Left

from routing_admin.core.fallback.chain import OK
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.models import RequestLog, UsageSum
from routing_admin.request_log.search import filter_rows
from routing_admin.request_log.search_words import Search, moment
from routing_admin.request_log.summed_times import has_hours, list_touched, period_end, period_start, split_range
from routing_admin.request_log.totals import SUMMED_TERMS, is_summed
from routing_admin.request_log.usage import Counts
from routing_admin.request_log.usage_rollups import list_folded
from routing_admin.request_log.usage_series import read_points

MAX_SCANNED = 30_000
"""Maximum number of requests to read for counting, whether they match or not."""
MIN_SCANNED_TIME = timedelta(minutes=10)
"""All rows of the newest period of this length are counted, so that a chart is never empty while requests arrive."""
COUNTED = ("requests", "failures", "refused", "cancelled", "fallbacks")


class Outcome(Enum):
    """How a request ended; `ANSWERED` means that the chain's first candidate answered."""

    ANSWERED = "answered"
    FALLBACK = "fallback"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    FAILED = "failed"


ANSWERS = frozenset({Outcome.ANSWERED, Outcome.FALLBACK})
SUMMED_STATUSES: Mapping[str, frozenset[Outcome]] = {
    "": frozenset(Outcome),
    OK: ANSWERS,
    RequestEnding.ANSWERED.value: ANSWERS,
    "fallback": frozenset({Outcome.FALLBACK}),
    "failed": frozenset({Outcome.FAILED}),
    "refused": frozenset({Outcome.REFUSED}),
    "cancelled": frozenset({Outcome.CANCELLED}),
    "error": frozenset(Outcome) - ANSWERS,
}
"""Maps the values of `status:` that can be counted from usage totals to the outcomes that they match."""

Point = dict[Outcome, int]


@dataclass(slots=True)
class Volume:
    """Numbers of matching requests by outcome and by the start of their minute, ten minutes, hour or day.

    Requests since `since` are counted, which is later than the start of the search's period if there are too many rows.
    """

    since: datetime
    points: dict[datetime, Point] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))

    def add(self, at: datetime, outcome: Outcome, count: int) -> None:
        self.points[at][outcome] += count


def find_range(search: Search, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the earliest and latest time of requests that a search can match, or None; this takes one query."""
    oldest = RequestLog.objects.order_by("started_at", "pk").values_list("started_at", flat=True).first()
    since, until = (moment(search.get(key), now) if search.get(key) else None for key in ("since", "until"))
    if oldest is None:
        return None
    start, stop = max(since or oldest, oldest), min(until or now, now)
    return (start, stop) if start < stop else None


def count_volume(search: Search, start: datetime, stop: datetime, now: datetime, *, by_minute: bool) -> Volume:
    """Return the volume between two times, with at most twelve queries."""
    if by_minute or search.get("status") not in SUMMED_STATUSES or not is_summed(search.having("status", "")):
        return _count_rows(search, start, stop, now, by_minute=by_minute)
    # The totals of the log's oldest hour or day are complete, even if some of its rows have been removed. Use them,
    # unless the search begins within that hour or day.
    since = moment(search.get("since"), now) if search.get("since") else None
    is_oldest = since is None or since < start
    first = period_start(UsageSum.HOUR if has_hours(start, now) else UsageSum.DAY, start) if is_oldest else start
    parts, volume = split_range(first, None if stop >= now else stop, now), Volume(start)
    for begin, end in parts.rest:
        # Shorten the range only at its beginning, because a gap at the end of a chart would look like an outage.
        counted = _count_rows(search, max(begin, start), end, now, by_minute=False, is_bounded=begin == first)
        volume.since = counted.since if begin == first else volume.since
        for at, point in counted.points.items():
            for outcome, count in point.items():
                volume.add(at, outcome, count)
    _add_sums(volume, search, parts.starts)
    return volume


def _add_sums(volume: Volume, search: Search, starts: Mapping[str, Sequence[datetime]]) -> None:
    filters = {column: search.get(key) for key, column in SUMMED_TERMS.items() if search.get(key)}
    column, names = next(((column, [name]) for column, name in filters.items() if len(filters) == 1), ("", []))
    wanted = SUMMED_STATUSES[search.get("status")]
    for span, moments in starts.items():
        # A roll-up is grouped by a single column, so it cannot be filtered by two columns.
        folded = list_folded(span, moments) if len(filters) < 2 else set()
        found = read_points(span, moments, folded, column, names, {} if column else filters, COUNTED)
        for points in found.values():
            for start, counts in points.items():
                for outcome, count in _outcomes(counts):
                    if count and outcome in wanted:
                        volume.add(start, outcome, count)


def _outcomes(counts: Counts) -> Iterator[tuple[Outcome, int]]:
    unanswered = counts.failures + counts.refused + counts.cancelled
    # In totals that earlier versions wrote, `fallbacks` may include streams that broke off.
    fallbacks = min(counts.fallbacks, counts.requests - unanswered)
    yield Outcome.ANSWERED, counts.requests - unanswered - fallbacks
    yield Outcome.FALLBACK, fallbacks
    yield Outcome.REFUSED, counts.refused
    yield Outcome.CANCELLED, counts.cancelled
    yield Outcome.FAILED, counts.failures


def _count_rows(
    search: Search, start: datetime, stop: datetime, now: datetime, *, by_minute: bool, is_bounded: bool = True
) -> Volume:
    volume = Volume(bounded_start(start, stop, now) if is_bounded else start)
    if volume.since >= stop:
        return volume
    # Group by the beginning of each time's text in UTC: 16 characters identify the minute, and 15 the ten minutes. Ten
    # minutes fit into the hours and days of every time zone, except for offsets such as +05:45, where a bar may be
    # shifted by five minutes.
    key = Left(Cast("started_at", CharField()), 16 if by_minute else 15)
    rows = filter_rows(search, now).filter(started_at__gte=volume.since, started_at__lt=stop).order_by()
    counted = rows.annotate(place=key).values_list("place", "ending", "fell_back").annotate(count=Count("pk"))
    for place, ending, fell_back, count in counted:
        at = datetime.fromisoformat(f"{place}{'' if by_minute else '0'}").replace(tzinfo=UTC)
        is_answer = ending == RequestEnding.ANSWERED
        outcome = (Outcome.FALLBACK if fell_back else Outcome.ANSWERED) if is_answer else Outcome(ending)
        volume.add(at, outcome, count)
    return volume


def bounded_start(start: datetime, stop: datetime, now: datetime) -> datetime:
    """Return a time, `start` or later, since which at most `MAX_SCANNED` requests began before `stop`."""
    spans = [UsageSum.HOUR] if has_hours(start, now) else [UsageSum.DAY, UsageSum.HOUR]
    for span in spans if has_hours(stop, now) else [UsageSum.DAY]:
        starts = list(list_touched(span, start, stop))
        points = read_points(span, starts, list_folded(span, starts), counts=("requests",)).get("", {})
        left, since = MAX_SCANNED, start
        for at in sorted(points, reverse=True):
            left -= points[at].requests
            if left < 0:
                since = max(start, period_end(span, at))
                break
        if since < stop:
            return since
        # Even the last day alone has too many requests, so count them by the hour instead.
        start = max(start, period_start(span, stop - timedelta(microseconds=1)))
    return max(start, stop - MIN_SCANNED_TIME)
