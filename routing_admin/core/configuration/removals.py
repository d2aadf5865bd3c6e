"""A configuration without some of its things, or with them switched off: what an act would make of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from routing_admin.core.configuration.diff import LISTS
from routing_admin.core.configuration.specs import Configuration

PLACES: Mapping[str, tuple[str, str]] = {kind: (field, name) for kind, field, name in LISTS}
"""Kind → the field that holds its things, and the one that names each."""


def without(configuration: Configuration, kind: str, names: Collection[str]) -> Configuration:
    """The configuration without the things of that kind that have these names."""
    field, name = PLACES[kind]
    left = tuple(each for each in getattr(configuration, field) if getattr(each, name) not in names)
    return _with(configuration, field, left)


def switch_off(configuration: Configuration, kind: str, names: Collection[str]) -> Configuration:
    """The configuration with these providers, services or routes disabled."""
    field, name = PLACES[kind]
    things = getattr(configuration, field)
    return _with(
        configuration,
        field,
        tuple(replace(each, enabled=False) if getattr(each, name) in names else each for each in things),
    )


def keep_agents(then: Configuration, now: Configuration) -> Configuration:
    """Return the configuration `then` with the agents that are in `now` alone: their keys would be gone for good.

    One whose service or route is not in `then` uses nothing until somebody gives it another.
    """
    there = {agent.id for agent in then.agents}
    since = (
        replace(
            agent,
            service_id=agent.service_id if then.service(agent.service_id or "") else None,
            task_type=agent.task_type if then.route(agent.task_type or "") else None,
        )
        for agent in now.agents
        if agent.id not in there
    )
    return replace(then, agents=tuple(sorted((*then.agents, *since), key=lambda agent: agent.id)))


def _with(configuration: Configuration, field: str, things: Any) -> Configuration:
    return replace(configuration, **{field: things})


def removed_names(before: Configuration, after: Configuration) -> dict[str, tuple[str, ...]]:
    """The names that are in `before` alone, by kind; a kind that loses nothing is left out."""
    found = {}
    for kind, (field, name) in PLACES.items():
        there = {getattr(each, name) for each in getattr(after, field)}
        gone = tuple(each for each in (getattr(one, name) for one in getattr(before, field)) if each not in there)
        if gone:
            found[kind] = gone
    return found
