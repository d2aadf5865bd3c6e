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
from routing_admin.core.limits.estimates import estimate_call, price_usage
from routing_admin.core.planning.params import apply_params
from routing_admin.dispatch.plan import PlannedRequest, prepare_for
from routing_admin.limits.prices.sheet import sheet_of
from routing_admin.limits.reservations import Reservation
from routing_admin.upstream import process_upstream, run_sync


async def reserve_planned(reservation: Reservation, planned: PlannedRequest) -> None:
    """Reserve the estimated usage of a planned request. Raise `LimitReachedError`."""
    if reservation.counts_usage:
        prompt_tokens, answer_tokens = estimate_planned(planned)
        usage, max_costs, unpriced = Usage(prompt_tokens, answer_tokens), dict[str, int](), dict[str, str]()
        for currency in reservation.currencies:
            max_costs[currency] = 0
            for candidate in (option for option in planned.plan.candidates if option.skip is None):
                nanos = price_usage(usage, price_at(planned, candidate, currency), currency)
                if nanos is None:
                    unpriced.setdefault(currency, f"{candidate.provider}/{candidate.model}")
                # Any candidate may answer, so reserve the cost of the most expensive one.
                max_costs[currency] = max(max_costs[currency], nanos or 0)
        await reservation.reserve(prompt_tokens, answer_tokens, max_costs, unpriced)


def settle_planned(
    reservation: Reservation,
    planned: PlannedRequest,
    candidate: PlannedCandidate,
    usage: Usage | None,
    answer: Answer,
    *,
    is_cut: bool = False,
) -> None:
    reservation.settle(usage, answer, prices_at(reservation, planned, candidate), is_cut=is_cut)


def prices_at(
    reservation: Reservation, planned: PlannedRequest, candidate: PlannedCandidate
) -> dict[str, Price | None]:
    return {currency: price_at(planned, candidate, currency) for currency in reservation.currencies}


def charge_failures(reservation: Reservation, planned: PlannedRequest, attempts: Iterable[Attempt]) -> None:
    """Charge the agent's limits for failed calls whose providers reported usage."""
    for attempt in attempts:
        for usage in (call.usage for call in attempt.tries if call.usage is not None):
            prices = {
                currency: _price(planned, attempt.provider, attempt.model, currency)
                for currency in reservation.currencies
            }
            reservation.charge(usage, prices)


def estimate_planned(planned: PlannedRequest) -> tuple[int, int]:
    """Return the estimated number of tokens in the request and in its answer."""
    if planned.plan.verbatim:
        # A request that is passed through has an unknown structure, so the tokens in all its texts are counted.
        return sum(text_tokens(text).tokens for text in _list_texts(planned.chat.extra)), 0
    max_tokens = planned.chat.max_tokens or planned.route.max_tokens
    return estimate_call(planned.chat, planned.plan.candidates[0].model, max_tokens)


def price_at(planned: PlannedRequest, candidate: PlannedCandidate, currency: str) -> Price | None:
    """Return the candidate's current price in `currency`, or None if there is no price or no exchange rate."""
    return _price(planned, candidate.provider, candidate.model, currency)


def _price(planned: PlannedRequest, provider: str, model: str, currency: str) -> Price | None:
    price = sheet_of(planned.state).price(provider, model, datetime.now(UTC))
    return None if price is None else planned.state.exchange.price_in(price, currency)


def _list_texts(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)


# The rest of this module asks the provider that would be called first for an exact token count.

COUNT_SECONDS = Timeouts(connect=2, first_content=4, between=2, total=5)
"""Timeouts for asking a provider for its token count, in seconds.

They are short, because the caller waits for the count before sending a request, and an estimate would be enough.
"""
COUNTER_RETRY_SECONDS = 60
"""After a token counter has failed to return a number, it is not called again for this many seconds."""
MAX_REMEMBERED = 1000


@dataclass(slots=True)
class SilentCounters:
    """The models whose token counter recently failed to return a number; `clock` is in seconds."""

    clock: Callable[[], float] = time.monotonic
    since: dict[tuple[str, str], float] = field(default_factory=dict)

    def has(self, model_key: tuple[str, str]) -> bool:
        return model_key in self.since and self.clock() - self.since[model_key] < COUNTER_RETRY_SECONDS

    def add(self, model_key: tuple[str, str]) -> None:
        if len(self.since) >= MAX_REMEMBERED:
            self.since.clear()
        self.since[model_key] = self.clock()


@owned
def silent_counters() -> SilentCounters:
    return SilentCounters()


def first_candidate(planned: PlannedRequest) -> PlannedCandidate | None:
    return next((candidate for candidate in planned.plan.candidates if candidate.skip is None), None)


def count_tokens(planned: PlannedRequest) -> int | None:
    """Return the token count from the first candidate's provider.

    Return None if that provider has no token counter, or if the counter returns no number.
    """
    candidate = first_candidate(planned)
    if candidate is None or ((model_key := (candidate.provider, candidate.model)) and silent_counters().has(model_key)):
        return None
    drill = planned.state.drill
    # A fire drill calls no provider, not even its token counter.
    if drill is not None and drill.stops(candidate.provider, time.time()):
        return None
    endpoint = planned.endpoint(candidate.index)
    counter = COUNTERS.get(endpoint.protocol.name)
    if counter is None or is_embedded(endpoint.target.endpoint):
        return None
    call = Call(candidate, 1, COUNT_SECONDS)
    try:
        # Counting stores no files, so text that replaces a file contains a placeholder reference of the same length.
        without_storing = replace(planned, keep=_with_placeholder_id, stream=False)
        prepared = prepare_for(without_storing, apply_params(planned.chat, call), endpoint, call)
        if isinstance(prepared, CannotRead):
            return None
        count_request, proxy = counter.question(prepared.request), planned.proxy(candidate.provider)
        outcome = run_sync(process_upstream().call(count_request, Count(counter.field), COUNT_SECONDS, proxy))
    except UnreadableError:
        return None
    if isinstance(outcome, Answer):
        return int(outcome.text)
    silent_counters().add(model_key)
    return None


def _with_placeholder_id(file: FilePart) -> FilePart:
    return replace(file, artifact_id="0" * 32)
