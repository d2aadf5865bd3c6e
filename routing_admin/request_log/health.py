"""What the last day's requests say: how each provider does, how many requests came, fell back and failed.

Numbers are taken from the log by few queries over its indexes and judged here by plain functions of values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, pairwise
from typing import Any

from django.db import connections
from django.db.models import CharField
from django.db.models.functions import Cast

from capabilities.core.wire import Fault
from routing_admin.core.fallback.chain import ABORTED, CANCELLED, OK, SkipReason
from routing_admin.core.fallback.table import CALLERS_FAULTS
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.request_log.time_ranges import DAY, DAY_HOURS, HOUR, window_start

BARS = DAY_HOURS + 1
"""Hours that a window of 24 touches, the current one with them."""
BUCKETS = 12
"""Stretches of five minutes in a provider's hour."""

MOST = 5000
"""Newest attempts of the hour that are looked at."""

SLOW_MS = 10_000.0
"""When half of the answers take longer until their first content, a provider counts as slow."""

DOWN_AFTER = 3
"""When that many calls in a row, or all there were, failed, a provider counts as down."""

UNASKED = frozenset({*(reason.value for reason in SkipReason), CANCELLED, ABORTED, Fault.FIRE_DRILL, *CALLERS_FAULTS})
"""Outcomes of attempts that say nothing about the provider, because it was not asked or not to blame."""

STREAMS_OF_AN_HOUR = 100
"""The newest streamed answers of each hour whose time to first content is looked at."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One call: when, what came of it, and how long until its first content, else its end (milliseconds)."""

    at: datetime
    outcome: str
    ms: float


@dataclass(frozen=True, slots=True)
class Health:
    """How a provider did in the last hour; `status` is ok, slow, down or unknown, times in milliseconds."""

    status: str = "unknown"
    calls: int = 0
    p50: float | None = None
    p95: float | None = None
    series: tuple[int, ...] = (0,) * BUCKETS
    failure: Sample | None = None

    @property
    def tone(self) -> str:
        """The colour of its sparkline."""
        return {"slow": "warn", "down": "bad", "ok": "ok"}.get(self.status, "")


def judge(samples: Sequence[Sample], now: datetime) -> Health:
    """The health in samples of one provider, newest first."""
    if not samples:
        return Health()
    answered = sorted(each.ms for each in samples if each.outcome == OK)
    failure = next((each for each in samples if each.outcome != OK), None)
    lately = samples[:DOWN_AFTER]
    if all(each.outcome != OK for each in lately):
        status = "down"
    else:
        status = "slow" if answered and quantile(answered, 0.5) > SLOW_MS else "ok"
    series = [0] * BUCKETS
    for each in samples:
        place = BUCKETS - 1 - int((now - each.at) / (HOUR / BUCKETS))
        series[min(max(place, 0), BUCKETS - 1)] += 1
    p50, p95 = (quantile(answered, share) if answered else None for share in (0.5, 0.95))
    return Health(status, len(samples), p50, p95, tuple(series), failure)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which that share of the sorted values lies: one that occurred (nearest rank)."""
    rank = max(1, -(-len(ordered) * share // 1))
    return ordered[int(rank) - 1]


def provider_health(now: datetime, models: Collection[tuple[str, str]] = ()) -> dict[str, Health]:
    """Every provider that was called in the last hour, by name; one query.

    `models` are those that the configuration names, each with its provider: that there is no other says nothing of it.
    """
    columns = ("provider", "model", "moment", "outcome", "first_content_ms", "duration_ms")
    rows = AttemptLog.objects.filter(at__gt=now - HOUR).annotate(moment=Cast("at", CharField())).order_by("-at")
    by_name: dict[str, list[Sample]] = {}
    for name, model, moment, outcome, first, duration in rows.values_list(*columns)[:MOST]:
        is_stray = outcome == Fault.HTTP_404 and (name, model) not in models
        if outcome not in UNASKED and not is_stray:
            ms = duration if first is None else first
            by_name.setdefault(name, []).append(Sample(_read_moment(moment), outcome, ms))
    return {name: judge(samples, now) for name, samples in by_name.items()}


def _read_moment(text: str) -> datetime:
    """A time of the log, read as a text: a tenth of what the ORM makes one for."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Day:
    """24 hours and what has passed of the current one, by the hour: requests, those another candidate answered, those
    that failed.
    """

    requests: tuple[int, ...] = (0,) * BARS
    fell_back: tuple[int, ...] = (0,) * BARS
    failed: tuple[int, ...] = (0,) * BARS

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[Any]]) -> Day:
        """The day of its hours, each with its three numbers."""
        return cls(*(tuple(column) for column in zip(*rows, strict=True)))

    @property
    def total(self) -> int:
        """Requests of all hours."""
        return sum(self.requests)

    def share(self, part: Sequence[int]) -> float | None:
        """Percent of all requests; None when there were none."""
        return 100 * sum(part) / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class FirstContent:
    """Milliseconds until the first content of streamed answers: the median and the 95th percentile, None where there
    was none, and the median of each hour, the current one last.
    """

    p50: float | None = None
    p95: float | None = None
    series: tuple[float, ...] = (0.0,) * BARS


