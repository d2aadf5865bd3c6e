"""Cache decisions that depend only on the configuration: resolved model names, plans and endpoints.

Agents repeat a small number of similar requests. Because a snapshot is immutable, decisions based on it stay valid. The
next snapshot starts with an empty cache.
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

MAX_DECISIONS = 2000
"""Maximum number of cached decisions of each kind; without it, callers could fill the cache with made-up names."""

T = TypeVar("T")


class Decisions:
    def __init__(self, state: Snapshot) -> None:
        self._state = state
        self._names: dict[Hashable, NamedRoute] = {}
        # The cache keys contain `id(route)`. Each value keeps a reference to its route, so that no other route can get
        # the same id.
        self._plans: dict[Hashable, tuple[RouteSpec, Plan]] = {}
        self._endpoints: dict[Hashable, tuple[RouteSpec, ServiceSpec | None, ModelEndpoint]] = {}
        self.unusable = unusable_providers(state)
        """Providers that cannot be called, each with the reason."""
        self.pools = key_pools(state)
        """The usable keys of each provider that has several keys."""

    def resolve(self, model: str, task_type: str | None) -> NamedRoute:
        """Resolve a model name. Raise `UnknownModelError` or `NoRouteError`; these errors are not cached."""
        named_route = self._names.get((model, task_type))
        if named_route is None:
            named_route = _keep(
                self._names, (model, task_type), resolve_model(self._state.configuration, model, task_type)
            )
        return named_route

    def plan(self, route: RouteSpec, query: RoutingQuery, *, matched: bool) -> Plan:
        """Return the plan for sending a request along a route; the plan ignores files in the request."""
        key = (id(route), query.language, query.params.temperature, query.params.max_tokens, query.direct, matched)
        cached = self._plans.get(key)
        if cached is None:
            plan = plan_route(
                self._state.configuration,
                route,
                query,
                matched=matched,
                unusable=self.unusable,
                pools=self.pools,
            )
            cached = _keep(self._plans, key, (route, plan))
        return cached[1]

    def endpoint(self, route: RouteSpec, candidate: PlannedCandidate, service: ServiceSpec | None) -> ModelEndpoint:
        """Return a candidate's endpoint. Raise `LookupError` if its provider does not exist."""
        # Routes that set neither a content policy nor extra body fields for the model share one endpoint.
        has_own_rules = bool(route.candidates[candidate.index].extra_body or route.content)
        target_key: Hashable = (id(route), candidate.index) if has_own_rules else (candidate.provider, candidate.model)
        key = (target_key, id(service))
        cached = self._endpoints.get(key)
        if cached is None:
            cached = _keep(self._endpoints, key, (route, service, self._endpoint(route, candidate, service)))
        return cached[2]

    def can_refuse_files(self, route: RouteSpec) -> bool:
        """Return whether any candidate of the route might refuse files, because of the content policy `native_only`."""
        configuration = self._state.configuration
        contents = [route.content, *(service.content for service in configuration.services)]
        policies = [
            configuration.content_policy or "",
            *(str((content or {}).get("policy", "")) for content in contents),
        ]
        return any(ContentPolicy.NATIVE_ONLY.value in policy for policy in policies)

    def _endpoint(self, route: RouteSpec, candidate: PlannedCandidate, service: ServiceSpec | None) -> ModelEndpoint:
        provider = self._state.configuration.provider(candidate.provider)
        if provider is None:
            raise LookupError(f"there is no provider {candidate.provider}; a plan never calls it")
        endpoint = endpoint_at(
            self._state,
            provider,
            candidate.model,
            service=service,
            extra_body=route.candidates[candidate.index].extra_body,
            content=route.content or None,
        )
        # A describing model itself must not receive descriptions written by other models.
        if route.task_type == DESCRIBE_ROUTE:
            return without_describing(endpoint)
        return endpoint


def _keep(store: dict[Hashable, T], key: Hashable, value: T) -> T:
    if len(store) >= MAX_DECISIONS:
        store.clear()
    store[key] = value
    return value


def unusable_providers(state: Snapshot) -> dict[str, Unusable]:
    return {
        name: (SkipReason.NO_KEY if key.source is KeyFrom.MISSING else SkipReason.ORIGIN_REFUSED, key.reason)
        for name, key in state.keys.items()
        if not key.usable
    }


def key_pools(state: Snapshot) -> dict[str, tuple[PoolKey, ...]]:
    return {
        name: tuple(PoolKey(key.name, key.mark) for key in keys.pool)
        for name, keys in state.provider_keys.items()
        if keys.pool
    }


cached_decisions: Callable[[Snapshot], Decisions] = lru_cache(maxsize=2)(Decisions)
"""Return the cached decisions for a snapshot. The caches of the last two snapshots are kept."""
