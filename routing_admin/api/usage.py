# ruff: noqa: N803 - parameters of the address are camelCase
"""Endpoint for an agent to read its usage and cost by route, provider, model, label or day."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from ninja import Router
from pydantic.alias_generators import to_camel

from capabilities.access import request_principal
from capabilities.core.exchange import ExchangeTable
from capabilities.core.prices import NO_CURRENCY, exact_amount
from routing_admin.api.calls import CallError, answer
from routing_admin.api.schemas import (
    ExchangeRateOut,
    MoneyOut,
    UsageCostOut,
    UsageGroupOut,
    UsageOut,
    UsageRowOut,
)
from routing_admin.configuration import snapshot
from routing_admin.request_log.journal import journal
from routing_admin.request_log.usage import GROUPS, PLAIN_COUNTS, Counts, sum_usage

DEFAULT_DAYS = 30

router = Router()


@router.get("/usage", tags=["llm"], response=UsageOut)
def own_usage(
    request: HttpRequest,
    groupBy: str = "model",
    since: str = "",
    until: str = "",
    team: str = "",
    project: str = "",
    user: str = "",
) -> HttpResponse:
    """Return what the calling agent used, by `agent`, `route`, `provider`, `model`, `label` or `day`.

    `team`, `project` and `user` select only calls with these labels. `since` and `until` (exclusive) are days or times
    (ISO 8601); days are in the installation's time zone. By default the period is the last 30 days. Partial hours are
    counted as whole hours, and partial days as whole days if `since` is more than two days ago; the response's `since`
    and `until` give the period that was counted. `cost` maps each currency to its own amount; `unknownCost` counts
    requests without a known price. An invalid value is refused with a 400.
    """
    if groupBy not in GROUPS:
        raise CallError(400, "invalid_request", f"groupBy must be one of {', '.join(GROUPS)}.")
    moment = read_moment(since, "since") if since else timezone.now() - timedelta(days=DEFAULT_DAYS)
    stop = read_moment(until, "until") if until else None
    if stop is not None and stop <= moment:
        raise CallError(400, "invalid_request", "until must be later than since.")
    # Write the log entries of finished requests first, so that they are counted.
    journal().flush()
    labels = {name: value for name, value in (("team", team), ("project", project), ("user", user)) if value}
    exchange = snapshot.current().exchange
    usage = sum_usage(moment, groupBy, exchange, until=stop, agent=request_principal(request).agent, **labels)
    groups = [(f"{name:%Y-%m-%d}" if groupBy == "day" else str(name), counts) for name, counts in usage.groups]
    return answer(
        UsageOut(
            since=usage.since.isoformat(),
            until=usage.until.isoformat(),
            groupBy=groupBy,
            rows=[_row(name, counts, exchange) for name, counts in groups],
            total=_group("", usage.total, exchange),
            groups=[_group(name, counts, exchange) for name, counts in groups],
            exchangeRates=[ExchangeRateOut(**asdict(rate)) for rate in exchange.rates],
        )
    )


def read_moment(text: str, name: str) -> datetime:
    """Parse a day or time; raise `CallError` 400 if it is invalid, or if `since` is in the future."""
    try:
        day, moment = parse_date(text), parse_datetime(text)
        if moment is None and day is not None:
            moment = datetime.combine(day, time.min)
        if moment is not None:
            moment = (timezone.make_aware(moment) if timezone.is_naive(moment) else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or (name == "since" and moment > timezone.now()):
        past = " that is past" if name == "since" else ""
        raise CallError(400, "invalid_request", f"{name} is a day or moment{past}, such as 2026-11-01.")
    return moment


def _row(name: str, counts: Counts, exchange: ExchangeTable) -> UsageRowOut:
    total = exchange.total(counts.costs)
    paid = {currency: exact_amount(nanos) for currency, nanos in sorted(counts.costs.items())}
    paid.pop(NO_CURRENCY, None)
    converted = None if total is None else MoneyOut(amount=exact_amount(total), currency=exchange.into)
    return UsageRowOut(key=name, **_count(counts), unknownCost=counts.unpriced, cost=paid, converted=converted)


def _count(counts: Counts) -> dict[str, int]:
    return {to_camel(name): getattr(counts, name) for name in PLAIN_COUNTS}


def _group(name: str, counts: Counts, exchange: ExchangeTable) -> UsageGroupOut:
    total = exchange.total(counts.costs)
    return UsageGroupOut(
        name=name,
        **_count(counts),
        costs=[
            UsageCostOut(
                amount=exact_amount(nanos),
                saved=exact_amount(counts.savings.get(currency, 0)),
                failedAttempts=exact_amount(counts.fallback_costs.get(currency, 0)),
                currency=currency,
            )
            for currency, nanos in sorted(counts.costs.items())
        ],
        cost=None if total is None else MoneyOut(amount=exact_amount(total), currency=exchange.into),
    )
