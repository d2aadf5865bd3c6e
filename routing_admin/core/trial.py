"""One candidate while it is being asked, and the attempt of one that is not asked since it is cooling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from capabilities.core.wire import Fault
from routing_admin.core.chain import Attempt, Candidate, SkipReason, Try, skipped
from routing_admin.core.cooldown import Cooling


@dataclass(slots=True)
class Trial:
    """What has happened so far: tries, waits, and what the candidate is asked without."""

    candidate: Candidate
    began: float
    retries: int
    without_params: frozenset[str]
    without_capabilities: frozenset[str] = frozenset()
    retried: int = 0
    adjusted: set[Fault] = field(default_factory=set)
    tries: list[Try] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    adaptation: str = ""
    dropped: tuple[str, ...] = ()
    stripped: tuple[str, ...] = ()


def cooling_attempt(candidate: Candidate, cooling: Cooling, at_ms: float) -> Attempt:
    """The attempt of a candidate that is left alone: for how long yet, and after what."""
    cause = cooling.failure
    sentence = f"Left alone for {cooling.seconds:.0f} s more after {cause.fault.value}: {cause.message}".rstrip(": ")
    return replace(
        skipped(candidate, SkipReason.COOLING, at_ms, sentence), cause=cause.fault, retry_after=cooling.seconds
    )
