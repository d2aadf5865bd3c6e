"""Check which routes and services a caller may use, whatever name leads to them."""

from __future__ import annotations

from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.planning.model_names import NamedRoute, task_name

NOT_ALLOWED = "model_not_allowed"
NOTHING = translatable("nothing")
MAX_NAMES = 20
"""Allowed names that a refusal lists."""


class ModelNotAllowedError(LookupError):
    """The caller may not use the route or service; `sentence` lists what it may use."""

    def __init__(self, name: str, limits: AgentLimits) -> None:
        allowed = sorted(limits.models or ()) or [NOTHING]
        self.sentence = translatable(
            "This key cannot use '%(name)s'. It can use: %(allowed)s. An administrator can allow more.",
            name=name[:200],
            # An ellipsis replaces further names.
            allowed=(*allowed[:MAX_NAMES], *("…" for _ in allowed[MAX_NAMES : MAX_NAMES + 1])),
        )
        super().__init__(self.sentence)


def check_allowed(limits: AgentLimits | None, configuration: Configuration, target: NamedRoute, name: str) -> None:
    """Raise `ModelNotAllowedError` unless the caller may use what `name` leads to."""
    if limits is None or limits.models is None:
        return
    # Candidates are not checked: permission for a route covers every model in its chain.
    if not any(limits.allows(model_name) for model_name in names_of(configuration, target)):
        raise ModelNotAllowedError(name, limits)


def names_of(configuration: Configuration, target: NamedRoute) -> tuple[str, ...]:
    """Return the names that permit a target; none for a provider's model without a model service."""
    if not target.direct:
        return (task_name(target.route.task_type),)
    first = target.route.primary
    service = target.service or configuration.service_at(first.provider, first.model or "")
    return (service.id,) if service is not None else ()
