"""About how many tokens a planned request takes: what its agent's limits have to have left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from capabilities.core.delivery.tokens import text_tokens
from capabilities.core.prices import Price
from capabilities.core.wire import Answer, Usage
from routing_admin.core.fallback.chain import Attempt, PlannedCandidate
from routing_admin.core.limits.estimates import estimate_call, nanos_of
from routing_admin.dispatch.plan import PlannedRequest
from routing_admin.limits.prices.sheet import sheet_of
from routing_admin.limits.reservations import Reservation


async def reserve_planned(hold: Reservation, planned: PlannedRequest) -> None:
    """Reserves what it is likely to take of its agent's limits. Raises `LimitReachedError`."""
    if hold.counts_usage:
        question, answer = estimate_planned(planned)
        usage, at_most, unpriced = Usage(question, answer), dict[str, int](), dict[str, str]()
        for currency in hold.currencies:
            at_most[currency] = 0
            for each in (each for each in planned.plan.candidates if each.skip is None):
                nanos = nanos_of(usage, price_at(planned, each, currency), currency)
                if nanos is None:
                    unpriced.setdefault(currency, f"{each.provider}/{each.model}")
                at_most[currency] = max(at_most[currency], nanos or 0)
        await hold.reserve(question, answer, at_most, unpriced)


def settle_planned(
    hold: Reservation,
    planned: PlannedRequest,
    candidate: PlannedCandidate,
    usage: Usage | None,
    reply: Answer,
    *,
    is_cut: bool = False,
) -> None:
    """It was answered by that candidate, wholly or, if cut, as far as it came."""
    hold.settle(usage, reply, prices_at(hold, planned, candidate), is_cut=is_cut)


def prices_at(hold: Reservation, planned: PlannedRequest, candidate: PlannedCandidate) -> dict[str, Price | None]:
    """Return what the candidate's tokens cost in each currency that matters to the call."""
    return {each: price_at(planned, candidate, each) for each in hold.currencies}


def charge_failures(hold: Reservation, planned: PlannedRequest, attempts: Iterable[Attempt]) -> None:
    """Calls that gave no answer, and that their providers counted all the same, are paid for, too."""
    for attempt in attempts:
        for usage in (each.usage for each in attempt.tries if each.usage is not None):
            prices = {each: _price(planned, attempt.provider, attempt.model, each) for each in hold.currencies}
            hold.charge(usage, prices)


def estimate_planned(planned: PlannedRequest) -> tuple[int, int]:
    """Those of the request, and the most that its answer may have; of what passes through those of its words."""
    if planned.plan.verbatim:
        return sum(text_tokens(each).tokens for each in _texts_of(planned.chat.extra)), 0
    most = planned.chat.max_tokens or planned.route.max_tokens
    return estimate_call(planned.chat, planned.plan.candidates[0].model, most)


def price_at(planned: PlannedRequest, candidate: PlannedCandidate, currency: str) -> Price | None:
    """What a candidate's tokens cost now, in that currency; None where nobody has a price, or no rate leads there."""
    return _price(planned, candidate.provider, candidate.model, currency)


def _price(planned: PlannedRequest, provider: str, model: str, currency: str) -> Price | None:
    price = sheet_of(planned.state).price(provider, model, datetime.now(UTC))
    return None if price is None else planned.state.exchange.price_in(price, currency)


def _texts_of(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
