"""Totals for the requests that a search matches: requests by ending, tokens and cost.

If a search has only terms for which usage totals exist (agent and route), whole hours and days are read from these
totals, however many requests there were. Only the incomplete hours at the ends of its period, and the oldest hour of
the log, are counted from rows. For any other search, matching rows are counted up to `MAX_COUNTED`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.models import AttemptLog, RequestLog, UsageRollup, UsageSum
from routing_admin.platform.databases.router import LOGS, one_moment
from routing_admin.request_log.counting import current_names
from routing_admin.request_log.search import (
    MAX_ATTEMPT_DELAY,
    MAX_COUNTED,
    fell_back_condition,
    filter_rows,
    unanswered_condition,
)
from routing_admin.request_log.search_words import Search, moment
from routing_admin.request_log.summed_times import in_any, split_range
from routing_admin.request_log.usage import SMALLEST, Counts
from routing_admin.request_log.usage_rollups import list_folded
from routing_admin.request_log.usage_sums import COUNTS, OTHERS

SUMMED_TERMS: Mapping[str, str] = {"agent": "agent", "task": "task_type"}
"""Maps the search keys that have usage totals to the totals' columns."""
TIMES = frozenset({"since", "until"})
SUMS = {f"all_{name}": Sum(name) for name in COUNTS}
PARTS = {
    "requests": Count("pk"),
    "failures": Count("pk", filter=Q(ending=RequestEnding.FAILED)),
    "refused": Count("pk", filter=Q(ending=RequestEnding.REFUSED)),
    "cancelled": Count("pk", filter=Q(ending=RequestEnding.CANCELLED)),
    "fallbacks": Count("pk", filter=Q(fell_back=True)),
}


@dataclass(slots=True)
class Totals:
    """Totals for the requests that a search matches.

    With `is_more`, there are more requests than `counts.requests`, and nothing else was counted. Without
    `has_spending`, tokens and cost were not added up, because this would have required reading too many rows.
    """

    counts: Counts = field(default_factory=Counts)
    is_more: bool = False
    has_spending: bool = True

    def merge(self, other: Totals) -> None:
        self.counts.merge(other.counts)
        self.has_spending = self.has_spending and other.has_spending


def sum_matches(search: Search, now: datetime) -> Totals:
    """Return the totals for a search, with at most nine queries."""
    with one_moment(LOGS):
        if is_summed(search):
            return _sum_range(search, now)
        return _sum_rows(filter_rows(search, now))


def is_summed(search: Search) -> bool:
    """Return whether usage totals exist for all of the search's terms."""
    keys = {key for key, _value in search.values}
    if search.text or keys - TIMES - set(SUMMED_TERMS):
        return False
    # All routes that are not configured share one usage total, which cannot be divided by route.
    task = search.get("task")
    return not task or current_names(OTHERS).route(task) == task


def _sum_rows(rows: QuerySet[RequestLog], since: datetime | None = None, until: datetime | None = None) -> Totals:
    matched = rows.order_by()[: MAX_COUNTED + 1]
    found = matched.values("pk", "ending", "fell_back").aggregate(**PARTS)
    if found["requests"] > MAX_COUNTED:
        return Totals(Counts(requests=MAX_COUNTED), is_more=True, has_spending=False)
    totals = Totals(Counts(**found))
    if found["requests"]:
        _add_spending(totals.counts, rows, since, until)
    return totals


def _add_spending(counts: Counts, rows: QuerySet[RequestLog], since: datetime | None, until: datetime | None) -> None:
    # The attempts' rows contain the tokens and cost of all calls, including failed calls.
    attempts = AttemptLog.objects.filter(request__in=rows.order_by().values("pk"))
    # With these bounds, PostgreSQL plans only for the partitions of these days.
    attempts = attempts.filter(at__gte=since) if since else attempts
    attempts = attempts.filter(at__lt=until + MAX_ATTEMPT_DELAY) if until else attempts
    spent = (
        attempts.order_by()
        .values_list("currency")
        .annotate(
            count=Count("pk"), reads=Sum("prompt_tokens"), writes=Sum("completion_tokens"), nanos=Sum("cost_nanos")
        )
    )
    for currency, count, reads, writes, nanos in spent:
        counts.attempts += count
        counts.prompt_tokens += int(reads or 0)
        counts.completion_tokens += int(writes or 0)
        if currency:
            counts.costs[currency] = counts.costs.get(currency, 0) + int(nanos or 0)


def _count_rows(rows: QuerySet[RequestLog]) -> Totals:
    # Each query reads only a single index, so any number of rows of one day is counted within milliseconds.
    rows = rows.order_by()
    endings = dict(rows.filter(unanswered_condition()).values_list("ending").annotate(count=Count("pk")))
    return Totals(
        Counts(
            requests=rows.count(),
            failures=endings.get(RequestEnding.FAILED, 0),
            refused=endings.get(RequestEnding.REFUSED, 0),
            cancelled=endings.get(RequestEnding.CANCELLED, 0),
            fallbacks=rows.filter(fell_back_condition()).count(),
        ),
        has_spending=False,
    )


# The remaining functions use the hourly and daily usage totals.


def _sum_range(search: Search, now: datetime) -> Totals:
    since, until = (moment(search.get(key), now) if search.get(key) else None for key in ("since", "until"))
    oldest = RequestLog.objects.order_by("started_at", "pk").values_list("started_at", flat=True).first()
    totals = Totals()
    if oldest is None or (until is not None and until <= oldest):
        return totals
    # Usage totals are kept for longer than rows, so the oldest hour in the log may have lost some of its rows.
    parts = split_range(max(since, oldest) if since else oldest, until, now)
    rows = filter_rows(search, now)
    for begin, end in parts.rest:
        totals.merge(_sum_edge(rows, begin, end))
    only = {column: search.get(key) for key, column in SUMMED_TERMS.items() if search.get(key)}
    _add_sums(totals.counts, parts.starts, only)
    return totals


def _sum_edge(rows: QuerySet[RequestLog], begin: datetime, end: datetime) -> Totals:
    rows = rows.filter(started_at__gte=begin, started_at__lt=end)
    totals = _sum_rows(rows, begin, end)
    return _count_rows(rows) if totals.is_more else totals


def _add_sums(counts: Counts, starts: Mapping[str, Sequence[datetime]], only: Mapping[str, str]) -> None:
    # A roll-up is grouped by a single column, so it cannot be filtered by two columns.
    folded = {span: list_folded(span, moments) if len(only) < 2 else set() for span, moments in starts.items()}
    left = {span: [at for at in moments if at not in folded[span]] for span, moments in starts.items()}
    name, value = next(iter(only.items()), (SMALLEST, None))
    rollups = UsageRollup.objects.filter(in_any(folded), dimension=name)
    queries: list[QuerySet[Any]] = [rollups.filter(value=value) if value is not None else rollups]
    queries.append(UsageSum.objects.filter(in_any(left), **only))
    for query in queries:
        for currency, *sums in query.order_by().values_list("currency").annotate(**SUMS):
            counts.add(currency, list(map(int, sums)))  # PostgreSQL returns sums of bigint columns as decimals.
