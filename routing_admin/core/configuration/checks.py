"""What must be so in any configuration, whichever way it came about: the last word before a revision is written.

Files are checked field by field when they are read (importing); this checks the value as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from capabilities.core.problems import Problem
from capabilities.core.worded import worded
from routing_admin.core.configuration.specs import Configuration, RouteSpec
from routing_admin.core.documents.json_path import child

DEFAULT = "default"


def check(configuration: Configuration) -> list[Problem]:
    """Every problem; an installation without any route is empty, not wrong."""
    return [
        *names(configuration),
        *routes(configuration),
        *agents(configuration),
    ]


def names(configuration: Configuration) -> Iterator[Problem]:
    """Providers and services are called by name: names are there, unique, and a provider's has no slash."""
    yield from repeated("providers", [provider.name for provider in configuration.providers])
    yield from repeated("services", [service.id for service in configuration.services])
    yield from repeated("routing", [route.task_type for route in configuration.routes])
    for index, provider in enumerate(configuration.providers):
        if "/" in provider.name:
            where = f"providers[{index}].providerName"
            words = worded(
                "The name “%(name)s” holds a slash, which chains write between provider and model. "
                "Rename the provider and what refers to it.",
                name=provider.name,
            )
            yield Problem(where, words, "range")


def repeated(path: str, found: Sequence[str]) -> Iterator[Problem]:
    """A problem per name that is empty or there twice."""
    for name, count in Counter(found).items():
        if not name.strip():
            yield Problem(path, worded("A name is empty."), "required")
        elif count > 1:
            message = worded("%(name)s is there %(count)s times; names are unique.", name=name, count=count)
            yield Problem(path, message, "duplicate")


def routes(configuration: Configuration) -> Iterator[Problem]:
    """Every route has a chain of known providers, and there is a default route as soon as there is one at all."""
    known = {provider.name for provider in configuration.providers}
    for route in configuration.routes:
        path = child("routing", route.task_type)
        if not route.candidates:
            message = worded("The route %(name)s has no candidate; add one.", name=route.task_type)
            yield Problem(path, message, "required")
        yield from unknown_providers(path, route, known)
    if configuration.routes and configuration.route(DEFAULT) is None:
        message = worded("There is no route default; every other task type falls to it.")
        yield Problem("routing.default", message, "required")


def unknown_providers(path: str, route: RouteSpec, known: set[str]) -> Iterator[Problem]:
    """A problem per candidate whose provider is not there (MMR-P4)."""
    for index, candidate in enumerate(route.candidates):
        if candidate.provider not in known:
            where = f"{path}.provider" if index == 0 else f"{path}.fallback[{index - 1}]"
            message = worded("There is no provider %(name)s. Add it, or change this entry.", name=candidate.provider)
            yield Problem(where, message, "reference")


def agents(configuration: Configuration) -> Iterator[Problem]:
    """An agent's service and route are there."""
    for agent in configuration.agents:
        if agent.service_id and configuration.service(agent.service_id) is None:
            message = worded("There is no service %(id)s.", id=agent.service_id)
            yield Problem(f'agents["{agent.id}"]', message, "reference")
        if agent.task_type and configuration.route(agent.task_type) is None:
            message = worded("There is no task route %(name)s.", name=agent.task_type)
            yield Problem(f'agents["{agent.id}"]', message, "reference")
