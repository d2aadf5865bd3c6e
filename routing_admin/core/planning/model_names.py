"""Resolve model names in the order documented in docs/data-plane.md, and check which of them a caller may use.

Permissions apply to routes and services, whatever name a request uses for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, RouteSpec, ServiceSpec
from routing_admin.core.planning.plan import resolve_route

TASK = "task:"
AUTO = "auto"
CATCH_ALL = "*"
"""Alias for every name that nothing else matches."""
MAX_NAME = 300
"""Maximum length of a model name, in characters."""


class UnknownModelError(LookupError):
    """No rule matches the requested model name; `sentence` says which names can be requested."""

    def __init__(self, name: str) -> None:
        self.sentence = translatable(
            "The model '%(name)s' does not exist. GET /v1/models lists what is available: task:<task type>, a "
            "service id, provider/model or auto.",
            name=name[:200],
        )
        super().__init__(self.sentence)


@dataclass(frozen=True, slots=True)
class NamedRoute:
    """The route for a requested name; `matched` is False if the default route is used instead of the requested one.

    `direct` means that the route was built for a single provider and model, or for a model service, which is then in
    `service`. `aliased` means that an alias was resolved; this may be the catch-all alias `*`.
    """

    route: RouteSpec
    matched: bool = True
    direct: bool = False
    service: ServiceSpec | None = None
    aliased: bool = False

    @property
    def keeps_requested_name(self) -> bool:
        """Whether answers contain the requested name instead of the name of the model that answered."""
        return self.direct or self.aliased

    @property
    def task_type(self) -> str:
        """The task type for the request log; it is empty for a direct route."""
        return "" if self.direct else self.route.task_type


def resolve_model(configuration: Configuration, model: str, task_type: str | None = None) -> NamedRoute:
    """Resolve the model name in a request; raise `UnknownModelError` or `NoRouteError`.

    If the request contains a `task_type`, that takes precedence. A task type without a route falls back to the route
    `default` (MMR-P5). A name without `task:` that matches nothing is an unknown model.
    """
    if task_type:
        return NamedRoute(*resolve_route(configuration, task_type))
    aliases = {alias.name: alias.target for alias in configuration.aliases}
    # `task:…` always means a route, even if an alias has the same name.
    target = aliases.get(model) if not model.startswith(TASK) else None
    found = _find_target(configuration, target or model)
    is_alias = target is not None
    if found is None and CATCH_ALL in aliases:
        found, is_alias = _find_target(configuration, aliases[CATCH_ALL]), True
    if found is None:
        raise UnknownModelError(model)
    return replace(found, aliased=True) if is_alias else found


def is_target(configuration: Configuration, name: str) -> bool:
    """Return whether `name` may be the target of an alias: a route, a service, a provider's model, or `auto`."""
    return (
        name == AUTO
        # Disabled routes and services are also valid targets.
        or configuration.route(name.removeprefix(TASK)) is not None
        or configuration.service(name) is not None
        or provider_and_model(configuration, name) is not None
    )


MAX_PROVIDER_NAME = 200
"""Maximum length of a provider's name; only a slash up to this position can separate provider and model."""


def provider_and_model(configuration: Configuration, name: str) -> tuple[str, str] | None:
    """Split `provider/model` at the first slash that follows a provider's name; return None without such a slash."""
    for at, letter in enumerate(name[:MAX_PROVIDER_NAME]):
        if letter == "/" and name[at + 1 :] and configuration.provider(name[:at]) is not None:
            return name[:at], name[at + 1 :]
    return None


def task_name(task_type: str) -> str:
    return TASK + task_type


def _find_target(configuration: Configuration, name: str) -> NamedRoute | None:
    return next((found for row in TABLE if (found := row(configuration, name)) is not None), None)


def _task(configuration: Configuration, name: str) -> NamedRoute | None:
    return NamedRoute(*resolve_route(configuration, name.removeprefix(TASK))) if name.startswith(TASK) else None


def _service(configuration: Configuration, name: str) -> NamedRoute | None:
    service = configuration.service(name)
    if service is None or not service.enabled:
        return None
    return _direct(name, service.provider, service.model, service)


def _bare_task(configuration: Configuration, name: str) -> NamedRoute | None:
    # Unlike `task:…`, a name without a prefix does not fall back to the route `default`.
    route = configuration.route(name)
    return NamedRoute(route) if route is not None and route.enabled else None


def _pair(configuration: Configuration, name: str) -> NamedRoute | None:
    pair = provider_and_model(configuration, name)
    return _direct(name, *pair) if pair else None


def _auto(configuration: Configuration, name: str) -> NamedRoute | None:
    return NamedRoute(*resolve_route(configuration, None)) if name == AUTO else None


def _direct(name: str, provider: str, model: str, service: ServiceSpec | None = None) -> NamedRoute:
    return NamedRoute(RouteSpec(name, (CandidateSpec(provider, model),)), direct=True, service=service)


TABLE: tuple[Callable[[Configuration, str], NamedRoute | None], ...] = (_task, _service, _bare_task, _pair, _auto)
"""The rules that follow aliases, in the documented order. The catch-all alias is tried after all of them."""


NOT_ALLOWED = "model_not_allowed"
NOTHING = translatable("nothing")
MAX_NAMES = 20
"""Maximum number of allowed names to list in an error message."""


class ModelNotAllowedError(LookupError):
    """The caller may not use the requested route or service; `sentence` lists what it may use."""

    def __init__(self, name: str, limits: AgentLimits) -> None:
        allowed = sorted(limits.models or ()) or [NOTHING]
        self.sentence = translatable(
            "This key cannot use '%(name)s'. It can use: %(allowed)s. An administrator can allow more.",
            name=name[:200],
            allowed=(*allowed[:MAX_NAMES], *("…" for _ in allowed[MAX_NAMES : MAX_NAMES + 1])),
        )
        super().__init__(self.sentence)


def check_allowed(limits: AgentLimits | None, configuration: Configuration, target: NamedRoute, name: str) -> None:
    """Raise `ModelNotAllowedError` if the caller may not use the route or service that `name` refers to."""
    if limits is None or limits.models is None:
        return
    # The candidates are not checked: permission for a route covers every model in its chain.
    if not any(limits.allows(model_name) for model_name in target_names(configuration, target)):
        raise ModelNotAllowedError(name, limits)


def target_names(configuration: Configuration, target: NamedRoute) -> tuple[str, ...]:
    """Return the names under which an agent's limits can allow a route or a service.

    A provider's model without a model service has no such name.
    """
    if not target.direct:
        return (task_name(target.route.task_type),)
    first = target.route.primary
    service = target.service or configuration.service_at(first.provider, first.model or "")
    return (service.id,) if service is not None else ()
