"""Add requests to the usage totals of their hour and day.

This happens in the transaction that logs the requests, so each request is counted exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any

from django.db import connections
from django.utils import timezone

from capabilities.runtime import owned
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.models import UsageRollup, UsageSum
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.request_log.costs import list_waste
from routing_admin.request_log.counting import CountedNames, current_names
from routing_admin.request_log.entries import in_chunks
from routing_admin.request_log.time_ranges import DAY, HOUR, hour_start

# Callers can make up labels, so only a limited number of labels get totals of their own.

OTHERS = "(other)"
"""Name under which all further labels are counted together."""
MAX_USERS = 1000
"""Maximum number of an agent's end users that get totals of their own per day; further users count as `OTHERS`."""
MAX_TEAMS = 200
"""Maximum number of pairs of team and project that get totals of their own per agent and day."""
DAYS = 3
"""Number of days for which labels are cached. It is more than one, because the journal may write requests late."""
LabelNames = tuple[str, str, str]
NONE: LabelNames = ("", "", "")


@dataclass(slots=True)
class _Names:
    """The labels of one agent on one day: triples of team, project and user, and the pairs of team and project."""

    whole: set[LabelNames]
    pairs: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.pairs |= {names[:2] for names in self.whole}

    def bounded(self, names: LabelNames) -> LabelNames:
        if names in self.whole:
            return names
        team, project, user = names
        if (team, project) not in self.pairs and len(self.pairs) >= MAX_TEAMS:
            team = project = OTHERS
        if user and (team, project, user) not in self.whole and len(self.whole) >= MAX_USERS:
            user = OTHERS
        self.whole.add((team, project, user))
        self.pairs.add((team, project))
        return team, project, user


class SumLabels:
    """The labels that have totals of their own, by day and agent.

    Labels that other processes have added are read once per agent and day.
    """

    def __init__(self) -> None:
        self._days: dict[datetime, dict[str, _Names]] = {}

    def bounded(self, request: Mapping[str, Any]) -> LabelNames:
        """Return the team, project and end user under which a request is counted; a name beyond the limits is `OTHERS`.

        This takes one query per agent and day.
        """
        names = request["team"] or "", request["project"] or "", request["end_user"] or ""
        return NONE if names == NONE else self._find(day_start(request["started_at"]), request["agent"]).bounded(names)

    def _find(self, day: datetime, agent: str) -> _Names:
        agents = self._days.get(day)
        if agents is None:
            agents = self._days[day] = {}
            for old in sorted(self._days)[:-DAYS]:
                self._days.pop(old)
        if agent not in agents:
            rows = UsageSum.objects.filter(span=UsageSum.DAY, start=day, agent=agent)
            labelled = rows.exclude(team="", project="", end_user="").order_by()
            agents[agent] = _Names(set(labelled.values_list("team", "project", "end_user").distinct()))
        return agents[agent]


def day_start(moment: datetime) -> datetime:
    # Days follow the installation's time zone, so they may start at any hour in UTC.
    return timezone.localtime(moment).replace(hour=0, minute=0, second=0, microsecond=0)


sum_labels = owned(SumLabels)


