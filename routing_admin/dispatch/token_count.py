"""How many tokens a request takes, as the provider that would be asked first counts them, where it has a counter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from capabilities.core.delivery.adaptation import CannotRead
from capabilities.core.message import FilePart, UnreadableError
from capabilities.core.protocols.counters import COUNTERS, Count
from capabilities.core.providers.origins import is_embedded
from capabilities.core.wire import Answer
from capabilities.runtime import owned
from routing_admin.core.fallback.chain import Call, PlannedCandidate, Timeouts
from routing_admin.core.planning.params import apply_params
from routing_admin.dispatch.plan import PlannedRequest
from routing_admin.dispatch.prepare import prepare_for
from routing_admin.upstream import process_upstream, run_sync

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
    to = planned.receiver(candidate.index)
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
