"""Adds requests to the sums of their hour and day, in the transaction that logs them: each is counted once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any

from django.db import connections
from django.utils import timezone

from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.models import UsageRollup, UsageSum
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.request_log.chunks import in_chunks
from routing_admin.request_log.counted_names import CountedNames, names_now
from routing_admin.request_log.sum_labels import OTHERS, LabelNames, day_of, sum_labels
from routing_admin.request_log.window import DAY, HOUR, hour_of

FAILED, REFUSED, CANCELLED = RequestEnding.FAILED.value, RequestEnding.REFUSED.value, RequestEnding.CANCELLED.value
PLACE = ("span", "start", "agent", "task_type", "provider", "model", "team", "project", "end_user", "currency")
"""What a sum is of."""
COUNTS = (
    *("requests", "failures", "refused", "cancelled", "fallbacks", "attempts", "unpriced"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    *("cost_nanos", "saved_nanos", "fallback_nanos"),
)
"""What is summed up."""
SPENT = ("prompt_tokens", "completion_tokens", "cost_nanos")
"""What rows of requests and attempts both say."""
MAX_SUM = 2**62
"""Where a sum no longer grows by much: a column holds twice that, and one batch adds less than this."""
CHUNKS = (20, 6, 2, 1)
"""How many sums one statement adds to."""
LENGTHS: Mapping[str, timedelta] = {UsageSum.HOUR: HOUR, UsageSum.DAY: DAY}
"""Behind these lengths from its start, an hour or day counts as ended."""
ROLLUP_LOCK = 0x726F6C6C7570
"""PostgreSQL's number of the lock that keeps late requests and roll-ups apart."""
Place = tuple[Any, ...]
Columns = Mapping[str, Any]


def add_usage(rows: Iterable[tuple[Columns, Sequence[Columns]]]) -> None:
    """Adds rows of the request log, as columns with those of their attempts, to the sums they belong to."""
    sums: dict[Place, list[int]] = {}
    counted = names_now(OTHERS)
    for request, attempts in rows:
        labels = sum_labels().bounded(request)
        for row, counts in ((request, _counts(request, len(attempts))), *_waste(request, attempts)):
            for place in _places(request, row, labels, counted):
                known = sums.setdefault(place, [0] * len(COUNTS))
                for at, count in enumerate(counts):
                    known[at] += count
    if not sums:
        return
    connection = connections[LOGS]
    adapt = connection.ops.adapt_datetimefield_value
    _forget_rollups({place[:2] for place in sums})
    with connection.cursor() as cursor:
        for chunk in in_chunks(sorted(sums.items()), CHUNKS):  # in one order, so that two writers never cross
            lines = [[span, adapt(start), *names, *counts] for (span, start, *names), counts in chunk]
            cursor.execute(_statement(len(chunk)), [value for line in lines for value in line])


def _forget_rollups(periods: Iterable[tuple[Any, ...]]) -> None:
    """Unmark roll-ups of ended hours and days, whose sums the open transaction changes."""
    now = timezone.now()
    late = [(span, start) for span, start in periods if start + LENGTHS[span] <= now]
    if not late:
        return
    if connections[LOGS].vendor == POSTGRESQL:
        with connections[LOGS].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [ROLLUP_LOCK])
    for span, start in late:
        UsageRollup.objects.filter(span=span, start=start, dimension="").delete()


def _places(request: Columns, row: Columns, labels: LabelNames, counted: CountedNames) -> tuple[Place, Place]:
    """Where a request is summed up, or one of its attempts, which names who was called."""
    hour, day = _starts(request["started_at"].replace(second=0, microsecond=0))
    route, model = counted.route(request["task_type"]), counted.model(row["provider"], row["model"])
    names = request["agent"], route, row["provider"], model, *labels, row["currency"]
    return (UsageSum.HOUR, hour, *names), (UsageSum.DAY, day, *names)


@lru_cache(maxsize=64)
def _starts(minute: datetime) -> tuple[datetime, datetime]:
    """When the hour and the day of a minute began; the requests of a batch share a few."""
    return hour_of(minute), day_of(minute)


def _waste(request: Columns, attempts: Sequence[Columns]) -> Iterator[tuple[Columns, list[int]]]:
    """The attempts that took more than the answer did, and what: calls that gave none are billed all the same."""
    is_priced = request["cost_nanos"] is not None or not (request["prompt_tokens"] or request["completion_tokens"])
    for at, row in enumerate(attempts, 1):
        answer = request if request["provider"] and at == len(attempts) else {}
        reads, writes, cost = ((row.get(name) or 0) - (answer.get(name) or 0) for name in SPENT)
        if reads or writes or cost:
            unpriced = int(is_priced and row.get("cost_nanos") is None)
            is_priced = is_priced and not unpriced
            yield row, [0, 0, 0, 0, 0, 0, unpriced, reads, writes, 0, 0, cost, 0, cost]


def _counts(row: Columns, attempts: int) -> list[int]:
    details = row["token_details"] or {}
    reads, writes, cost = row["prompt_tokens"] or 0, row["completion_tokens"] or 0, row["cost_nanos"]
    ending = row["ending"]
    return [
        *(1, int(ending == FAILED), int(ending == REFUSED), int(ending == CANCELLED)),
        *(int(bool(row["fell_back"])), attempts, int(cost is None and bool(reads or writes))),
        *(reads, writes, details.get("cachedTokens", 0), details.get("reasoningTokens", 0)),
        *(cost or 0, row["saved_nanos"] or 0, 0),
    ]


@cache
def _statement(rows: int) -> str:
    quote = connections[LOGS].ops.quote_name
    table, place = quote(UsageSum._meta.db_table), ", ".join(map(quote, PLACE))
    names, marks = ", ".join(map(quote, (*PLACE, *COUNTS))), ", ".join(["%s"] * (len(PLACE) + len(COUNTS)))
    values = ", ".join([f"({marks})"] * rows)
    least = "LEAST" if connections[LOGS].vendor == POSTGRESQL else "MIN"
    added = ", ".join(f"{name} = {least}({table}.{name}, {MAX_SUM}) + excluded.{name}" for name in map(quote, COUNTS))
    insert = f"INSERT INTO {table} ({names}) VALUES {values}"  # noqa: S608  # our models' own names
    return f"{insert} ON CONFLICT ({place}) DO UPDATE SET {added}"