def first_content(now: datetime) -> FirstContent:
    """The last 24 hours, each by its newest streamed answers, so that a day of millions costs no more; one query."""
    hours: dict[int, list[float]] = {}
    for place, ms in _newest_streams(window_start(now)):
        hours.setdefault(place, []).append(ms)
    every = sorted(ms for hour in hours.values() for ms in hour)
    if not every:
        return FirstContent()
    series = tuple(quantile(sorted(hours[place]), 0.5) if place in hours else 0.0 for place in range(BARS))
    return FirstContent(quantile(every, 0.5), quantile(every, 0.95), series)


def _newest_streams(start: datetime) -> list[tuple[int, float]]:
    """The place of the hour and the milliseconds of up to so many streamed answers of each, read from an index."""
    connection = connections[LOGS]
    of_an_hour = (
        "SELECT * FROM (SELECT {place} AS place, first_content_ms FROM {table} WHERE started_at >= %s"
        " AND started_at < %s AND first_content_ms IS NOT NULL ORDER BY started_at DESC LIMIT {most}) AS hour{place}"
    )
    table = connection.ops.quote_name(RequestLog._meta.db_table)
    parts = [of_an_hour.format(place=place, table=table, most=STREAMS_OF_AN_HOUR) for place in range(BARS)]
    bounds = [connection.ops.adapt_datetimefield_value(start + place * HOUR) for place in range(BARS + 1)]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), list(chain.from_iterable(pairwise(bounds))))
        return list(cursor.fetchall())


BY_HOUR = """
WITH hour(start, stop) AS (VALUES {hours})
SELECT
  (SELECT COUNT(*) FROM {table} WHERE started_at >= start AND started_at < stop {days}),
  (SELECT COUNT(*) FROM {table} WHERE started_at >= start AND started_at < stop {days} AND fell_back),
  (SELECT COUNT(*) FROM {table} WHERE started_at >= start AND started_at < stop {days} AND NOT (outcome = 'ok')
    AND ending = 'failed')
FROM hour ORDER BY start
"""
"""A range of the index for each hour and number: a third of what grouping the same rows costs."""
DAYS = "AND started_at >= %s AND started_at < %s"
"""All hours together: PostgreSQL else plans for the tables of all days, SQLite would read the index by it."""


def two_days(now: datetime) -> tuple[Day, Day]:
    """The last 24 hours (`window`) and the 24 before them; one query that reads indexes only."""
    connection = connections[LOGS]
    start, hours = window_start(now) - DAY, DAY_HOURS + BARS
    bounds = [connection.ops.adapt_datetimefield_value(start + place * HOUR) for place in range(hours + 1)]
    sql = BY_HOUR.format(
        table=RequestLog._meta.db_table,
        hours=", ".join(["(%s, %s)"] * hours),
        days=DAYS if connection.vendor == POSTGRESQL else "",
    )
    values = list(chain.from_iterable(pairwise(bounds)))
    if connection.vendor == POSTGRESQL:
        values += [bounds[0], bounds[-1]] * 3
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows = cursor.fetchall()
    return Day.of_rows(rows[DAY_HOURS:]), Day.of_rows(rows[:DAY_HOURS])
