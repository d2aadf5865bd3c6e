"""Adds requests to the sums of their hour and day, in the transaction that logs them: each is counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from django.db import connections
from django.utils import timezone

from routing_admin.core.fallback.chain import OK
from routing_admin.databases.router import LOGS
from routing_admin.models import UsageSum

PLACE = ("span", "start", "agent", "task_type", "provider", "model", "currency")
"""What a sum is of."""
COUNTS = (
    *("requests", "failures", "fallbacks", "unpriced"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    *("cost_nanos", "saved_nanos", "fallback_nanos"),
)
"""What is summed up."""
CHUNKS = (20, 6, 2, 1)
"""How many sums one statement adds to."""
Place = tuple[Any, ...]


def add_usage(requests: Iterable[Mapping[str, Any]]) -> None:
    """Adds rows of the request log, as columns, to the sums they belong to."""
    sums: dict[Place, list[int]] = {}
    for row in requests:
        counts = _counts(row)
        for place in _places(row):
            known = sums.setdefault(place, [0] * len(COUNTS))
            for at, count in enumerate(counts):
                known[at] += count
    if not sums:
        return
    connection = connections[LOGS]
    adapt, ordered, at = connection.ops.adapt_datetimefield_value, sorted(sums.items()), 0
    with connection.cursor() as cursor:  # in one order, so that two writers never cross
        while at < len(ordered):
            size = next(size for size in CHUNKS if size <= len(ordered) - at)
            chunk = ordered[at : at + size]
            rows = [[span, adapt(start), *names, *counts] for (span, start, *names), counts in chunk]
            cursor.execute(_statement(size), [value for row in rows for value in row])
            at += size


def hour_of(moment: datetime) -> datetime:
    """When its hour began."""
    return moment.replace(minute=0, second=0, microsecond=0)


def day_of(moment: datetime) -> datetime:
    """When its day began in the installation's time zone."""
    return timezone.localtime(moment).replace(hour=0, minute=0, second=0, microsecond=0)


def _places(row: Mapping[str, Any]) -> tuple[Place, Place]:
    hour, day = _starts(row["started_at"].replace(second=0, microsecond=0))
    names = (row["agent"], row["task_type"], row["provider"], row["model"], row["currency"])
    return (UsageSum.HOUR, hour, *names), (UsageSum.DAY, day, *names)


@lru_cache(maxsize=64)
def _starts(minute: datetime) -> tuple[datetime, datetime]:
    """When the hour and the day of a minute began; the requests of a batch share a few."""
    return hour_of(minute), day_of(minute)


def _counts(row: Mapping[str, Any]) -> list[int]:
    details = row["token_details"] or {}
    reads, writes, cost = row["prompt_tokens"] or 0, row["completion_tokens"] or 0, row["cost_nanos"]
    fell_back = bool(row["fell_back"])
    return [
        *(1, int(row["outcome"] != OK), int(fell_back), int(cost is None and bool(reads or writes))),
        *(reads, writes, details.get("cachedTokens", 0), details.get("reasoningTokens", 0)),
        *(cost or 0, row["saved_nanos"] or 0, (cost or 0) if fell_back else 0),
    ]


@cache
def _statement(rows: int) -> str:
    quote = connections[LOGS].ops.quote_name
    table, place = quote(UsageSum._meta.db_table), ", ".join(map(quote, PLACE))
    names, marks = ", ".join(map(quote, (*PLACE, *COUNTS))), ", ".join(["%s"] * (len(PLACE) + len(COUNTS)))
    values = ", ".join([f"({marks})"] * rows)
    added = ", ".join(f"{quote(name)} = {table}.{quote(name)} + excluded.{quote(name)}" for name in COUNTS)
    insert = f"INSERT INTO {table} ({names}) VALUES {values}"  # noqa: S608  # our models' own names
    return f"{insert} ON CONFLICT ({place}) DO UPDATE SET {added}"
