"""About how many tokens a planned request takes: what its agent's limits have to have left."""

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


# How many tokens a request takes, as the provider that would be asked first counts them, where it has a counter.

SHORT = Timeouts(connect=2, first_content=4, between=2, total=5)
"""A caller waits for the count before it sends anything, and an estimate is at hand."""
LEFT_ALONE_SECONDS = 60
"""How long a counter is not asked again that gave no number."""
MAX_REMEMBERED = 1000


@dataclass(slots=True)
class SilentCounters:
    """The models whose counter gave no number a moment ago; `clock` in seconds."""

    clock: Callable[[], float] = time.monotonic
    since: dict[tuple[str, str], float] = field(default_factory=dict)

    def has(self, place: tuple[str, str]) -> bool:
        """Whether that one is left alone for now."""
        return place in self.since and self.clock() - self.since[place] < LEFT_ALONE_SECONDS

    def add(self, place: tuple[str, str]) -> None:
        """It gave none."""
        if len(self.since) >= MAX_REMEMBERED:
            self.since.clear()
        self.since[place] = self.clock()


@owned
def silent_counters() -> SilentCounters:
    """Those of this process."""
    return SilentCounters()


def first_candidate(planned: PlannedRequest) -> PlannedCandidate | None:
    """Who would be asked first."""
    return next((each for each in planned.plan.candidates if each.skip is None), None)


def count_tokens(planned: PlannedRequest) -> int | None:
    """The first candidate's own count of what it would be sent; None where it has no counter, or gives no number.

    Nothing is stored for it: a file that goes as words has a reference of the right length in them.
    """
    candidate = first_candidate(planned)
    if candidate is None or ((place := (candidate.provider, candidate.model)) and silent_counters().has(place)):
        return None
    drill = planned.state.drill
    if drill is not None and drill.stops(candidate.provider, time.time()):
        return None
    to = planned.endpoint(candidate.index)
    counter = COUNTERS.get(to.protocol.name)
    if counter is None or is_embedded(to.target.endpoint):
        return None
    call = Call(candidate, 1, SHORT)
    try:
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
    """The file with a reference as long as a real one."""
    return replace(file, artifact_id="0" * 32)
