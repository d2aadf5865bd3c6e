"""Check, read and write `llmservices.json` (seed 000).

The field `capabilities` of an entry contains the declared capabilities. `capabilitySources` adds capabilities that were
probed or found in the catalogue, and capabilities that an administrator disabled: `{"input": {"vision": "probed",
"audio": "declared no"}}`. An import keeps the stored values if the file lacks this field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from capabilities.core.problems import MAX_PROBLEMS, Problem
from capabilities.core.services.entries import parse_capabilities, parse_service
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Capabilities, Source
from routing_admin.core.configuration.as_json import same_value
from routing_admin.core.configuration.specs import ProviderSpec, ServiceSpec
from routing_admin.core.documents.json_path import child
from routing_admin.core.documents.kept_fields import drop_absent, find_leftovers, write_fields
from routing_admin.core.documents.problem_sentences import (
    duplicate_name,
    errors,
    invalid_choice,
    missing_field,
    wrong_type,
)
from routing_admin.core.files import field_rules as rule
from routing_admin.core.files.endpoints import own_spelling, service_base_url
from routing_admin.core.files.field_rules import Rule, broken
from routing_admin.core.files.keys import NOWHERE, KeyContext, key_warnings
from routing_admin.core.files.llm_routing import key_text

SIDES = ("input", "output")
NO = " no"
"""Suffix of the source for a capability that the model does not have."""
SOURCE_VALUES = (*(source.value for source in Source), *(f"{source.value}{NO}" for source in Source))

FIELD = "capabilitySources"


def capability_sources(path: str, value: Any) -> Iterator[Problem]:
    """Check an object that maps `input` and `output` to objects of capability → source, and yield each problem."""
    if not isinstance(value, Mapping):
        yield wrong_type(path, translatable("an object"))
        return
    for side, sources in value.items():
        side_path = child(path, side)
        if side not in SIDES:
            yield invalid_choice(side_path, SIDES)
        elif not isinstance(sources, Mapping):
            yield wrong_type(side_path, translatable("an object"))
        else:
            invalid = (
                child(side_path, name) for name, source in sources.items() if source not in SOURCE_VALUES or not name
            )
            yield from (invalid_choice(invalid_path, SOURCE_VALUES) for invalid_path in invalid)


def declared_capabilities(service: ServiceSpec) -> Capabilities | None:
    """Return the declared capabilities, excluding those that were probed or found in the catalogue.

    None means that nothing was declared.
    """
    capabilities = service.capabilities
    if capabilities is None:
        return None
    declared = [
        tuple(
            capability
            for capability in getattr(capabilities, side)
            if service.source(side, capability) is Source.DECLARED
        )
        for side in SIDES
    ]
    return Capabilities(*declared) if any(declared) or not (capabilities.input or capabilities.output) else None


def write_findings(service: ServiceSpec) -> dict[str, dict[str, str]]:
    """Return the value for the field `capabilitySources`, which is empty if every capability is declared."""
    declared = declared_capabilities(service)
    return {side: sources for side in SIDES if (sources := _side(service, side, declared))}


def _side(service: ServiceSpec, side: str, declared: Capabilities | None) -> dict[str, str]:
    capabilities: tuple[str, ...] = getattr(service.capabilities, side) if service.capabilities else ()
    first: tuple[str, ...] = getattr(declared, side) if declared else ()
    # Declared capabilities are also listed if the order of inputs or outputs would otherwise be lost.
    is_in_order = capabilities[: len(first)] == first
    found = {
        capability: source.value
        for capability in capabilities
        if (source := service.source(side, capability)) != Source.DECLARED or not is_in_order
    }
    cells = [(*cell.partition(":"), source) for cell, source in service.sources.items()]
    not_able = {
        name: f"{source.value}{NO}" for own, _, name, source in cells if own == side and name not in capabilities
    }
    return found | not_able


def with_findings(service: ServiceSpec, raw: Mapping[str, Any], old: ServiceSpec | None = None) -> ServiceSpec:
    """Return the service with the capability sources in its entry.

    If the entry has none, keep the sources that were stored for the same model before the import.
    """
    findings = raw.get(FIELD)
    if findings is None and old and (old.provider, old.model) == (service.provider, service.model):
        findings = write_findings(old)
    sources: dict[str, Source] = {}
    sides = []
    for side in SIDES:
        declared: tuple[str, ...] = getattr(service.capabilities, side) if service.capabilities else ()
        entries = (findings or {}).get(side) or {}
        # A capability counts as present if it was probed, is in the catalogue, or is declared by the entry itself.
        present = [
            capability
            for capability, source in entries.items()
            if not source.endswith(NO) and _holds(source, capability, declared)
        ]
        # If the field lists every declared capability, use its order. Otherwise, the declared ones are first.
        ordered = (
            present
            if set(declared) <= set(present)
            else [*declared, *(capability for capability in present if capability not in declared)]
        )
        sides.append(tuple(ordered))
        for capability, source in entries.items():
            kind = Source(source.removesuffix(NO))
            is_no = source.endswith(NO)
            if capability not in declared and (is_no or kind is not Source.DECLARED):
                sources[f"{side}:{capability}"] = kind
    capabilities = Capabilities(*sides) if service.capabilities is not None or any(sides) else None
    return replace(service, capabilities=capabilities, sources=sources)


def _holds(source: str, capability: str, declared: tuple[str, ...]) -> bool:
    return source != Source.DECLARED or capability in declared


SERVICE_SEED_KEYS = ("id", "name", "baseURL", "model", "apiKey", "capabilityTags", "capabilities", "description")
SERVICE_OWN_KEYS = (
    *("providerName", "enabled", "routed", "limits", "price", "content", "timeouts", "extraBody"),
    "capabilitySources",
)
SERVICE_KEYS = SERVICE_SEED_KEYS + SERVICE_OWN_KEYS
IDENTITY = ("providerName",)
"""Fields whose spelling in a file is not preserved, because the parsed service contains the value."""

RULES = (
    Rule("id", rule.filled),
    Rule("name", rule.filled),
    Rule("baseURL", rule.url),
    Rule("model", rule.filled),
    Rule("description", rule.text),
    Rule("apiKey", rule.key),
    Rule("providerName", rule.filled),
    Rule("capabilitySources", capability_sources),
    Rule("enabled", rule.flag),
    Rule("routed", rule.flag),
    Rule("limits", rule.mapping),
    Rule("price", rule.price),
    Rule("content", rule.content),
    Rule("timeouts", rule.seconds_table),
    Rule("extraBody", rule.mapping),
)


def validate_services(value: object, *, key_context: KeyContext = NOWHERE) -> list[Problem]:
    """Return every problem in a parsed `llmservices.json`; invalid capabilities only cause warnings."""
    if not isinstance(value, Mapping):
        return [Problem("", translatable("The file must contain an object with the list services."), "type")]
    if "services" not in value:
        return [missing_field("services")]
    if not isinstance(value["services"], list):
        return [wrong_type("services", translatable("a list"))]
    ids: set[str] = set()
    entries = enumerate(value["services"])
    found = (problem for index, raw in entries for problem in _problems(raw, f"services[{index}]", ids, key_context))
    return list(islice(found, MAX_PROBLEMS))


def _problems(raw: object, path: str, ids: set[str], key_context: KeyContext) -> Iterator[Problem]:
    _, found = parse_service(raw, path)
    yield from found
    if not isinstance(raw, Mapping):
        return
    # Check each field by the original programs' rules first, and by our own rules only if those found no problem.
    fields = {problem.field for problem in found}
    rule_problems = [problem for problem in broken(RULES, raw, path) if problem.field not in fields]
    yield from rule_problems
    identifier = raw.get("id")
    if isinstance(identifier, str) and identifier in ids:
        yield duplicate_name(f"{path}.id", "id", identifier)
    elif isinstance(identifier, str):
        ids.add(identifier)
    if not errors([*found, *rule_problems]):
        yield from key_warnings(f"{path}.apiKey", raw["apiKey"], key_context)
        yield from key_context.endpoint_warnings(f"{path}.baseURL", raw["baseURL"])


def read_service(raw: Mapping[str, Any], provider: ProviderSpec, old: ServiceSpec | None = None) -> ServiceSpec:
    """Return the service that an entry describes; the caller must already have found its provider.

    Capabilities that were probed, found in the catalogue or disabled for the same model are kept if the entry does not
    mention them.
    """
    service = with_findings(_fields(raw, provider), raw, old)
    canonical = write_canonical(service, provider, key_text(provider))
    # Ignore another provider's base URL. If this provider's URL is spelled differently, keep the spelling in
    # `base_url`.
    entry = {**raw, "baseURL": canonical["baseURL"]}
    leftovers = find_leftovers(entry, canonical)
    return replace(service, extra={key: item for key, item in leftovers.items() if key not in IDENTITY})


def write_service(service: ServiceSpec, provider: ProviderSpec, *, is_named: bool = False) -> dict[str, Any]:
    """Return the entry of `services` for a service.

    With `is_named`, it contains the provider's name, because base URL and key do not identify the provider.
    """
    key = key_text(provider)

    def same(raw: Mapping[str, Any]) -> bool:
        if raw["apiKey"] == "" and key != "NOT_NEEDED":
            return False
        read = replace(with_findings(_fields(raw, provider), raw), extra=service.extra)
        return same_value(read, service)

    canonical = write_canonical(service, provider, key)
    named = {"providerName": provider.name} if is_named else {}
    extra = {name: item for name, item in service.extra.items() if name not in IDENTITY}
    return write_fields(canonical | named, extra, SERVICE_KEYS, same)


def _fields(raw: Mapping[str, Any], provider: ProviderSpec) -> ServiceSpec:
    capabilities, warnings = parse_capabilities(raw.get("capabilities"))
    enabled = raw.get("enabled")
    return ServiceSpec(
        id=raw["id"],
        name=raw["name"],
        provider=provider.name,
        model=raw["model"],
        base_url=own_spelling(raw["baseURL"], provider),
        # Invalid capabilities count as not declared.
        capabilities=capabilities if raw.get("capabilities") and not warnings else None,
        capability_tags=tuple(tag for tag in raw["capabilityTags"] if isinstance(tag, str)),
        description=raw["description"],
        limits=raw.get("limits") or {},
        price=raw.get("price") or {},
        content=raw.get("content") or {},
        timeouts=raw.get("timeouts") or {},
        extra_body=raw.get("extraBody") or {},
        routed=bool(raw.get("routed")),
        enabled=True if enabled is None else enabled,
    )


def write_canonical(service: ServiceSpec, provider: ProviderSpec, key: str) -> dict[str, Any]:
    """Return an entry with required fields and fields that differ from their default, in canonical spelling."""
    declared = declared_capabilities(service)
    return {
        "id": service.id,
        "name": service.name,
        "baseURL": service_base_url(service, provider),
        "model": service.model,
        "apiKey": key,
        "capabilityTags": list(service.capability_tags),
        "description": service.description,
    } | drop_absent(
        {
            "capabilities": declared and {"input": list(declared.input), "output": list(declared.output)},
            "enabled": None if service.enabled else False,
            "routed": service.routed or None,
            "limits": service.limits or None,
            "price": service.price or None,
            "content": service.content or None,
            "timeouts": service.timeouts or None,
            "extraBody": service.extra_body or None,
            "capabilitySources": write_findings(service) or None,
        }
    )
