"""A plan as `/llm/resolve` and the simulation show it: who would be asked, in which order, who would not, and why."""

from __future__ import annotations

from dataclasses import dataclass

from routing_admin.core.fallback.chain import SKIP_SENTENCES, Plan, PlannedCandidate, SkipReason
from routing_admin.core.fallback.cooldown import Cooldowns

READY = "ready"


@dataclass(frozen=True, slots=True)
class ResolvedCandidate:
    """One candidate's prospect: `ready`, or the outcome it would have without being called, with its reason."""

    candidate: PlannedCandidate
    outcome: str
    reason: str = ""


def resolve_plan(plan: Plan, cooldowns: Cooldowns) -> tuple[ResolvedCandidate, ...]:
    """Every candidate's prospect now; nothing is called and no probe is claimed."""
    seen: set[tuple[str, str]] = set()
    resolved = []
    for candidate in plan.candidates:
        resolved.append(_resolve(candidate, seen, cooldowns))
        seen.add((candidate.provider, candidate.model))
    return tuple(resolved)


def _resolve(candidate: PlannedCandidate, places: set[tuple[str, str]], cooldowns: Cooldowns) -> ResolvedCandidate:
    if candidate.skip is not None:
        return ResolvedCandidate(
            candidate, candidate.skip.value, candidate.skip_detail or SKIP_SENTENCES[candidate.skip]
        )
    if (candidate.provider, candidate.model) in places:
        return ResolvedCandidate(candidate, SkipReason.DUPLICATE.value, SKIP_SENTENCES[SkipReason.DUPLICATE])
    cooling = cooldowns.look(candidate.provider, candidate.model)
    if cooling is None:
        return ResolvedCandidate(candidate, READY)
    reason = f"Left alone for {cooling.seconds:.0f} s more after {cooling.failure.fault.value}."
    return ResolvedCandidate(candidate, SkipReason.COOLING.value, reason)
