"""Work out which part of the configuration stays when the demo is removed."""

from __future__ import annotations

from dataclasses import replace

from routing_admin.core.configuration.specs import DEFAULT_ROUTE, Configuration


def subtract_demo(now: Configuration, demo: Configuration) -> Configuration:
    """Remove what is exactly as in the demo, except what the rest uses."""
    theirs = {agent.id for agent in demo.agents}
    agents = tuple(agent for agent in now.agents if agent.id not in theirs)
    known_routes = {route.task_type: route for route in demo.routes}
    own = {route.task_type for route in now.routes if known_routes.get(route.task_type) != route}
    # Without the default route requests of unknown task types would fail, so it stays with own routes.
    asked = {agent.task_type for agent in agents} | ({DEFAULT_ROUTE} if own else set())
    routes = tuple(route for route in now.routes if route.task_type in own | asked)
    used = {agent.service_id for agent in agents}
    known_services = {service.id: service for service in demo.services}
    services = tuple(each for each in now.services if known_services.get(each.id) != each or each.id in used)
    needed = {candidate.provider for route in routes for candidate in route.candidates}
    needed |= {service.provider for service in services}
    known = {provider.name for provider in demo.providers}
    providers = tuple(item for item in now.providers if item.name not in known or item.name in needed)
    language = now.default_language if routes else None
    return replace(now, agents=agents, routes=routes, services=services, providers=providers, default_language=language)
