"""Check, read and write `llmservices.json` (seed 000)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from capabilities.core.problems import MAX_PROBLEMS, Problem
from capabilities.core.services.entries import parse_capabilities, parse_service
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.as_json import same_value
from routing_admin.core.configuration.specs import ProviderSpec, ServiceSpec
from routing_admin.core.documents.kept_fields import drop_absent, find_leftovers, write_fields
from routing_admin.core.documents.problem_sentences import duplicate_name, errors, missing_field, wrong_type
from routing_admin.core.files import field_rules as rule
from routing_admin.core.files.endpoints import base_url_of, spelling_of
from routing_admin.core.files.field_rules import Rule, broken
from routing_admin.core.files.findings import capability_sources, declared_capabilities, with_findings, write_findings
from routing_admin.core.files.keys import NOWHERE, KeyContext, key_warnings
from routing_admin.core.files.llm_routing import key_text

SERVICE_SEED_KEYS = ("id", "name", "baseURL", "model", "apiKey", "capabilityTags", "capabilities", "description")
SERVICE_OWN_KEYS = (
    *("providerName", "enabled", "routed", "limits", "price", "content", "timeouts", "extraBody"),
    "capabilitySources",
)
SERVICE_KEYS = SERVICE_SEED_KEYS + SERVICE_OWN_KEYS
IDENTITY = ("providerName",)
"""Fields that the spec stores in full, whatever their spelling."""

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
    Rule("content", rule.mapping),
    Rule("timeouts", rule.seconds_table),
    Rule("extraBody", rule.mapping),
)


def validate_services(value: object, *, key_context: KeyContext = NOWHERE) -> list[Problem]:
    """Return every problem of a parsed `llmservices.json`; invalid capabilities are warnings."""
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
    # Each field is reported once, by the seed's rules first.
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
    """Return the service of an entry, at its resolved provider.

    Capabilities that were probed, catalogued or disabled for the same model are kept if the entry does not mention
    them.
    """
    service = with_findings(_fields(raw, provider), raw, old)
    canonical = write_canonical(service, provider, key_text(provider))
    entry = {**raw, "baseURL": canonical["baseURL"]}  # a base URL other than the provider's is dropped
    leftovers = find_leftovers(entry, canonical)
    return replace(service, extra={key: item for key, item in leftovers.items() if key not in IDENTITY})


def write_service(service: ServiceSpec, provider: ProviderSpec, *, is_named: bool = False) -> dict[str, Any]:
    """Return the entry of `services`; `is_named` adds the provider's name if base URL and key are ambiguous."""
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
        base_url=spelling_of(raw["baseURL"], provider),
        # Invalid capabilities count as undeclared.
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
    """Return every field of an entry that differs from its default, in canonical spelling."""
    declared = declared_capabilities(service)
    return {
        "id": service.id,
        "name": service.name,
        "baseURL": base_url_of(service, provider),
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
