"""Let scripts read and write a single provider, service or route, under the same rules as for whole files.

The name of the entry is in the URL. A provider's entry without a key leaves the stored key unchanged. A service's entry
names its provider, has no key, and usually needs no base URL.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.providers.environment import key_variable, reference
from capabilities.core.side_by_side import SideBySideRow, compare_lines
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, Configuration, RouteSpec
from routing_admin.core.documents.json_path import child, write_document
from routing_admin.core.documents.kept_fields import merge_items
from routing_admin.core.documents.problem_sentences import errors, missing_field, unknown_provider, wrong_type
from routing_admin.core.files.endpoints import address_problems, provider_base_url, service_base_url
from routing_admin.core.files.exporting import routing_value, services_value
from routing_admin.core.files.importing import Imported, import_values, merge_routing, with_stored_keys
from routing_admin.core.files.keys import Fingerprint, KeyContext
from routing_admin.core.files.llm_routing import key_text, write_provider, write_route
from routing_admin.core.files.llm_routing_checks import ExistingNames, validate
from routing_admin.core.files.llmservices import read_service, validate_services, write_service


class EntryKind(StrEnum):
    """Kinds of entries, named like the kinds in configuration changes."""

    PROVIDER = "provider"
    SERVICE = "service"
    ROUTE = "route"


NAME_FIELDS: Mapping[EntryKind, str] = {
    EntryKind.PROVIDER: "providerName",
    EntryKind.SERVICE: "id",
    EntryKind.ROUTE: "taskType",
}
"""Maps each kind of entry to the field that repeats the name in the URL."""


def write_entry(configuration: Configuration, kind: EntryKind, name: str) -> dict[str, Any] | None:
    """Return the entry with this name, or None if there is none; keys are written as `${…}`."""
    if kind is EntryKind.PROVIDER:
        provider = configuration.provider(name)
        return write_provider(provider) if provider else None
    if kind is EntryKind.ROUTE:
        route = configuration.route(name)
        names = {provider.name for provider in configuration.providers}
        return {"taskType": name, "fallback": [], **write_route(route, names)} if route else None
    service = configuration.service(name)
    at = configuration.provider(service.provider) if service else None
    if service is None or at is None:
        return None
    entry = write_service(service, at)
    return {"id": entry.pop("id"), "provider": at.name, **{k: v for k, v in entry.items() if k != "apiKey"}}


def merge_entry(
    current: Configuration, kind: EntryKind, name: str, value: object, key_context: KeyContext, mark: Fingerprint
) -> Imported:
    """Return the configuration with this entry added or replaced; paths in problems are relative to the entry."""
    if not isinstance(value, Mapping):
        return Imported(configuration=current, keys={}, problems=(wrong_type("body", translatable("an object")),))
    field = NAME_FIELDS[kind]
    if value.get(field, name) != name:
        message = translatable("%(field)s differs from the name in the URL. Leave it out.", field=field)
        return Imported(configuration=current, keys={}, problems=(Problem(field, message, "range"),))
    if kind is EntryKind.SERVICE:
        return _merge_service(current, name, value, key_context)
    if kind is EntryKind.PROVIDER:
        return _merge_provider(current, name, value, key_context, mark)
    file = {"routing": {name: _route_entry(value, current.route(name))}}
    found = import_values(current, [file], key_context=key_context, fingerprint_at=mark)
    return replace(found, problems=tuple(_within(problem, child("routing", name)) for problem in found.problems))


def _route_entry(value: Mapping[str, Any], old: RouteSpec | None) -> dict[str, Any]:
    # Responses always contain `fallback`. If a script sends an empty `fallback` back, drop it, unless the route was
    # imported with an empty one.
    shown_only = not value.get("fallback") and not (old and "fallback" in old.extra)
    left_out = ("taskType", "fallback") if shown_only else ("taskType",)
    return {key: item for key, item in value.items() if key not in left_out}


def _merge_provider(
    current: Configuration, name: str, value: Mapping[str, Any], key_context: KeyContext, mark: Fingerprint
) -> Imported:
    entry = {**value, "providerName": name}
    if value.get("apiKey") is None:
        entry["apiKey"] = _own_key(current, name, value)
    file = {"providers": [entry]}
    # This entry is checked as a file without routes, so tell the check that a default route exists.
    existing = ExistingNames(
        {provider.name: provider.env_name or None for provider in current.providers}, frozenset({DEFAULT_ROUTE})
    )
    found = validate(file, key_context=with_stored_keys(current, key_context), existing=existing)
    problems = tuple(_within(problem, "providers[0]") for problem in found)
    if errors(problems):
        return Imported(configuration=current, keys={}, problems=problems)
    merged, keys, further_keys = merge_routing(current, file, False, mark)
    return Imported(configuration=merged, keys=keys, problems=problems, kept_unknown=(), further_keys=further_keys)


def _own_key(current: Configuration, name: str, value: Mapping[str, Any]) -> str:
    old = current.provider(name)
    env_name = value.get("envName")
    # A provider's entry without `apiKey` keeps the stored key. The key of a new provider is read from the provider's
    # own environment variable.
    return key_text(old) if old else reference(key_variable(name, env_name if isinstance(env_name, str) else None))


def _merge_service(current: Configuration, name: str, value: Mapping[str, Any], key_context: KeyContext) -> Imported:
    old = current.service(name)
    at = value.get("provider", old.provider if old else None)
    problem = None
    if not isinstance(at, str) or not at:
        problem = missing_field("provider") if at in (None, "") else wrong_type("provider", translatable("a string"))
    elif "apiKey" in value:
        problem = Problem("apiKey", translatable("A service has no key of its own. Set its provider's key."), "range")
    provider = current.provider(at) if isinstance(at, str) else None
    if provider is None or problem:
        return Imported(configuration=current, keys={}, problems=(problem or unknown_provider("provider", str(at)),))
    base = service_base_url(old, provider) if old and old.provider == provider.name else provider_base_url(provider)
    # Fill in the fields that files require but that are optional in a single entry.
    defaults = {"name": name, "baseURL": base, "capabilityTags": [], "description": ""}
    entry = {**defaults, **{key: item for key, item in value.items() if key != "provider"}, "id": name}
    entry |= {"apiKey": key_text(provider), "providerName": provider.name}
    problems = tuple(
        _within(problem, "services[0]") for problem in validate_services({"services": [entry]}, key_context=key_context)
    )
    if errors(problems):
        return Imported(configuration=current, keys={}, problems=problems)
    problems += tuple(_within(problem, "services[0]") for problem in address_problems(current, {"services": [entry]}))
    services = merge_items(current.services, {name: read_service(entry, provider, old)}, lambda service: service.id)
    return Imported(configuration=replace(current, services=services), keys={}, problems=problems)


def _within(problem: Problem, prefix: str) -> Problem:
    field = problem.field.removeprefix(prefix).lstrip(".")
    # A problem's field and message contain its path in the file. Replace it with the path in the entry.
    message = str(problem.message).replace(problem.field, field or "the entry")
    return replace(problem, field=field or "body", message=message.replace(f"{prefix}.", ""))


# Entity tags (RFC 9110): the `ETag` of an entry, and the tags in an `If-Match` header.

ANY_ENTRY = "*"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A request's precondition: the entity tags that the caller accepts.

    `*` accepts any existing entry. If `tags` is None, everything is accepted, even a missing entry.
    """

    tags: frozenset[str] | None = None

    def allows(self, entry: Mapping[str, Any] | None) -> bool:
        """Return whether the precondition holds for `entry`, which is None if the entry does not exist."""
        if self.tags is None:
            return True
        return entry is not None and (ANY_ENTRY in self.tags or entity_tag(entry) in self.tags)


NO_EXPECTATION = Expectation()


def entity_tag(entry: Mapping[str, Any]) -> str:
    """Return an entry's tag, 32 hexadecimal digits, which does not depend on the order of the fields."""
    text = json.dumps(entry, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def parse_if_match(header: str) -> Expectation:
    """Parse an `If-Match` header. An empty header accepts everything."""
    if not header.strip():
        return NO_EXPECTATION
    return Expectation(frozenset(tag.strip().removeprefix("W/").strip('"') for tag in header.split(",")))


def side_by_side(old: Configuration, new: Configuration, *, context: int = 3) -> tuple[SideBySideRow, ...]:
    """Compare the exported files of two configurations line by line, side by side.

    Only `context` lines of unchanged text are kept around each difference.
    """
    return (
        *compare_lines(write_document(routing_value(old)), write_document(routing_value(new)), context=context),
        *compare_lines(write_document(services_value(old)), write_document(services_value(new)), context=context),
    )
