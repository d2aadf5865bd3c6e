"""Check the rules for the whole configuration before a revision is written.

Files are already checked field by field when they are read. The checks here run on the whole configuration after
imports and after changes on pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from capabilities.core.delivery.reader import ContentPolicy
from capabilities.core.problems import Problem
from capabilities.core.storable import is_name
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.removals import broken_references
from routing_admin.core.configuration.specs import (
    DEFAULT_ROUTE,
    DESCRIBE_ROUTE,
    Configuration,
    JsonObject,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.documents.json_path import child

NAME_FIELDS: Mapping[str, Mapping[str, str]] = {
    "providers": {"name": "providerName", "display_name": "displayName", "default_model": "defaultModel"},
    "services": {"id": "id", "name": "name", "model": "model"},
    "routes": {"task_type": ""},
    "aliases": {"name": "name"},
    "agents": {"id": "id", "name": "name"},
    "languages": {"code": "code"},
    "label_budgets": {"id": "id"},
}
"""Maps each list in the configuration to its items' fields that contain names, and each field to its key in files."""


def check(configuration: Configuration, before: Configuration | None = None) -> list[Problem]:
    """Return every problem. A configuration without routes counts as empty and is valid.

    `before` is the configuration that is being changed, if any. Invalid names that it already contains are accepted.
    """
    return [
        *(check_lines(configuration, before) if before is not None else ()),
        *check_names(configuration),
        *check_routes(configuration),
        *check_describing(configuration),
        *broken_references(configuration),
    ]


def check_names(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for each empty, duplicate or invalid name."""
    yield from check_repeated("providers", [provider.name for provider in configuration.providers])
    yield from check_repeated("services", [service.id for service in configuration.services])
    yield from check_repeated("routing", [route.task_type for route in configuration.routes])
    for index, provider in enumerate(configuration.providers):
        yield from check_repeated(f"providers[{index}].keys", [key.name for key in provider.keys])
        # Candidates are written `provider/model`, so a provider's name must not contain a slash.
        if "/" in provider.name:
            path = f"providers[{index}].providerName"
            message = translatable(
                "The name “%(name)s” contains a slash, which chains put between provider and model. Rename the "
                "provider wherever it is used.",
                name=provider.name,
            )
            yield Problem(path, message, "range")


def check_lines(configuration: Configuration, before: Configuration) -> Iterator[Problem]:
    """Yield a problem for each new name with a line break or another control character."""
    known = {name for _path, name in _list_names(before)}
    for path, name in _list_names(configuration):
        if not is_name(name) and name not in known:
            yield Problem(
                path, translatable("%(path)s must be on one line, without control characters.", path=path), "range"
            )


def _list_names(configuration: Configuration) -> Iterator[tuple[str, str]]:
    for field, columns in NAME_FIELDS.items():
        for index, item in enumerate(getattr(configuration, field)):
            for column, key in columns.items():
                yield child(f"{field}[{index}]", key) if key else f"routing[{index}]", getattr(item, column)


def check_repeated(path: str, names: Sequence[str]) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if not name.strip():
            yield Problem(path, translatable("A name is empty."), "required")
        elif count > 1:
            message = translatable("%(name)s appears %(count)s times; names must be unique.", name=name, count=count)
            yield Problem(path, message, "duplicate")


def check_routes(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for each route without candidates, and a problem if the route `default` is missing."""
    for route in configuration.routes:
        if not route.candidates:
            message = translatable("The route %(name)s has no candidate; add one.", name=route.task_type)
            yield Problem(child("routing", route.task_type), message, "required")
    if configuration.routes and configuration.route(DEFAULT_ROUTE) is None:
        message = translatable("There is no route named default, which takes every task type without its own route.")
        yield Problem(f"routing.{DEFAULT_ROUTE}", message, "required")


MEDIA = ("vision", "audio", "video", "file")
"""Media capabilities. To describe files, a model needs at least one of them."""


def check_describing(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem if the describing route's own policy has files described by a model: it would call itself."""
    route = configuration.route(DESCRIBE_ROUTE)
    if route is not None and has_describer(route.content):
        message = translatable(
            "The route %(name)s describes files for other routes, so its own content policy cannot have files "
            "described. Choose another one for it.",
            name=DESCRIBE_ROUTE,
        )
        yield Problem(f"routing.{DESCRIBE_ROUTE}.content.policy", message, "reference")


def check_describers(before: Configuration, configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem if a content policy has models describe files, but none on the describing route reads media."""
    route = configuration.route(DESCRIBE_ROUTE)
    if route is None or not wants_describer(configuration) or not is_blind(configuration, route):
        return
    old = before.route(DESCRIBE_ROUTE)
    is_chosen = old is None or (old.candidates, old.enabled) != (route.candidates, route.enabled)
    is_wanted_anew = bool(_wanting(configuration) - _wanting(before))
    message = translatable(
        "No model of the route %(name)s reads images, audio, video or files, so it cannot describe any. "
        "Add one that does to its chain.",
        name=DESCRIBE_ROUTE,
    )
    # The problem is an error only if this change added or enabled the describing route, edited its candidates, or added
    # a policy that needs it. If a model's capabilities are unknown, or nothing but capabilities changed, it is a
    # warning, because the next imported file may declare them.
    is_known = None not in _services_along(configuration, route)
    severity = "error" if is_known and (is_chosen or is_wanted_anew) else "warning"
    yield Problem(child("routing", DESCRIBE_ROUTE), message, "reference", severity)


def is_blind(configuration: Configuration, route: RouteSpec) -> bool:
    """Return whether the route is enabled but all of its models read only text."""
    services = [service for service in _services_along(configuration, route) if service is not None]
    return route.enabled and not any(
        capability in MEDIA for service in services for capability in service.effective_capabilities.input
    )


def _services_along(configuration: Configuration, route: RouteSpec) -> list[ServiceSpec | None]:
    models = {provider.name: provider.default_model for provider in configuration.providers}
    return [
        configuration.service_at(candidate.provider, candidate.model or models.get(candidate.provider, ""))
        for candidate in route.candidates
    ]


def _wanting(configuration: Configuration) -> set[tuple[str, str]]:
    contents = {
        ("installation", ""): {"policy": configuration.content_policy},
        **{("route", route.task_type): route.content for route in configuration.routes},
        **{("service", service.id): service.content for service in configuration.services},
    }
    return {owner for owner, content in contents.items() if has_describer(content)}


def wants_describer(configuration: Configuration) -> bool:
    return bool(_wanting(configuration))


def has_describer(content: JsonObject | None) -> bool:
    """Return whether a content policy lets a model describe files."""
    policies = str((content or {}).get("policy") or "").replace(" ", "").split("+")
    return ContentPolicy.DESCRIBER.value in policies
