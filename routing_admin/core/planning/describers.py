"""Whether models are to describe files, and whether the route is there along which they are asked."""

from __future__ import annotations

from enum import StrEnum

from capabilities.core.delivery.reader import DEFAULT_POLICY
from routing_admin.core.configuration.checks import has_describer, is_blind
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE, Configuration, RouteSpec


class DescribeRouteState(StrEnum):
    """Whether somebody can be asked to describe a file."""

    READY = "ready"
    DISABLED = "disabled"
    MISSING = "missing"
    BLIND = "blind"


def describe_route_state(configuration: Configuration) -> DescribeRouteState:
    """Whether the route that describes files is there, enabled, and has a model that reads some."""
    route = configuration.route(DESCRIBE_ROUTE)
    if route is None:
        return DescribeRouteState.MISSING
    if not route.enabled:
        return DescribeRouteState.DISABLED
    return DescribeRouteState.BLIND if is_blind(configuration, route) else DescribeRouteState.READY


def wants_describer_along(configuration: Configuration, route: RouteSpec) -> bool:
    """Whether files of some candidate of this route are to be described by a model: by the policy of the route, else of
    the candidate's service, else of the installation.
    """
    if route.task_type == DESCRIBE_ROUTE:
        return False
    own = str(route.content.get("policy") or "")
    words = [own] if own else [_policy_of(configuration, each.provider, each.model) for each in route.candidates]
    return any(has_describer({"policy": word}) for word in words)


def _policy_of(configuration: Configuration, provider: str, model: str | None) -> str:
    found = configuration.provider(provider)
    service = configuration.service_at(provider, model or (found.default_model if found else ""))
    own = str((service.content or {}).get("policy") or "") if service else ""
    return own or configuration.content_policy or DEFAULT_POLICY
