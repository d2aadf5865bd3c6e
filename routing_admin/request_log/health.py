"""What the last day's requests say: how each provider does, how many requests came, fell back and failed.

Numbers are taken from the log by few queries over its indexes and judged here by plain functions of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Avg, CharField, Count, Q
from django.db.models.functions import Cast, Substr

from routing_admin.core.fallback.chain import CANCELLED, OK, SkipReason
from routing_admin.models import AttemptLog, RequestLog

HOUR = timedelta(hours=1)
DAY_HOURS = 24
BUCKETS = 12
"""Stretches of five minutes in a provider's hour."""

MOST = 5000
"""Newest attempts of the hour that are looked at."""

SLOW_MS = 10_000.0
"""When half of the answers take longer until their first content, a provider counts as slow."""

DOWN_AFTER = 3
"""When that many calls in a row, or all there were, failed, a provider counts as down."""

UNASKED = frozenset({*(reason.value for reason in SkipReason), CANCELLED, "aborted"})
"""Outcomes of attempts that say nothing about the provider, because it was not asked or not to blame."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One call: when, what came of it, and how long until its first content, else its end (milliseconds)."""

    at: datetime
    outcome: str
    ms: float
    error: str = ""


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


def provider_health(now: datetime) -> dict[str, Health]:
    """Every provider that was called in the last hour, by name; one query."""
    columns = ("provider", "at", "outcome", "first_content_ms", "duration_ms", "error")
    rows = AttemptLog.objects.filter(at__gt=now - HOUR).order_by("-at").values_list(*columns)[:MOST]
    by_name: dict[str, list[Sample]] = {}
    for name, at, outcome, first, duration, error in rows:
        if outcome not in UNASKED:
            by_name.setdefault(name, []).append(Sample(at, outcome, duration if first is None else first, error))
    return {name: judge(samples, now) for name, samples in by_name.items()}


@dataclass(frozen=True, slots=True)
class Day:
    """24 hours by the hour, the current one last: requests, those another candidate answered, those that failed."""

    requests: tuple[int, ...] = field(default=(0,) * DAY_HOURS)
    fell_back: tuple[int, ...] = field(default=(0,) * DAY_HOURS)
    failed: tuple[int, ...] = field(default=(0,) * DAY_HOURS)
    first_content: tuple[float | None, ...] = field(default=(None,) * DAY_HOURS)

    @property
    def total(self) -> int:
        """Requests of all hours."""
        return sum(self.requests)

    def share(self, part: Sequence[int]) -> float:
        """Percent of all requests; 0 when there were none."""
        return 100 * sum(part) / self.total if self.total else 0.0

    @property
    def mean_first_content(self) -> float | None:
        """Milliseconds until first content over the day, each hour weighed alike; None when nobody streamed."""
        known = [each for each in self.first_content if each is not None]
        return sum(known) / len(known) if known else None


def two_days(now: datetime) -> tuple[Day, Day]:
    """The last 24 hours and the 24 before them; one query that reads an index only."""
    start = hour_of(now) - timedelta(hours=2 * DAY_HOURS - 1)
    hours = (
        RequestLog.objects.filter(started_at__gte=start)
        .annotate(hour=Substr(Cast("started_at", CharField()), 1, 13))
        .values("hour")
        .order_by("hour")
        .annotate(
            count=Count("*"),
            others=Count("started_at", filter=Q(fell_back=True)),
            failures=Count("started_at", filter=~Q(outcome=OK)),
            first=Avg("first_content_ms"),
        )
    )
    by_hour = {row["hour"].replace("T", " "): row for row in hours}
    names = [f"{start + timedelta(hours=place):%Y-%m-%d %H}" for place in range(2 * DAY_HOURS)]
    return _day(by_hour, names[DAY_HOURS:]), _day(by_hour, names[:DAY_HOURS])


def _day(by_hour: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> Day:
    rows = [by_hour.get(name, {}) for name in names]
    return Day(
        tuple(row.get("count", 0) for row in rows),
        tuple(row.get("others", 0) for row in rows),
        tuple(row.get("failures", 0) for row in rows),
        tuple(row.get("first") for row in rows),
    )


def hour_of(moment: datetime) -> datetime:
    """The beginning of its hour, in UTC as the log keeps it."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
