"""Look up services and agents in the snapshot (MCR-4, MCR-6)."""

from __future__ import annotations

from capabilities.core.services.registry import LlmServiceConfig
from capabilities.core.vocabulary import Capabilities, Direction
from capabilities.errors import NotFoundError
from routing_admin.api.service_schemas import AgentOut, CapabilitiesOut, ChainOut, ServiceOut
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.queries import find_guarantee
from routing_admin.dispatch.model_endpoints import build_registry


def service_out(service: LlmServiceConfig) -> ServiceOut:
    return ServiceOut(
        id=service.id,
        name=service.name,
        baseURL=service.base_url,
        model=service.model,
        capabilityTags=list(service.capability_tags),
        capabilities=capabilities_out(service.capabilities),
        description=service.description,
    )


def capabilities_out(capabilities: Capabilities) -> CapabilitiesOut:
    return CapabilitiesOut(input=list(capabilities.input), output=list(capabilities.output))


def list_services(capability: str | None, direction: Direction) -> list[ServiceOut]:
    """Return the enabled services in their configured order, or only those that can read (or write) the capability."""
    registry = build_registry(snapshot.current())
    services = registry.get_services_by_capability(capability, direction) if capability else registry
    return [service_out(service) for service in services]


def find_capabilities(service_id: str) -> CapabilitiesOut:
    """Return what a service reads and writes (MCR-6.2); raise `NotFoundError` for an unknown id."""
    capabilities = build_registry(snapshot.current()).get_capabilities(service_id)
    if capabilities is None:
        raise NotFoundError("There is no model service with this id. GET /api/v1/services lists them.")
    return capabilities_out(capabilities)


def list_agent_ids(capability: str | None, direction: Direction) -> list[str]:
    """Return the ids of unexpired agents, or only of the agents whose model has the capability (MCR-4.1)."""
    directory = snapshot.current().directory
    return directory.find_capable(capability, direction) if capability else [agent.id for agent in directory]


def describe_agent(agent_id: str) -> AgentOut:
    """Return an agent, its model's capabilities, and the agents that can read what its model cannot (MCR-4.3, 4.4).

    For an agent with a route, `capabilities` are those of the route's first ready candidate. `chain` lists the input
    types that all candidates read, and the types that only some of them read. Raise `NotFoundError` for an unknown id.
    """
    directory = snapshot.current().directory
    profile, context = directory.get(agent_id), directory.context(agent_id)
    if profile is None or context is None:
        raise NotFoundError("There is no agent with this id. GET /api/v1/agents lists them.")
    chain = find_guarantee(profile.task_type) if profile.task_type else None
    described = AgentOut(**context, taskType=profile.task_type)
    if chain:
        described.chain = ChainOut(all=list(chain.all), some=list(chain.some))
    return described
