"""The cost columns of requests and attempts, at the prices that were valid when the request was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from capabilities.core.prices import Cost
from capabilities.core.wire import Usage
from routing_admin.core.fallback.chain import Attempt
from routing_admin.limits.prices.sheet import cost_now
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.entries import Entry, RequestFacts, find_answering

UNKNOWN: Mapping[str, Any] = {"cost_nanos": None, "saved_nanos": None, "currency": ""}
NOT_BILLED: Mapping[str, Any] = {"prompt_tokens": None, "completion_tokens": None, "cost_nanos": None, "currency": ""}


def cost_columns(entry: Entry) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    """Return the cost columns of a request and, for each of its attempts, the columns with tokens and cost.

    Failed attempts may also have a cost. Values are None if tokens were not counted or the model has no price.
    """
    if entry.costs is None:
        entry.costs = _find_costs(entry)
    return entry.costs


def _find_costs(entry: Entry) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    facts, answered = entry.facts, find_answering(entry)
    cost = None
    if answered is not None:
        tier = facts.details.service_tier or ""
        cost = cost_now(answered.provider, answered.model, facts.usage, facts.began, tier)
    rows = [
        _attempt(attempt, facts, facts.usage if attempt is answered else None, cost if attempt is answered else None)
        for attempt in entry.attempts
    ]
    if cost is None:
        return UNKNOWN, rows
    return {"cost_nanos": cost.nanos, "saved_nanos": cost.saving, "currency": cost.currency}, rows


def _attempt(attempt: Attempt, facts: RequestFacts, answer: Usage | None, cost: Cost | None) -> Mapping[str, Any]:
    failed = [call.usage for call in attempt.tries if call.usage is not None]
    usages = failed if answer is None else [*failed, answer]
    if not usages:
        return NOT_BILLED
    wasted = [cost_now(attempt.provider, attempt.model, usage, facts.began) for usage in failed]
    known = [priced for priced in (*wasted, cost) if priced is not None]
    return {
        "prompt_tokens": _sum([usage.prompt_tokens for usage in usages]),
        "completion_tokens": _sum([usage.completion_tokens for usage in usages]),
        "cost_nanos": sum(priced.nanos for priced in known) if known else None,
        "currency": known[0].currency if known else "",
    }


SPENDING_COLUMNS = ("prompt_tokens", "completion_tokens", "cost_nanos")
"""Columns that the rows of requests and the rows of attempts have in common."""


def list_waste(
    request: Mapping[str, Any], attempts: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], Sequence[int]]]:
    """Yield each attempt that wasted tokens or money, with the wasted amounts in the order of `SPENDING_COLUMNS`.

    Tokens and cost of the answer are not wasted, but providers also bill failed calls. The arguments are the columns of
    a request's row and of the rows of its attempts.
    """
    for at, row in enumerate(attempts, 1):
        # Only the last attempt can have produced the answer.
        answer = request if request["provider"] and at == len(attempts) else {}
        spent = [(row.get(name) or 0) - (answer.get(name) or 0) for name in SPENDING_COLUMNS]
        if any(spent):
            yield row, spent


def sum_waste(request: RequestLog, attempts: Sequence[AttemptLog]) -> dict[str, int]:
    """Return the cost of failed calls by currency, in billionths of the currency's unit."""
    found: dict[str, int] = {}
    for row, (*_tokens, nanos) in list_waste(vars(request), [vars(attempt) for attempt in attempts]):
        if nanos:
            found[row["currency"]] = found.get(row["currency"], 0) + nanos
    return found


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
