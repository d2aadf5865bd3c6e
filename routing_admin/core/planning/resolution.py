"""A plan as `/llm/resolve` and the simulation show it: which candidates would be called or skipped, and why."""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.translatable import translatable
from routing_admin.core.fallback.chain import SKIP_SENTENCES, Plan, PlannedCandidate, SkipReason
from routing_admin.core.fallback.cooldown import Cooldowns

READY = "ready"


@dataclass(frozen=True, slots=True)
class ResolvedCandidate:
    """A candidate's outlook: `ready`, or the outcome it would have without a call, with the reason."""

    candidate: PlannedCandidate
    outcome: str
    reason: str = ""


def resolve_plan(plan: Plan, cooldowns: Cooldowns) -> tuple[ResolvedCandidate, ...]:
    """Return every candidate's outlook now, without calling anything or claiming a cooldown probe."""
    seen: set[tuple[str, str]] = set()
    resolved = []
    for candidate in plan.candidates:
        resolved.append(_resolve(candidate, seen, cooldowns))
        seen.add((candidate.provider, candidate.model))
    return tuple(resolved)


def _resolve(candidate: PlannedCandidate, seen: set[tuple[str, str]], cooldowns: Cooldowns) -> ResolvedCandidate:
    if candidate.skip is not None:
        return ResolvedCandidate(
            candidate, candidate.skip.value, candidate.skip_detail or SKIP_SENTENCES[candidate.skip]
        )
    if (candidate.provider, candidate.model) in seen:
        return ResolvedCandidate(candidate, SkipReason.DUPLICATE.value, SKIP_SENTENCES[SkipReason.DUPLICATE])
    # `enter` would claim the probe.
    cooling = cooldowns.look(candidate.provider, candidate.model)
    if cooling is None:
        return ResolvedCandidate(candidate, READY)
    reason = translatable(
        "In cooldown for another %(seconds)s s after %(fault)s.",
        seconds=round(cooling.seconds),
        fault=cooling.failure.fault.value,
    )
    return ResolvedCandidate(candidate, SkipReason.COOLING.value, reason)
