"""Latencies over time, for the requests that match a search.

If the search is for one agent, for one route or for all requests, ended hours and days are read from roll-ups. Other
times and other searches are counted from rows, as far back as the charts of requests (`volume.bounded_start`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import CharField, Count
from django.db.models.functions import Cast, Left

from routing_admin.models import UsageRollup
from routing_admin.request_log.latencies import ALL, Histogram, Latency, RollupKey, bucket_expression, select_timed
from routing_admin.request_log.search import filter_rows
from routing_admin.request_log.search_words import Search
from routing_admin.request_log.summed_times import Range, in_any, split_range
from routing_admin.request_log.totals import SUMMED_TERMS, is_summed
from routing_admin.request_log.usage_rollups import list_folded
from routing_admin.request_log.volume import ANSWERS, SUMMED_STATUSES, bounded_start


@dataclass(frozen=True, slots=True)
class LatencySeries:
    """Histograms of the requests since `since`, by the start of their minute, hour or day."""

    since: datetime
    points: Mapping[datetime, Histogram]


def read_latencies(
    search: Search, latency: Latency, start: datetime, stop: datetime, now: datetime, *, by_minute: bool
) -> LatencySeries:
    """Return the latencies of answered requests between two times, with at most thirteen queries."""
    points: dict[datetime, Histogram] = defaultdict(Counter)
    left: Sequence[Range] = [(start, stop)]
    place = None if by_minute else _find_rollup_key(search)
    if place is not None:
        found, left = _read_rollups(latency, place, start, stop, now)
        points.update(found)
    since = start
    for begin, end in left:
        counted_from = bounded_start(begin, end, now)
        since = counted_from if counted_from > begin else since
        for at, histogram in read_rows(latency, search, (counted_from, end), now, by_minute).items():
            points[at] += histogram
    return LatencySeries(since, points)


def _find_rollup_key(search: Search) -> RollupKey | None:
    terms = [(column, search.get(key)) for key, column in SUMMED_TERMS.items() if search.get(key)]
    has_answers = SUMMED_STATUSES.get(search.get("status"), frozenset()) >= ANSWERS
    if len(terms) > 1 or not has_answers or not is_summed(search.having("status", "")):
        return None
    return terms[0] if terms else ALL


def _read_rollups(
    latency: Latency, place: RollupKey, start: datetime, stop: datetime, now: datetime
) -> tuple[dict[datetime, Histogram], Sequence[Range]]:
    found: dict[datetime, Histogram] = {}
    parts = split_range(start, stop, now, list_folded)
    rows = UsageRollup.objects.filter(in_any(parts.starts), dimension=place[0], value=place[1])
    for at, latencies in rows.values_list("start", "latencies"):
        # There is one row for each currency, but only one of these rows contains the histograms.
        counts = (latencies or {}).get(latency.value, {})
        found.setdefault(at, Counter()).update({int(bucket): count for bucket, count in counts.items()})
    return found, parts.rest


def read_rows(
    latency: Latency, search: Search, times: Range, now: datetime, by_minute: bool
) -> dict[datetime, Histogram]:
    """Return the histograms of matching rows between two times, by minute or by hour, with one query."""
    # Group by the beginning of each time's text in UTC: 13 characters identify the hour, and 16 the minute.
    place = Left(Cast("started_at", CharField()), 16 if by_minute else 13)
    rows = filter_rows(search, now).filter(started_at__gte=times[0], started_at__lt=times[1])
    counted = select_timed(rows, latency).annotate(place=place).values_list("place", bucket_expression(latency))
    found: dict[datetime, Histogram] = defaultdict(Counter)
    for text, bucket, count in counted.annotate(count=Count("pk")):
        found[datetime.fromisoformat(text if by_minute else f"{text}:00").replace(tzinfo=UTC)][bucket] += count
    return found
