"""What was used in a time, by agent, route, provider, model or day: read from the sums, never from the requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet, Sum
from django.utils import timezone

from routing_admin.models import UsageSum
from routing_admin.request_log.usage_sums import COUNTS, day_of, hour_of

GROUPS = {"agent": "agent", "route": "task_type", "provider": "provider", "model": "model", "day": "start"}
"""What usage can be grouped by, and the column."""
HOURS_UP_TO = timedelta(days=2)
"""Times as short as this are read by the hour, longer ones by the day."""
PLAIN_COUNTS = tuple(name for name in COUNTS if not name.endswith("_nanos"))
"""What is counted, as against what is paid."""
MOST_GROUPS = 1000
"""More are never listed; the sums of all of them are right none the less."""


@dataclass(slots=True)
class Counts:
    """Sums of requests; money by currency, in thousand-millionths of its unit."""

    requests: int = 0
    failures: int = 0
    fallbacks: int = 0
    unpriced: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    costs: dict[str, int] = field(default_factory=dict)
    savings: dict[str, int] = field(default_factory=dict)
    fallback_costs: dict[str, int] = field(default_factory=dict)

    def add(self, row: dict[str, Any]) -> None:
        """Adds the sums of one currency."""
        for name in PLAIN_COUNTS:
            setattr(self, name, getattr(self, name) + row[f"all_{name}"])
        currency = row["currency"]
        if currency:
            for name, sums in (
                ("cost_nanos", self.costs),
                ("saved_nanos", self.savings),
                ("fallback_nanos", self.fallback_costs),
            ):
                sums[currency] = sums.get(currency, 0) + row[f"all_{name}"]


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What was used since a moment: in all, by group in the order of its weight, and by hour or day in time's order."""

    since: datetime
    total: Counts
    groups: Sequence[tuple[Any, Counts]]
    series: Sequence[tuple[datetime, Counts]]


def sum_usage(since: datetime, group_by: str, *, agent: str | None = None) -> UsageReport:
    """What was used since a moment (its hour, or its day where that is longer ago than two), by one of `GROUPS`.

    `agent` limits it to one agent's requests. Two queries, whatever the number of requests.
    """
    span, start = _span_of(since)
    rows = UsageSum.objects.filter(span=span, start__gte=start)
    if agent is not None:
        rows = rows.filter(agent=agent)
    series = _sum_by(rows, "start")
    by_day = group_by == "day"
    groups = _by_day(series) if by_day else _sum_by(rows, GROUPS[group_by])
    total = Counts()
    for row in _sums(rows, "currency"):
        total.add(row)
    ordered = sorted(groups.items(), reverse=True) if by_day else sorted(groups.items(), key=_weigher(total))
    return UsageReport(start, total, ordered[:MOST_GROUPS], sorted(series.items()))


def _span_of(since: datetime) -> tuple[str, datetime]:
    if timezone.now() - since <= HOURS_UP_TO:
        return UsageSum.HOUR, hour_of(since)
    return UsageSum.DAY, day_of(since)


def _sums(rows: QuerySet[UsageSum], *names: str) -> QuerySet[UsageSum, dict[str, Any]]:
    sums: QuerySet[UsageSum, dict[str, Any]] = rows.order_by().values(*names)
    return sums.annotate(**{f"all_{name}": Sum(name) for name in COUNTS})


def _sum_by(rows: QuerySet[UsageSum], name: str) -> dict[Any, Counts]:
    found: dict[Any, Counts] = {}
    for row in _sums(rows, name, "currency"):
        found.setdefault(row[name], Counts()).add(row)
    return found


def _by_day(series: dict[datetime, Counts]) -> dict[Any, Counts]:
    return {timezone.localtime(start): counts for start, counts in series.items()}


def main_currency(total: Counts) -> str:
    """The currency of the largest sum; empty where nothing is priced."""
    return max(total.costs, key=lambda currency: (total.costs[currency], currency), default="")


def _weigher(total: Counts) -> Callable[[tuple[Any, Counts]], tuple[int, int, str]]:
    """The dearest first, by one currency, since no two are added up; then the busiest."""
    currency = main_currency(total)
    return lambda group: (-group[1].costs.get(currency, 0), -group[1].requests, str(group[0]))
