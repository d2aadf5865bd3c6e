"""Health of providers in the last hour, and request counts and times to first content for the last day.

A few queries on the log's indexes fetch the numbers, and functions without queries evaluate them.
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
from routing_admin.core.fallback.table import CALLERS_FAULTS, TABLE, TIMEOUT_CODE, UNREACHABLE_CODE, Group
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.request_log.time_ranges import DAY, DAY_HOURS, HOUR, window_start

BARS = DAY_HOURS + 1
"""Number of clock hours that a window of 24 hours overlaps, including the current hour."""
BUCKETS = 12
"""Number of buckets, of five minutes each, in which a provider's calls of the last hour are counted."""

MAX_SAMPLES = 5000
"""Maximum number of attempts to read from the last hour, starting with the newest."""

SLOW_MS = 10_000.0
"""A provider counts as slow if its median time to first content exceeds this number of milliseconds."""

FAILED_AFTER = 3
"""A provider counts as failed if its newest calls, up to this many, all failed."""
FAILED = ("down", "rejected", "failing")
"""How a provider can fail: it does not respond, it refuses the key, or it returns errors."""

NEUTRAL_OUTCOMES = frozenset(
    {*(reason.value for reason in SkipReason), CANCELLED, ABORTED, Fault.FIRE_DRILL, *CALLERS_FAULTS}
)
"""Outcomes that say nothing about a provider, because it was not called or not at fault."""

STREAMS_OF_AN_HOUR = 100
"""Maximum number of streamed answers per hour whose time to first content is read, starting with the newest."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A call's time, its outcome, and the milliseconds until its first content, or until its end without content."""

    at: datetime
    outcome: str
    ms: float


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a provider in the last hour; times are in milliseconds.

    `status` is ok, slow or unknown, or one of `FAILED` if the newest calls failed. `answered` is the time of the newest
    answer, and `failure` is the newest failure.
    """

    status: str = "unknown"
    calls: int = 0
    p50: float | None = None
    p95: float | None = None
    series: tuple[int, ...] = (0,) * BUCKETS
    failure: Sample | None = None
    answered: datetime | None = None

    @property
    def tone(self) -> str:
        return "bad" if self.status in FAILED else {"slow": "warn", "ok": "ok"}.get(self.status, "")


def judge(samples: Sequence[Sample], now: datetime) -> Health:
    """Return the health of the provider to which these samples belong; the samples are sorted newest first."""
    if not samples:
        return Health()
    answered = sorted(sample.ms for sample in samples if sample.outcome == OK)
    failure = next((sample for sample in samples if sample.outcome != OK), None)
    answer = next((sample.at for sample in samples if sample.outcome == OK), None)
    recent = samples[:FAILED_AFTER]
    if all(sample.outcome != OK for sample in recent):
        status = name_failure(samples[0].outcome)
    else:
        status = "slow" if answered and quantile(answered, 0.5) > SLOW_MS else "ok"
    series = [0] * BUCKETS
    for sample in samples:
        index = BUCKETS - 1 - int((now - sample.at) / (HOUR / BUCKETS))
        series[min(max(index, 0), BUCKETS - 1)] += 1
    p50, p95 = (quantile(answered, share) if answered else None for share in (0.5, 0.95))
    return Health(status, len(samples), p50, p95, tuple(series), failure, answer)


def name_failure(outcome: str) -> str:
    """Return the value of `FAILED` for the outcome of a call to a provider or of a test of the provider."""
    row = TABLE.get(outcome)
    if row is None:
        return "failing"
    if not {Group.AUTH, Group.QUOTA}.isdisjoint(row.groups):
        return "rejected"
    return "down" if row.code in (UNREACHABLE_CODE, TIMEOUT_CODE) else "failing"


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the nearest-rank quantile of sorted values, which is always one of them."""
    rank = max(1, -(-len(ordered) * share // 1))
    return ordered[int(rank) - 1]


def provider_health(now: datetime, models: Collection[tuple[str, str]] = (), provider: str = "") -> dict[str, Health]:
    """Return the health of each provider called in the last hour, or only of the named provider, with one query.

    `models` contains the configured pairs of provider and model. A 404 for any other model does not count against its
    provider.
    """
    columns = ("provider", "model", "moment", "outcome", "first_content_ms", "duration_ms")
    rows = AttemptLog.objects.filter(at__gt=now - HOUR).annotate(moment=Cast("at", CharField())).order_by("-at")
    rows = rows.filter(provider=provider) if provider else rows
    by_name: dict[str, list[Sample]] = {}
    for name, model, moment, outcome, first, duration in rows.values_list(*columns)[:MAX_SAMPLES]:
        is_stray = outcome == Fault.HTTP_404 and (name, model) not in models
        if outcome not in NEUTRAL_OUTCOMES and not is_stray:
            ms = duration if first is None else first
            by_name.setdefault(name, []).append(Sample(_read_moment(moment), outcome, ms))
    return {name: judge(samples, now) for name, samples in by_name.items()}


def _read_moment(text: str) -> datetime:
    # Read times as text, which takes a tenth of the time that the ORM needs for them.
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Day:
    """Counts of requests, fallbacks and failures for each of 24 hours and the current hour."""

    requests: tuple[int, ...] = (0,) * BARS
    fell_back: tuple[int, ...] = (0,) * BARS
    failed: tuple[int, ...] = (0,) * BARS

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[Any]]) -> Day:
        return cls(*(tuple(column) for column in zip(*rows, strict=True)))

    @property
    def total(self) -> int:
        return sum(self.requests)

    def share(self, part: Sequence[int]) -> float | None:
        """Return the sum of `part` as a percentage of all requests, or None if there were no requests."""
        return 100 * sum(part) / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class FirstContent:
    """Times to first content of streamed answers in milliseconds: percentiles, and the median of each hour.

    Percentiles are None if nothing was streamed. The last hour is the current hour.
    """

    p50: float | None = None
    p95: float | None = None
    series: tuple[float, ...] = (0.0,) * BARS


