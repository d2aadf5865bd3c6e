"""Estimate a planned request's tokens and cost, and reserve them from the agent's limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from capabilities.core.delivery.adaptation import CannotRead
from capabilities.core.delivery.tokens import text_tokens
from capabilities.core.message import FilePart, UnreadableError
from capabilities.core.prices import Price
from capabilities.core.protocols.counters import COUNTERS, Count
from capabilities.core.providers.origins import is_embedded
from capabilities.core.wire import Answer, Usage
from capabilities.runtime import owned
from routing_admin.core.fallback.chain import Attempt, Call, PlannedCandidate, Timeouts
from routing_admin.core.limits.estimates import estimate_call, nanos_of
from routing_admin.core.planning.params import apply_params
from routing_admin.dispatch.plan import PlannedRequest, prepare_for
from routing_admin.limits.prices.sheet import sheet_of
from routing_admin.limits.reservations import Reservation
from routing_admin.upstream import process_upstream, run_sync


async def reserve_planned(hold: Reservation, planned: PlannedRequest) -> None:
    """Reserve the estimated usage. Raise `LimitReachedError`."""
    if hold.counts_usage:
        question, answer = estimate_planned(planned)
        usage, at_most, unpriced = Usage(question, answer), dict[str, int](), dict[str, str]()
        for currency in hold.currencies:
            at_most[currency] = 0
            for each in (each for each in planned.plan.candidates if each.skip is None):
                nanos = nanos_of(usage, price_at(planned, each, currency), currency)
                if nanos is None:
                    unpriced.setdefault(currency, f"{each.provider}/{each.model}")
                # Any candidate may answer, so the most expensive one is reserved.
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
    """Settle the reservation after an answer by `candidate`, complete or cut."""
    hold.settle(usage, reply, prices_at(hold, planned, candidate), is_cut=is_cut)


def prices_at(hold: Reservation, planned: PlannedRequest, candidate: PlannedCandidate) -> dict[str, Price | None]:
    return {each: price_at(planned, candidate, each) for each in hold.currencies}


def charge_failures(hold: Reservation, planned: PlannedRequest, attempts: Iterable[Attempt]) -> None:
    """Charge failed calls for which providers reported usage."""
    for attempt in attempts:
        for usage in (each.usage for each in attempt.tries if each.usage is not None):
            prices = {each: _price(planned, attempt.provider, attempt.model, each) for each in hold.currencies}
            hold.charge(usage, prices)


def estimate_planned(planned: PlannedRequest) -> tuple[int, int]:
    """Return the estimated tokens of the request and of its answer."""
    if planned.plan.verbatim:
        # A request that passes through has no known structure: count all of its text.
        return sum(text_tokens(each).tokens for each in _texts_of(planned.chat.extra)), 0
    most = planned.chat.max_tokens or planned.route.max_tokens
    return estimate_call(planned.chat, planned.plan.candidates[0].model, most)


def price_at(planned: PlannedRequest, candidate: PlannedCandidate, currency: str) -> Price | None:
    """Return the candidate's current price in that currency, or None without a price or an exchange rate."""
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


# Exact token counts from the provider that would be called first, if it has a counter.

SHORT = Timeouts(connect=2, first_content=4, between=2, total=5)
"""The caller waits for the count before it sends anything, and an estimate is available."""
LEFT_ALONE_SECONDS = 60
"""How long a counter is not called again after it returned no number."""
MAX_REMEMBERED = 1000


@dataclass(slots=True)
class SilentCounters:
    """Models whose counter returned no number recently; `clock` is in seconds."""

    clock: Callable[[], float] = time.monotonic
    since: dict[tuple[str, str], float] = field(default_factory=dict)

    def has(self, place: tuple[str, str]) -> bool:
        return place in self.since and self.clock() - self.since[place] < LEFT_ALONE_SECONDS

    def add(self, place: tuple[str, str]) -> None:
        if len(self.since) >= MAX_REMEMBERED:
            self.since.clear()
        self.since[place] = self.clock()


@owned
def silent_counters() -> SilentCounters:
    return SilentCounters()


def first_candidate(planned: PlannedRequest) -> PlannedCandidate | None:
    return next((each for each in planned.plan.candidates if each.skip is None), None)


def count_tokens(planned: PlannedRequest) -> int | None:
    """Return the first candidate's own count, or None without a counter or a number."""
    candidate = first_candidate(planned)
    if candidate is None or ((place := (candidate.provider, candidate.model)) and silent_counters().has(place)):
        return None
    drill = planned.state.drill
    # A fire drill calls no provider, not even its counter.
    if drill is not None and drill.stops(candidate.provider, time.time()):
        return None
    to = planned.endpoint(candidate.index)
    counter = COUNTERS.get(to.protocol.name)
    if counter is None or is_embedded(to.target.endpoint):
        return None
    call = Call(candidate, 1, SHORT)
    try:
        # Nothing is stored for a count: files described in text get a placeholder reference of the same length.
        standing_in = replace(planned, keep=_name, stream=False)
        prepared = prepare_for(standing_in, apply_params(planned.chat, call), to, call)
        if isinstance(prepared, CannotRead):
            return None
        question, proxy = counter.question(prepared.request), planned.proxy(candidate.provider)
        outcome = run_sync(process_upstream().call(question, Count(counter.field), SHORT, proxy))
    except UnreadableError:
        return None
    if isinstance(outcome, Answer):
        return int(outcome.text)
    silent_counters().add(place)
    return None


def _name(file: FilePart) -> FilePart:
    return replace(file, artifact_id="0" * 32)
