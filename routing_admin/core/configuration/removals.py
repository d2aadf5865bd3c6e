"""Remove or disable parts of a configuration, and find references to missing objects and to retired models."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.providers.catalogue import Catalogue, Retirement, default_catalogue
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.diff import LISTS
from routing_admin.core.configuration.specs import AgentSpec, Configuration, RouteSpec
from routing_admin.core.documents.json_path import child
from routing_admin.core.documents.problem_sentences import unknown_provider

OBJECT_FIELDS: Mapping[str, tuple[str, str]] = {kind: (field, name) for kind, field, name in LISTS}
"""Maps each kind of object to the configuration field that lists these objects, and to the field with an
object's name.
"""


def without_items(configuration: Configuration, kind: str, names: Collection[str]) -> Configuration:
    field, name = OBJECT_FIELDS[kind]
    remaining = tuple(item for item in getattr(configuration, field) if getattr(item, name) not in names)
    return _with(configuration, field, remaining)


def switch_off(configuration: Configuration, kind: str, names: Collection[str]) -> Configuration:
    field, name = OBJECT_FIELDS[kind]
    items = getattr(configuration, field)
    return _with(
        configuration,
        field,
        tuple(replace(item, enabled=False) if getattr(item, name) in names else item for item in items),
    )


def keep_agents(earlier: Configuration, current: Configuration) -> Configuration:
    """Return the earlier configuration, plus the agents that exist only in the current one."""
    known_ids = {agent.id for agent in earlier.agents}
    newer = (
        replace(
            agent,
            # A newer agent's reference is cleared if its service or route does not exist in the earlier configuration.
            service_id=agent.service_id if earlier.service(agent.service_id or "") else None,
            task_type=agent.task_type if earlier.route(agent.task_type or "") else None,
        )
        for agent in current.agents
        if agent.id not in known_ids
    )
    # Newer agents are kept, because deleting an agent would permanently revoke its keys.
    return replace(earlier, agents=tuple(sorted((*earlier.agents, *newer), key=lambda agent: agent.id)))


def _with(configuration: Configuration, field: str, items: Any) -> Configuration:
    return replace(configuration, **{field: items})


def removed_names(before: Configuration, after: Configuration) -> dict[str, tuple[str, ...]]:
    """Return the names that `before` contains but `after` lacks, grouped by kind; kinds without any are omitted."""
    found = {}
    for kind, (field, name) in OBJECT_FIELDS.items():
        remaining = {getattr(item, name) for item in getattr(after, field)}
        removed = tuple(
            value for value in (getattr(item, name) for item in getattr(before, field)) if value not in remaining
        )
        if removed:
            found[kind] = removed
    return found


def broken_references(configuration: Configuration) -> list[Problem]:
    """Return a problem for each service, candidate or agent that refers to a missing object."""
    providers = {provider.name for provider in configuration.providers}
    services = (
        unknown_provider(f"services[{index}]", service.provider)
        for index, service in enumerate(configuration.services)
        if service.provider not in providers
    )
    routes = (problem for route in configuration.routes for problem in _route(route, providers))
    agents = (problem for agent in configuration.agents for problem in _agent(agent, configuration))
    return [*services, *routes, *agents]


def _route(route: RouteSpec, providers: set[str]) -> Iterator[Problem]:
    path = child("routing", route.task_type)
    for index, candidate in enumerate(route.candidates):
        if candidate.provider not in providers:
            # In a file, the first candidate is described by the route's own fields, and the fallbacks are numbered from
            # 0.
            candidate_path = f"{path}.fallback[{index - 1}]" if index else f"{path}.provider"
            yield unknown_provider(candidate_path, candidate.provider)


def _agent(agent: AgentSpec, configuration: Configuration) -> Iterator[Problem]:
    path = f"agents[{agent.id}]"
    if agent.service_id is not None and configuration.service(agent.service_id) is None:
        message = translatable(
            "The agent “%(agent)s” uses the model service “%(service)s”, which would no longer exist. Keep the "
            "service, or give the agent another first.",
            agent=agent.id,
            service=agent.service_id,
        )
        yield Problem(path, message, "reference")
    if agent.task_type is not None and configuration.route(agent.task_type) is None:
        message = translatable(
            "The agent “%(agent)s” uses the task route “%(route)s”, which would no longer exist. Keep the "
            "route, or give the agent another first.",
            agent=agent.id,
            route=agent.task_type,
        )
        yield Problem(path, message, "reference")


@dataclass(frozen=True, slots=True)
class ModelEnd:
    """The retirement of a model by its provider."""

    provider: str
    model: str
    retirement: Retirement


def list_ends(configuration: Configuration, catalogue: Catalogue | None = None) -> tuple[ModelEnd, ...]:
    """Return the known retirements of all models in the configuration, earliest first.

    The dates are from `catalogue`, by default the shipped one.
    """
    known = catalogue or default_catalogue()
    endpoints = {provider.name: provider.endpoint for provider in configuration.providers}
    defaults = {provider.name: provider.default_model for provider in configuration.providers}
    models = [
        *defaults.items(),
        *((service.provider, service.model) for service in configuration.services),
        *(
            (candidate.provider, candidate.model or defaults.get(candidate.provider, ""))
            for route in configuration.routes
            for candidate in route.candidates
        ),
    ]
    found = (
        ModelEnd(provider, model, retirement)
        for provider, model in dict.fromkeys(models)
        if (retirement := known.retirement_at(provider, endpoints.get(provider, ""), model))
    )
    return tuple(sorted(found, key=lambda end: (end.retirement.day, end.provider, end.model)))
