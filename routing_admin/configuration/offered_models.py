"""Model names that a caller may use: those of task routes and enabled services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities
from routing_admin.configuration.snapshot import Snapshot, first_service
from routing_admin.core.planning.model_names import TASK
from routing_admin.core.planning.plan import is_taken


class OfferedModel(NamedTuple):
    name: str
    capabilities: Capabilities
    owner: str


def list_offered(state: Snapshot, limits: AgentLimits | None = None) -> Iterator[OfferedModel]:
    """Yield the task routes, then the services. If there are limits, yield only the names that they allow."""
    entries = _list_all(state)
    return entries if limits is None else (entry for entry in entries if limits.allows(entry.name))


def _list_all(state: Snapshot) -> Iterator[OfferedModel]:
    configuration = state.configuration
    for route in configuration.routes:
        if is_taken(route):
            service = first_service(configuration, state.keys, route.task_type)
            reads = service.effective_capabilities if service else TEXT_ONLY
            yield OfferedModel(TASK + route.task_type, reads, "routing_admin")
    for model_service in configuration.services:
        if model_service.enabled:
            yield OfferedModel(model_service.id, model_service.effective_capabilities, model_service.provider)