def first_content(now: datetime) -> FirstContent:
    """Return the times to first content in the last 24 hours, with one query.

    Only the newest streams of each hour are read, which limits the cost of the query.
    """
    hours: dict[int, list[float]] = {}
    for index, ms in _newest_streams(window_start(now)):
        hours.setdefault(index, []).append(ms)
    every = sorted(ms for hour in hours.values() for ms in hour)
    if not every:
        return FirstContent()
    series = tuple(quantile(sorted(hours[index]), 0.5) if index in hours else 0.0 for index in range(BARS))
    return FirstContent(quantile(every, 0.5), quantile(every, 0.95), series)


def _newest_streams(start: datetime) -> list[tuple[int, float]]:
    connection = connections[LOGS]
    of_an_hour = (
        "SELECT * FROM (SELECT {place} AS place, first_content_ms FROM {table} WHERE started_at >= %s"
        " AND started_at < %s AND first_content_ms IS NOT NULL ORDER BY started_at DESC LIMIT {most}) AS hour{place}"
    )
    table = connection.ops.quote_name(RequestLog._meta.db_table)
    parts = [of_an_hour.format(place=index, table=table, most=STREAMS_OF_AN_HOUR) for index in range(BARS)]
    bounds = [connection.ops.adapt_datetimefield_value(start + index * HOUR) for index in range(BARS + 1)]
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
"""Query that reads one index range for each hour and count; grouping the same rows takes three times as long."""
DAYS = "AND started_at >= %s AND started_at < %s"
"""Condition on the whole period, which is used only on PostgreSQL.

Without it, PostgreSQL plans for the partitions of all days; with it, SQLite would search the index for the whole period
instead of for each hour.
"""


def two_days(now: datetime) -> tuple[Day, Day]:
    """Return the counts for the last 24 hours (`window_start`) and for the 24 hours before.

    This takes one query that reads only indexes.
    """
    connection = connections[LOGS]
    start, hours = window_start(now) - DAY, DAY_HOURS + BARS
    bounds = [connection.ops.adapt_datetimefield_value(start + index * HOUR) for index in range(hours + 1)]
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
