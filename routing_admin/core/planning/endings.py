"""What becomes of routes and agents when a model is no longer served: foreseen, each on its own day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from capabilities.core.consequence import Consequence
from capabilities.core.providers.catalogue import Catalogue
from routing_admin.core.configuration.retirements import ModelEnd, list_ends
from routing_admin.core.configuration.specs import CandidateSpec, Configuration
from routing_admin.core.planning.consequences import consequences
from routing_admin.core.planning.lint import NOTICE
from routing_admin.core.planning.plan import Unusable


@dataclass(frozen=True, slots=True)
class ModelEnding:
    """A model that ends, whether its day has come, and what that means for those who ask."""

    end: ModelEnd
    is_over: bool
    consequences: tuple[Consequence, ...]


def foresee_endings(
    configuration: Configuration,
    today: date,
    unusable: Mapping[str, Unusable] | None = None,
    catalogue: Catalogue | None = None,
) -> tuple[ModelEnding, ...]:
    """The endings within the notice that change something for a route or an agent, the earliest first.

    Each is weighed against what the endings before it leave.
    """
    found, before = [], configuration
    for end in list_ends(configuration, catalogue):
        if end.retirement.day > today + NOTICE:
            break
        after = without_model(before, end)
        effects = consequences(before, after, unusable)
        if effects:
            found.append(ModelEnding(end, end.retirement.day <= today, effects))
        before = after
    return tuple(found)


def without_model(configuration: Configuration, end: ModelEnd) -> Configuration:
    """The configuration as it is once nobody serves that model: its services are off, chains go on without it."""
    defaults = {provider.name: provider.default_model for provider in configuration.providers}

    place = (end.provider, end.model)

    def stays(candidate: CandidateSpec) -> bool:
        return (candidate.provider, candidate.model or defaults.get(candidate.provider)) != place

    routes = tuple(
        replace(route, candidates=tuple(filter(stays, route.candidates))) if any_gone else route
        for route in configuration.routes
        for any_gone in (not all(map(stays, route.candidates)),)
    )
    services = tuple(
        replace(service, enabled=False) if (service.provider, service.model) == place else service
        for service in configuration.services
    )
    return replace(configuration, routes=routes, services=services)
