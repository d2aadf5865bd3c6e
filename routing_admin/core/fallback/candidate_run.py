"""The state of the attempt with one candidate, and the attempt recorded for a candidate that is cooling down."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Self

from capabilities.core.providers.quirks import LIMIT_NAMES, other_limit_name
from capabilities.core.translatable import translatable
from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.chain import (
    Attempt,
    Call,
    PlannedCandidate,
    PoolKey,
    SkipReason,
    Timeouts,
    Try,
    skip_attempt,
)
from routing_admin.core.fallback.cooldown import Cooling
from routing_admin.core.fallback.memory import RefusalMemory

MAX_OMISSIONS = 12
"""How many parameters one attempt may omit; a refusal of further ones is handled as a failure."""

logger = logging.getLogger("routing_admin.routing")

COOLING = translatable("Cooling down for another %(seconds)s s after %(fault)s: %(said)s")
COOLING_WITHOUT_MESSAGE = translatable("Cooling down for another %(seconds)s s after %(fault)s")
"""Templates of the reason for skipping a candidate that is cooling down; `said` is its failure's message, if any."""


@dataclass(slots=True)
class CandidateRun:
    """A running attempt with one candidate: its calls and waits so far, and how the request was adjusted.

    `described` is set once content has been replaced by descriptions, `renamed` once the token limit has been sent
    under its other name. If the provider has several keys, `key` is the one in use, and `refused_keys` contains the
    marks of refused keys.
    """

    candidate: PlannedCandidate
    began: float
    retries: int
    without_params: frozenset[str] = frozenset()
    limit_name: str | None = None
    without_capabilities: frozenset[str] = frozenset()
    retried: int = 0
    described: bool = False
    renamed: bool = False
    tries: list[Try] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    adaptation: str = ""
    dropped: tuple[str, ...] = ()
    stripped: tuple[str, ...] = ()
    key: PoolKey | None = None
    refused_keys: frozenset[str] = frozenset()

    @classmethod
    def from_memory(cls, memory: RefusalMemory, candidate: PlannedCandidate, began: float, retries: int) -> Self:
        """Start an attempt whose request already avoids what earlier refusals in `memory` objected to."""
        known = memory.refusals(candidate.provider, candidate.model)
        left_out = frozenset(refusal.param for refusal in known if refusal.sent_as is None)
        name = next((refusal.sent_as for refusal in known if refusal.sent_as is not None), None)
        return cls(candidate, began, retries, left_out, name)

    def call(self, timeouts: Timeouts) -> Call:
        number = len(self.tries) + 1
        left_out = (self.without_params, self.without_capabilities)
        return Call(self.candidate, number, timeouts, *left_out, limit_name=self.limit_name, key=self.key)

    def adjust(self, failure: Failure, memory: RefusalMemory) -> bool:
        """Adjust the next call to avoid another refusal; return False if nothing can be adjusted.

        The token limit is renamed and content is replaced by descriptions, each at most once. Other parameters are
        omitted: first all those that the refusal names, then those that further refusals name. If the model refused the
        number of tools, the request is not adjusted.
        """
        if failure.fault is Fault.UNSUPPORTED_PARAMETER and failure.param in LIMIT_NAMES:
            return self._rename(failure.param, memory)
        if failure.fault is Fault.UNSUPPORTED_PARAMETER and failure.param:
            return self._leave_out(failure, memory)
        if failure.fault is not Fault.CAPABILITY_MISMATCH or failure.param == "tools" or self.described:
            return False
        self.without_capabilities |= {failure.param or "*"}
        self.described = True
        return True

    def _leave_out(self, failure: Failure, memory: RefusalMemory) -> bool:
        named = dict.fromkeys((failure.param or "", *failure.further_params))
        # The token limit may be renamed but never omitted.
        new_params = [param for param in named if param not in self.without_params and param not in LIMIT_NAMES]
        if not new_params or len(self.stripped) + len(new_params) > MAX_OMISSIONS:
            return False
        self.without_params |= set(new_params)
        self.stripped += tuple(new_params)
        for param in new_params:
            memory.refuse(self.candidate.provider, self.candidate.model, param, value_only=failure.refuses_value_only)
        return True

    def _rename(self, refused: str, memory: RefusalMemory) -> bool:
        # A rejected token limit is not omitted like other parameters. It is sent once more under its other name
        # (`max_tokens` or `max_completion_tokens`).
        model_key = (self.candidate.provider, self.candidate.model)
        other_name = other_limit_name(self.candidate.protocol, refused)
        if other_name is None:
            return False
        if self.renamed:
            memory.forget(*model_key, refused, other_name)  # Neither name was accepted, so neither refusal is stored.
            return False
        self.renamed, self.limit_name = True, other_name
        memory.refuse(*model_key, refused, other_name)
        logger.info("provider %s: %s does not accept %s; it is called again with %s", *model_key, refused, other_name)
        return True


def cooling_attempt(candidate: PlannedCandidate, cooling: Cooling, at_ms: float) -> Attempt:
    """Return the attempt for a candidate that is cooling down, with the time left and the reason."""
    cause = cooling.failure
    facts = {"seconds": f"{cooling.seconds:.0f}", "fault": cause.fault.value}
    sentence = (
        translatable(COOLING, **facts, said=cause.message)
        if cause.message
        else translatable(COOLING_WITHOUT_MESSAGE, **facts)
    )
    return replace(
        skip_attempt(candidate, SkipReason.COOLING, at_ms, sentence), cause=cause.fault, retry_after=cooling.seconds
    )
