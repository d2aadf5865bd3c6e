"""Find the part of the configuration that stays when the demo is removed."""

from __future__ import annotations

from dataclasses import replace

from routing_admin.core.configuration.specs import DEFAULT_ROUTE, Configuration


def subtract_demo(current: Configuration, demo: Configuration) -> Configuration:
    """Return the configuration without the demo.

    Changed routes and services stay, as does everything that the remaining entries use.
    """
    demo_agents = {agent.id for agent in demo.agents}
    agents = tuple(agent for agent in current.agents if agent.id not in demo_agents)
    known_routes = {route.task_type: route for route in demo.routes}
    own_routes = {route.task_type for route in current.routes if known_routes.get(route.task_type) != route}
    # Without the default route, requests with an unknown task type would fail, so it stays if any route stays.
    needed_routes = {agent.task_type for agent in agents} | ({DEFAULT_ROUTE} if own_routes else set())
    routes = tuple(route for route in current.routes if route.task_type in own_routes | needed_routes)
    used_services = {agent.service_id for agent in agents}
    known_services = {service.id: service for service in demo.services}
    services = tuple(
        service
        for service in current.services
        if known_services.get(service.id) != service or service.id in used_services
    )
    needed = {candidate.provider for route in routes for candidate in route.candidates}
    needed |= {service.provider for service in services}
    demo_providers = {provider.name for provider in demo.providers}
    providers = tuple(
        provider for provider in current.providers if provider.name not in demo_providers or provider.name in needed
    )
    language = current.default_language if routes else None
    return replace(
        current, agents=agents, routes=routes, services=services, providers=providers, default_language=language
    )
