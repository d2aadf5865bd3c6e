"""Latencies of the requests that a search matches, over time.

Ended hours and days come from roll-ups if the search is for an agent, a route or everything. The rest, and any other
search, is counted by rows, as far back as charts of requests do (`volume.bounded_start`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import CharField, Count
from django.db.models.functions import Cast, Left

from routing_admin.models import UsageRollup, UsageSum
from routing_admin.request_log.latencies import ALL, Histogram, Latency, Place, bucket_of, select_timed
from routing_admin.request_log.search import filter_rows
from routing_admin.request_log.search_words import Search
from routing_admin.request_log.time_ranges import DAY, HOUR, hour_of
from routing_admin.request_log.totals import SUMMED_TERMS, is_summed, next_day
from routing_admin.request_log.usage_rollups import list_folded
from routing_admin.request_log.usage_sums import HOURS_STAY, day_of
from routing_admin.request_log.volume import ANSWERS, WORDS, bounded_start

Range = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class LatencySeries:
    """Histograms by the start of their minute, hour or day, of the requests from `since` on."""

    since: datetime
    points: Mapping[datetime, Histogram]


def read_latencies(
    search: Search, latency: Latency, start: datetime, stop: datetime, now: datetime, *, by_minute: bool
) -> LatencySeries:
    """Return the latencies of answered requests between two times; at most ten queries."""
    points: dict[datetime, Histogram] = defaultdict(Counter)
    left = [(start, stop)]
    place = None if by_minute else _find_place(search)
    if place is not None:
        found, left = _read_rollups(latency, place, start, stop, now)
        points.update(found)
    since = bounded_start(left[0][0], left[-1][1], now) if left else start
    for begin, end in left:
        if max(begin, since) < end:
            for at, histogram in read_rows(latency, search, (max(begin, since), end), now, by_minute).items():
                points[at] += histogram
    return LatencySeries(since if left and since > left[0][0] else start, points)


def _find_place(search: Search) -> Place | None:
    """Return the dimension and value whose roll-ups have the histograms of a search, or None without such roll-ups."""
    terms = [(column, search.get(key)) for key, column in SUMMED_TERMS.items() if search.get(key)]
    has_answers = WORDS.get(search.get("status"), frozenset()) >= ANSWERS
    if len(terms) > 1 or not has_answers or not is_summed(search.having("status", "")):
        return None
    return terms[0] if terms else ALL


def _read_rollups(
    latency: Latency, place: Place, start: datetime, stop: datetime, now: datetime
) -> tuple[dict[datetime, Histogram], list[Range]]:
    """Return histograms from the roll-ups of days and hours, and the ranges of time that no roll-up covers."""
    found: dict[datetime, Histogram] = {}
    covered: list[Range] = []
    for span, starts in _list_periods(start, stop, now):
        open_starts = [at for at in starts if not any(begin <= at < end for begin, end in covered)]
        folded = list_folded(span, open_starts)
        rows = UsageRollup.objects.filter(span=span, start__in=folded, dimension=place[0], value=place[1])
        for at, latencies in rows.values_list("start", "latencies"):
            # A time has a row per currency, and one of these has the histograms.
            counts = (latencies or {}).get(latency.value, {})
            found.setdefault(at, Counter()).update({int(bucket): count for bucket, count in counts.items()})
        covered += [(at, next_day(at) if span == UsageSum.DAY else at + HOUR) for at in folded]
    return found, list(_gaps(start, stop, sorted(covered)))


def _list_periods(start: datetime, stop: datetime, now: datetime) -> Iterator[tuple[str, Sequence[datetime]]]:
    # Hours are only needed where a day is incomplete, and are kept for a week.
    if stop - start > 2 * DAY:
        yield UsageSum.DAY, list(_walk(day_of(start), start, stop, is_day=True))
    yield UsageSum.HOUR, list(_walk(hour_of(max(start, now - HOURS_STAY)), start, stop, is_day=False))


def _walk(at: datetime, start: datetime, stop: datetime, *, is_day: bool) -> Iterator[datetime]:
    while (end := next_day(at) if is_day else at + HOUR) <= stop:
        if at >= start:
            yield at
        at = end


def _gaps(start: datetime, stop: datetime, covered: Sequence[Range]) -> Iterator[Range]:
    for begin, end in covered:
        if start < begin:
            yield start, begin
        start = max(start, end)
    if start < stop:
        yield start, stop


def read_rows(
    latency: Latency, search: Search, times: Range, now: datetime, by_minute: bool
) -> dict[datetime, Histogram]:
    """Return the histograms of the matching rows between two times, by minute or hour. This takes one query."""
    # Times are grouped as text, in UTC: an hour has 13 characters, and a minute has 16.
    place = Left(Cast("started_at", CharField()), 16 if by_minute else 13)
    rows = filter_rows(search, now).filter(started_at__gte=times[0], started_at__lt=times[1])
    counted = select_timed(rows, latency).annotate(place=place).values_list("place", bucket_of(latency))
    found: dict[datetime, Histogram] = defaultdict(Counter)
    for text, bucket, count in counted.annotate(count=Count("pk")):
        found[datetime.fromisoformat(text if by_minute else f"{text}:00").replace(tzinfo=UTC)][bucket] += count
    return found
