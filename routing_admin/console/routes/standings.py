"""Which task routes cannot answer, and why: one count for pages, alerts, `doctor` and `/metrics`.

Disabled routes are not counted, since their tasks go to `default`; nor are cooldowns, which pass by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capabilities.core.providers.origins import is_embedded
from capabilities.sentences import translate_sentence
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import RouteSpec
from routing_admin.core.fallback.chain import PlannedCandidate
from routing_admin.core.planning.plan import RoutingQuery
from routing_admin.dispatch.decisions import decisions_of


@dataclass(frozen=True, slots=True)
class Standing:
    """One route's ability to answer: which of its candidates could be called now, and why the others could not."""

    task_type: str
    ready: int
    reasons: tuple[str, ...]
    is_echo_only: bool


def list_standings(state: Snapshot) -> tuple[Standing, ...]:
    """Return every enabled route: planned as a request would be, nothing is called."""
    return tuple(_standing(state, route) for route in state.configuration.routes if route.enabled)


def list_unable(standings: Sequence[Standing]) -> list[str]:
    """Return the task types of the routes that cannot answer."""
    return [each.task_type for each in standings if not each.ready]


def list_ready(state: Snapshot, route: RouteSpec) -> list[PlannedCandidate]:
    """Return the candidates that a request along the route could call."""
    return [each for each in _plan(state, route) if each.skip is None]


def _standing(state: Snapshot, route: RouteSpec) -> Standing:
    ready, skipped = list_ready(state, route), [each for each in _plan(state, route) if each.skip]
    reasons = tuple(dict.fromkeys(translate_sentence(each.skip_detail) or each.name for each in skipped))
    return Standing(route.task_type, len(ready), reasons, all(_is_embedded(state, each.provider) for each in ready))


def _plan(state: Snapshot, route: RouteSpec) -> Sequence[PlannedCandidate]:
    return decisions_of(state).plan(route, RoutingQuery(route.task_type), matched=True).candidates


def _is_embedded(state: Snapshot, provider: str) -> bool:
    spec = state.configuration.provider(provider)
    return spec is not None and is_embedded(spec.endpoint)