FAILED, REFUSED, CANCELLED = RequestEnding.FAILED.value, RequestEnding.REFUSED.value, RequestEnding.CANCELLED.value
SUM_KEY_COLUMNS = (
    "span",
    "start",
    "agent",
    "task_type",
    "provider",
    "model",
    "team",
    "project",
    "end_user",
    "currency",
)
"""Columns that together identify a row of the usage totals."""
COUNTS = (
    *("requests", "failures", "refused", "cancelled", "fallbacks", "attempts", "unpriced"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    *("cost_nanos", "saved_nanos", "fallback_nanos"),
)
"""Columns that contain total counts or total amounts of money."""
MAX_SUM = 2**62
"""Maximum of a total before a batch is added. A column can store twice this number, and a batch adds less than this
number.
"""
CHUNKS = (20, 6, 2, 1)
"""Numbers of rows of usage totals per statement: the largest that fits is used."""
HOUR_RETENTION = timedelta(days=7)
"""How long hourly totals are kept; daily totals are kept for longer than the log."""
LENGTHS: Mapping[str, timedelta] = {UsageSum.HOUR: HOUR, UsageSum.DAY: DAY}
"""Maps each span to its length."""
ROLLUP_LOCK = 0x726F6C6C7570
"""Key of the PostgreSQL advisory lock that keeps late requests and the writing of roll-ups apart."""
SumKey = tuple[Any, ...]
Columns = Mapping[str, Any]


def add_usage(rows: Iterable[tuple[Columns, Sequence[Columns]]]) -> None:
    sums: dict[SumKey, list[int]] = {}
    counted = current_names(OTHERS)
    for request, attempts in rows:
        labels = sum_labels().bounded(request)
        for row, counts in ((request, _counts(request, len(attempts))), *_waste(request, attempts)):
            for key in _sum_keys(request, row, labels, counted):
                known = sums.setdefault(key, [0] * len(COUNTS))
                for at, count in enumerate(counts):
                    known[at] += count
    if not sums:
        return
    connection = connections[LOGS]
    adapt = connection.ops.adapt_datetimefield_value
    forget_rollups({key[:2] for key in sums})
    with connection.cursor() as cursor:
        # Sort the rows, so that two writers cannot deadlock.
        for chunk in in_chunks(sorted(sums.items()), CHUNKS):
            records = [[span, adapt(start), *names, *counts] for (span, start, *names), counts in chunk]
            cursor.execute(_statement(len(chunk)), [value for record in records for value in record])


def forget_rollups(periods: Iterable[tuple[Any, ...]]) -> None:
    # A changed total invalidates the roll-up of its hour or day, so delete the roll-up's mark in the same transaction.
    now = timezone.now()
    ended = [(span, start) for span, start in periods if start + LENGTHS[span] <= now]
    if not ended:
        return
    if connections[LOGS].vendor == POSTGRESQL:
        with connections[LOGS].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [ROLLUP_LOCK])
    for span, start in ended:
        UsageRollup.objects.filter(span=span, start=start, dimension="").delete()


def _sum_keys(request: Columns, row: Columns, labels: LabelNames, counted: CountedNames) -> tuple[SumKey, SumKey]:
    hour, day = _starts(request["started_at"].replace(second=0, microsecond=0))
    route, model = counted.route(request["task_type"]), counted.model(row["provider"], row["model"])
    names = request["agent"], route, row["provider"], model, *labels, row["currency"]
    return (UsageSum.HOUR, hour, *names), (UsageSum.DAY, day, *names)


@lru_cache(maxsize=64)
def _starts(minute: datetime) -> tuple[datetime, datetime]:
    # Cache the result, because the requests of a batch are from the same few minutes.
    return hour_start(minute), day_start(minute)


def _waste(request: Columns, attempts: Sequence[Columns]) -> Iterator[tuple[Columns, list[int]]]:
    is_priced = request["cost_nanos"] is not None or not (request["prompt_tokens"] or request["completion_tokens"])
    for row, (reads, writes, cost) in list_waste(request, attempts):
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
    table, key_columns = quote(UsageSum._meta.db_table), ", ".join(map(quote, SUM_KEY_COLUMNS))
    names, marks = (
        ", ".join(map(quote, (*SUM_KEY_COLUMNS, *COUNTS))),
        ", ".join(["%s"] * (len(SUM_KEY_COLUMNS) + len(COUNTS))),
    )
    values = ", ".join([f"({marks})"] * rows)
    minimum = "LEAST" if connections[LOGS].vendor == POSTGRESQL else "MIN"
    added = ", ".join(f"{name} = {minimum}({table}.{name}, {MAX_SUM}) + excluded.{name}" for name in map(quote, COUNTS))
    insert = f"INSERT INTO {table} ({names}) VALUES {values}"  # noqa: S608  # our models' own names
    return f"{insert} ON CONFLICT ({key_columns}) DO UPDATE SET {added}"
