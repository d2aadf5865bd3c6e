"""What must be so in any configuration, whichever way it came about: the last word before a revision is written.

Files are checked field by field when they are read; this checks the value as a whole, for an import and for a change
made on a page alike.
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

NAMES: Mapping[str, Mapping[str, str]] = {
    "providers": {"name": "providerName", "display_name": "displayName", "default_model": "defaultModel"},
    "services": {"id": "id", "name": "name", "model": "model"},
    "routes": {"task_type": ""},
    "aliases": {"name": "name"},
    "agents": {"id": "id", "name": "name"},
    "languages": {"code": "code"},
    "label_budgets": {"id": "id"},
}
"""What is a name, and what files call it, by the list that it is in."""


def check(configuration: Configuration, before: Configuration | None = None) -> list[Problem]:
    """Every problem; an installation without any route is empty, not wrong. `before` is what is changed, if anything.

    Names that are in it already may stay as they are.
    """
    return [
        *(check_lines(configuration, before) if before is not None else ()),
        *check_names(configuration),
        *check_routes(configuration),
        *check_describing(configuration),
        *broken_references(configuration),
    ]


def check_names(configuration: Configuration) -> Iterator[Problem]:
    """Providers and services are called by name: names are there, unique, and a provider's has no slash."""
    yield from check_repeated("providers", [provider.name for provider in configuration.providers])
    yield from check_repeated("services", [service.id for service in configuration.services])
    yield from check_repeated("routing", [route.task_type for route in configuration.routes])
    for index, provider in enumerate(configuration.providers):
        yield from check_repeated(f"providers[{index}].keys", [key.name for key in provider.keys])
        if "/" in provider.name:
            where = f"providers[{index}].providerName"
            words = translatable(
                "The name “%(name)s” contains a slash, which chains put between provider and model. Rename the "
                "provider wherever it is used.",
                name=provider.name,
            )
            yield Problem(where, words, "range")


def check_lines(configuration: Configuration, before: Configuration) -> Iterator[Problem]:
    """A problem for each new name with a line break or another control character in it."""
    known = {name for _path, name in _list_names(before)}
    for path, name in _list_names(configuration):
        if not is_name(name) and name not in known:
            yield Problem(
                path, translatable("%(path)s must be on one line, without control characters.", path=path), "range"
            )


def _list_names(configuration: Configuration) -> Iterator[tuple[str, str]]:
    for field, columns in NAMES.items():
        for index, each in enumerate(getattr(configuration, field)):
            for column, word in columns.items():
                yield child(f"{field}[{index}]", word) if word else f"routing[{index}]", getattr(each, column)


def check_repeated(path: str, names: Sequence[str]) -> Iterator[Problem]:
    """A problem per name that is empty or there twice."""
    for name, count in Counter(names).items():
        if not name.strip():
            yield Problem(path, translatable("A name is empty."), "required")
        elif count > 1:
            message = translatable("%(name)s appears %(count)s times; names must be unique.", name=name, count=count)
            yield Problem(path, message, "duplicate")


def check_routes(configuration: Configuration) -> Iterator[Problem]:
    """Every route has a chain, and there is a default route as soon as there is one at all."""
    for route in configuration.routes:
        if not route.candidates:
            message = translatable("The route %(name)s has no candidate; add one.", name=route.task_type)
            yield Problem(child("routing", route.task_type), message, "required")
    if configuration.routes and configuration.route(DEFAULT_ROUTE) is None:
        message = translatable("There is no route named default, which takes every task type without its own route.")
        yield Problem(f"routing.{DEFAULT_ROUTE}", message, "required")


MEDIA = ("vision", "audio", "video", "file")
"""What a model has to read some of, to describe anything."""


def check_describing(configuration: Configuration) -> Iterator[Problem]:
    """Who describes files has none of its own described by another model: it would ask itself."""
    route = configuration.route(DESCRIBE_ROUTE)
    if route is not None and has_describer(route.content):
        message = translatable(
            "The route %(name)s describes files for other routes, so its own content policy cannot have files "
            "described. Choose another one for it.",
            name=DESCRIBE_ROUTE,
        )
        yield Problem(f"routing.{DESCRIBE_ROUTE}.content.policy", message, "reference")


def check_describers(before: Configuration, configuration: Configuration) -> Iterator[Problem]:
    """Where files are to be described, the route for it has a model that can read some.

    A change that chooses the route's chain or has more described is refused otherwise, whichever way it is made. It is
    a warning where what a model reads changes afterwards, or is not known yet: its file may be imported next.
    """
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
    is_known = None not in _services_along(configuration, route)
    severity = "error" if is_known and (is_chosen or is_wanted_anew) else "warning"
    yield Problem(child("routing", DESCRIBE_ROUTE), message, "reference", severity)


def is_blind(configuration: Configuration, route: RouteSpec) -> bool:
    """Whether the route is enabled and none of its models reads anything but text."""
    services = [each for each in _services_along(configuration, route) if each is not None]
    return route.enabled and not any(word in MEDIA for each in services for word in each.effective_capabilities.input)


def _services_along(configuration: Configuration, route: RouteSpec) -> list[ServiceSpec | None]:
    """The model services of a chain, None for a model that has none."""
    models = {each.name: each.default_model for each in configuration.providers}
    return [
        configuration.service_at(each.provider, each.model or models.get(each.provider, ""))
        for each in route.candidates
    ]


def _wanting(configuration: Configuration) -> set[tuple[str, str]]:
    """What has files described by a model: the installation, routes, model services."""
    contents = {
        ("installation", ""): {"policy": configuration.content_policy},
        **{("route", each.task_type): each.content for each in configuration.routes},
        **{("service", each.id): each.content for each in configuration.services},
    }
    return {place for place, content in contents.items() if has_describer(content)}


def wants_describer(configuration: Configuration) -> bool:
    """Whether the policy of the installation, of a route or of a model service has files described."""
    return bool(_wanting(configuration))


def has_describer(content: JsonObject | None) -> bool:
    """Whether a content policy has files described by a model."""
    words = str((content or {}).get("policy") or "").replace(" ", "").split("+")
    return ContentPolicy.DESCRIBER.value in words
