"""Usage in a period by agent, route, provider, model, label or day.

Usage is read only from the stored hourly and daily totals, never from the requests themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import filterfalse
from typing import Any

from django.db import connections
from django.db.models import Sum
from django.utils import timezone

from capabilities.core.exchange import ExchangeTable
from capabilities.core.prices import NO_CURRENCY
from routing_admin.models import UsageRollup, UsageSum
from routing_admin.platform.databases.router import LOGS, one_moment
from routing_admin.request_log.summed_times import HOURS_UP_TO, period_start, round_up
from routing_admin.request_log.time_ranges import DAY
from routing_admin.request_log.usage_rollups import as_aware, list_folded, list_starts
from routing_admin.request_log.usage_sums import COUNTS, day_start

LABELS = {"team": "team", "project": "project", "user": "end_user"}
GROUPS = {
    "agent": "agent",
    "route": "task_type",
    "provider": "provider",
    "model": "model",
    **LABELS,
    "day": "start",
}
"""Maps the names of groupings to columns of the usage totals."""
MONEY = ("cost_nanos", "saved_nanos", "fallback_nanos")
PLAIN_COUNTS = tuple(name for name in COUNTS if name not in MONEY)
"""Columns that contain counts instead of money."""
SUMS = {f"all_{name}": Sum(name) for name in COUNTS}
SERIES_COUNTS = ("requests", "failures", "prompt_tokens", "completion_tokens", "cost_nanos")
"""Columns that are shown in charts over time."""
NO_RATES, NO_TIME = ExchangeTable(), timedelta()
MAX_GROUPS = 1000
"""Maximum number of groups to list; totals include all groups."""


@dataclass(slots=True)
class Counts:
    """Usage of a group of requests; money is by currency, in billionths of the currency's unit."""

    requests: int = 0
    failures: int = 0
    refused: int = 0
    cancelled: int = 0
    fallbacks: int = 0
    attempts: int = 0
    unpriced: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    costs: dict[str, int] = field(default_factory=dict)
    savings: dict[str, int] = field(default_factory=dict)
    fallback_costs: dict[str, int] = field(default_factory=dict)

    def add(self, currency: str, counts: Sequence[int]) -> None:
        """Add numbers that are in the order of `COUNTS`.

        `currency` is the currency of the amounts of money; it is empty if nothing has a price.
        """
        for name, count in zip(PLAIN_COUNTS, counts, strict=False):
            if count:  # Skip zeros, because most counts are zero, and a page adds thousands of them.
                setattr(self, name, getattr(self, name) + count)
        if currency:
            for sums, nanos in zip(self.money, counts[len(PLAIN_COUNTS) :], strict=True):
                sums[currency] = sums.get(currency, 0) + nanos

    def merge(self, other: Counts) -> None:
        for name in PLAIN_COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for sums, other_sums in zip(self.money, other.money, strict=True):
            for currency, nanos in other_sums.items():
                sums[currency] = sums.get(currency, 0) + nanos

    @property
    def money(self) -> tuple[dict[str, int], ...]:
        return self.costs, self.savings, self.fallback_costs


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Usage in a period: the total, the groups, largest first, and the series by hour or day.

    The report covers whole hours, or whole days in the installation's time zone, from `since` to `until` (exclusive).
    """

    since: datetime
    until: datetime
    total: Counts
    groups: Sequence[tuple[Any, Counts]]
    series: Sequence[tuple[datetime, Counts]]


@dataclass(frozen=True, slots=True)
class SummedTimes:
    """The hours or days with usage totals, and which of them (`folded`) also have complete roll-ups."""

    span: str
    starts: Sequence[datetime]
    folded: Collection[datetime]

    def between(self, since: datetime, until: datetime | None) -> list[datetime]:
        return [start for start in self.starts if since <= start and (until is None or start < until)]


def list_times(since: datetime, *, before: timedelta = NO_TIME, is_filtered: bool = False) -> SummedTimes:
    """Return the hours or days with usage totals, beginning at a time or, with `before`, this much earlier.

    A roll-up is grouped by a single column, so a filtered report cannot use roll-ups. This takes two queries.
    """
    span, start = _choose_span(since)
    starts = list_starts(span, moved(start, -before))
    return SummedTimes(span, starts, set() if is_filtered else list_folded(span, starts))


def moved(moment: datetime, length: timedelta) -> datetime:
    # Add days in local time, because twice a year a day has 23 or 25 hours.
    if length % DAY or length == DAY:
        return moment + length
    return timezone.make_aware((timezone.localtime(moment) + length).replace(tzinfo=None))


def sum_usage(
    since: datetime,
    group_by: str,
    exchange: ExchangeTable = NO_RATES,
    times: SummedTimes | None = None,
    /,
    *,
    until: datetime | None = None,
    counted: Collection[str] = COUNTS,
    **only: str,
) -> UsageReport:
    """Return the usage between two times (by default until now), grouped by a key of `GROUPS`, with three queries.

    Partial hours at both ends are counted as whole hours, or as whole days if `since` is more than two days ago. `only`
    limits the report to one agent, team, project or user. Groups are compared across currencies if `exchange` has their
    rates. With `times`, which must have been read in the same transaction, one query is enough. Groups contain only the
    columns in `counted`, which saves time; the total and the series contain all columns.
    """
    span, start = _choose_span(since)
    if until is not None:
        until = round_up(span, until)
    filters = {GROUPS[name]: value for name, value in only.items()}
    is_by_day = group_by == "day"
    # Let all queries use one snapshot, so that groups and series have the same total.
    with one_moment(LOGS):
        times = times or list_times(since, is_filtered=bool(filters))
        name, columns = (SMALLEST, ()) if is_by_day else (GROUPS[group_by], counted)
        groups, series = _sum_up(times, times.between(start, until), name, filters, columns)
    if is_by_day:
        groups = _by_day(series)
    total = Counts()
    for counts in series.values():
        total.merge(counts)
    if is_by_day:
        ordered = sorted(groups.items(), reverse=True)
    else:
        ordered = sorted(groups.items(), key=_weigher(total, exchange))
    return UsageReport(start, until or timezone.now(), total, ordered[:MAX_GROUPS], sorted(series.items()))


def count_requests(group_by: str, since: datetime) -> Mapping[str, int]:
    """Return the number of requests since the start of an hour for each value of a group, such as each agent.

    Values without requests are omitted. This takes one query.
    """
    name, hours = GROUPS[group_by], {"span": UsageSum.HOUR, "start__gte": since}
    rollups = UsageRollup.objects.filter(**hours).order_by()
    folded = rollups.filter(dimension="", value="").values("start")
    sums = UsageSum.objects.filter(**hours).exclude(start__in=folded).order_by()
    rolled_up = rollups.filter(dimension=name, start__in=folded).values_list("value").annotate(count=Sum("requests"))
    counts: Counter[str] = Counter()
    for value, count in sums.values_list(name).annotate(count=Sum("requests")).union(rolled_up, all=True):
        counts[value] += int(count)
    return counts


SMALLEST = "provider"
"""The column with the fewest values.

