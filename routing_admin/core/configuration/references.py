"""Whether everything a configuration points at is there."""

from __future__ import annotations

from collections.abc import Iterator

from capabilities.core.problems import Problem
from capabilities.core.worded import worded
from routing_admin.core.configuration.specs import AgentSpec, Configuration, RouteSpec
from routing_admin.core.documents.json_path import child
from routing_admin.core.documents.problem_sentences import unknown_provider


def broken_references(configuration: Configuration) -> list[Problem]:
    """A problem for each candidate, service and agent that names what is not (or no longer) there."""
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
            where = f"{path}.fallback[{index - 1}]" if index else f"{path}.provider"
            yield unknown_provider(where, candidate.provider)


def _agent(agent: AgentSpec, configuration: Configuration) -> Iterator[Problem]:
    path = f"agents[{agent.id}]"
    if agent.service_id is not None and configuration.service(agent.service_id) is None:
        words = worded(
            "The agent “%(agent)s” uses the model service “%(service)s”, which would no longer exist. Keep the "
            "service, or give the agent another first.",
            agent=agent.id,
            service=agent.service_id,
        )
        yield Problem(path, words, "reference")
    if agent.task_type is not None and configuration.route(agent.task_type) is None:
        words = worded(
            "The agent “%(agent)s” uses the task route “%(route)s”, which would no longer exist. Keep the "
            "route, or give the agent another first.",
            agent=agent.id,
            route=agent.task_type,
        )
        yield Problem(path, words, "reference")
