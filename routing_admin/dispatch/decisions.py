"""What depends on the configuration alone, decided once per snapshot: meanings of names, plans, endpoints.

Agents ask the same few things again and again. A snapshot never changes, so its decisions stay valid as long
as it does; the next one starts empty.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import TypeVar

from capabilities.core.delivery.model_endpoint import ModelEndpoint
from capabilities.core.delivery.reader import ContentPolicy
from routing_admin.configuration.keys import KeyFrom
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE, RouteSpec, ServiceSpec
from routing_admin.core.fallback.chain import Plan, PlannedCandidate, PoolKey, SkipReason
from routing_admin.core.planning.model_names import NamedRoute, resolve_model
from routing_admin.core.planning.plan import RoutingQuery, Unusable, plan_route
from routing_admin.dispatch.model_endpoints import endpoint_at, without_describing

KEPT = 2000
"""Decisions of a kind that are kept; callers choose names and parameters, so there could be any number."""

T = TypeVar("T")


class Decisions:
    """The decisions under one snapshot. Each keeps the route it is about, so that no other can take its identity."""

    def __init__(self, state: Snapshot) -> None:
        self._state = state
        self._names: dict[Hashable, NamedRoute] = {}
        self._plans: dict[Hashable, tuple[RouteSpec, Plan]] = {}
        self._endpoints: dict[Hashable, tuple[RouteSpec, ServiceSpec | None, ModelEndpoint]] = {}
        self.unusable = unusable_of(state)
        """The providers that cannot be called now, and why."""
        self.pools = pools_of(state)
        """The keys that take turns, where a provider has several that can be used."""

    def resolve(self, model: str, task_type: str | None) -> NamedRoute:
        """Where a request goes. Raises `UnknownModelError` and `NoRouteError`, which are decided anew each time."""
        found = self._names.get((model, task_type))
        if found is None:
            found = _keep(self._names, (model, task_type), resolve_model(self._state.configuration, model, task_type))
        return found

    def plan(self, route: RouteSpec, query: RoutingQuery, *, matched: bool) -> Plan:
        """The plan for a request without files along a route, by the keys there are."""
        key = (id(route), query.language, query.params.temperature, query.params.max_tokens, query.direct, matched)
        found = self._plans.get(key)
        if found is None:
            plan = plan_route(
                self._state.configuration,
                route,
                query,
                matched=matched,
                unusable=self.unusable,
                pools=self.pools,
            )
            found = _keep(self._plans, key, (route, plan))
        return found[1]

    def endpoint(self, route: RouteSpec, candidate: PlannedCandidate, service: ServiceSpec | None) -> ModelEndpoint:
        """Who a candidate of a route is. Raises `LookupError` when its provider is not there.

        Routes that say nothing of their own about how a model is asked share its endpoint.
        """
        own = bool(route.candidates[candidate.index].extra_body or route.content)
        where: Hashable = (id(route), candidate.index) if own else (candidate.provider, candidate.model)
        key = (where, id(service))
        found = self._endpoints.get(key)
        if found is None:
            found = _keep(self._endpoints, key, (route, service, self._endpoint(route, candidate, service)))
        return found[2]

    def can_refuse_files(self, route: RouteSpec) -> bool:
        """Whether a candidate of the route may be one that takes files as they are or not at all."""
        configuration = self._state.configuration
        wordings = [route.content, *(each.content for each in configuration.services)]
        words = [configuration.content_policy or "", *(str((each or {}).get("policy", "")) for each in wordings)]
        return any(ContentPolicy.NATIVE_ONLY.value in word for word in words)

    def _endpoint(self, route: RouteSpec, candidate: PlannedCandidate, service: ServiceSpec | None) -> ModelEndpoint:
        provider = self._state.configuration.provider(candidate.provider)
        if provider is None:
            raise LookupError(f"there is no provider {candidate.provider}; a plan never calls it")
        to = endpoint_at(
            self._state,
            provider,
            candidate.model,
            service=service,
            extra_body=route.candidates[candidate.index].extra_body,
            content=route.content or None,
        )
        if route.task_type == DESCRIBE_ROUTE:  # who describes is never told what another one says
            return without_describing(to)
        return to


def _keep(store: dict[Hashable, T], key: Hashable, value: T) -> T:
    if len(store) >= KEPT:
        store.clear()
    store[key] = value
    return value


def unusable_of(state: Snapshot) -> dict[str, Unusable]:
    """The providers that cannot be called now, by the snapshot's keys: a forbidden origin, or no key."""
    return {
        name: (SkipReason.NO_KEY if key.source is KeyFrom.MISSING else SkipReason.ORIGIN_REFUSED, key.reason)
        for name, key in state.keys.items()
        if not key.usable
    }


def pools_of(state: Snapshot) -> dict[str, tuple[PoolKey, ...]]:
    """The keys that take turns, by the name of their provider; none of a provider that has a single usable one."""
    return {
        name: tuple(PoolKey(each.name, each.mark) for each in keys.pool)
        for name, keys in state.provider_keys.items()
        if keys.pool
    }


decisions_of: Callable[[Snapshot], Decisions] = lru_cache(maxsize=2)(Decisions)
"""The decisions under a snapshot; those of the last two are kept."""