The grand total is the same whichever column is used, but for this column the fewest rows must be added up.
"""
REPORT = """
WITH pairs (start, value, currency, {counts}) AS ({sums})
SELECT NULL, value, currency, {by_value} FROM pairs GROUP BY value, currency
UNION ALL SELECT start, NULL, currency, {by_start} FROM pairs GROUP BY start, currency
UNION ALL SELECT NULL, value, currency, {by_value} FROM ({rollups}) AS rollups GROUP BY value, currency
UNION ALL SELECT start, NULL, currency, {by_start} FROM ({smallest}) AS rollups GROUP BY start, currency
"""
"""Query for the totals by value, and the totals by hour or day.

It reads roll-ups where they exist, and the rows of all other periods once. Each of the four parts is added up
separately, so that SQLite reads the roll-ups without copying them. A value or a start time may therefore have two rows,
which Python adds up. The first two parts determine the column types, because PostgreSQL would treat columns that
contain only NULL as text.
"""


def _sum_up(
    times: SummedTimes, starts: Sequence[datetime], name: str, filters: Mapping[str, str], counted: Collection[str]
) -> tuple[dict[Any, Counts], dict[datetime, Counts]]:
    # There may be thousands of pairs of a value and a start time, so let the database add them up.
    is_folded = times.folded.__contains__
    rows = UsageSum.objects.filter(span=times.span, start__in=list(filterfalse(is_folded, starts)), **filters)
    rollups = UsageRollup.objects.filter(span=times.span, start__in=list(filter(is_folded, starts)))
    columns = "start", "value", "currency", *COUNTS
    queries = {
        "sums": rows.order_by().values_list("start", name, "currency").annotate(**SUMS),
        "rollups": rollups.filter(dimension=name).values_list(*columns),
        "smallest": rollups.filter(dimension=SMALLEST).values_list(*columns),
    }
    parts = {part: query.query.get_compiler(LOGS, elide_empty=False).as_sql() for part, query in queries.items()}
    sql = REPORT.format(
        **{part: statement for part, (statement, _) in parts.items()},
        counts=", ".join(COUNTS),
        by_value=", ".join(f"SUM({column})" if column in counted else "0" for column in COUNTS),
        by_start=", ".join(f"SUM({column})" for column in COUNTS),
    )
    groups, series = defaultdict[Any, Counts](Counts), defaultdict[datetime, Counts](Counts)
    with connections[LOGS].cursor() as cursor:
        cursor.execute(sql, [value for _, values in parts.values() for value in values])
        for start, value, currency, *counts in cursor.fetchall():
            group = groups[value] if start is None else series[as_aware(start)]
            group.add(currency, list(map(int, counts)))  # PostgreSQL returns sums of bigint columns as decimals.
    return groups, series


def _choose_span(since: datetime) -> tuple[str, datetime]:
    span = UsageSum.HOUR if timezone.now() - since <= HOURS_UP_TO else UsageSum.DAY
    return span, period_start(span, since)


def _by_day(series: dict[datetime, Counts]) -> dict[Any, Counts]:
    found: dict[Any, Counts] = {}
    for start, counts in series.items():
        found.setdefault(day_start(start), Counts()).merge(counts)
    return found


def main_currency(total: Counts) -> str:
    """Return the currency with the largest sum, or "" if no request has a price."""
    priced = [currency for currency in total.costs if currency != NO_CURRENCY]
    return max(priced, key=lambda currency: (total.costs[currency], currency), default="")


def weight_in(total: Counts, exchange: ExchangeTable) -> tuple[str, Callable[[Counts], int]]:
    """Return the currency in which groups are compared, and a function that returns a group's weight.

    With exchange rates for all currencies, weights include all of them. Otherwise only the currency with the largest
    sum counts. If nothing has a price, the currency is empty and the weight is the number of requests.
    """
    main = main_currency(total)
    if main and exchange.total(total.costs) is not None:
        return exchange.into, lambda counts: max(exchange.total(counts.costs) or 0, 0)
    if main:
        return main, lambda counts: max(counts.costs.get(main, 0), 0)
    return "", lambda counts: counts.requests


def _weigher(total: Counts, exchange: ExchangeTable) -> Callable[[tuple[Any, Counts]], tuple[int, int, str]]:
    # Sort groups by their cost in one currency, and then by their number of requests.
    currency, weigh = weight_in(total, exchange)
    return lambda group: (-weigh(group[1]) if currency else 0, -group[1].requests, str(group[0]))
