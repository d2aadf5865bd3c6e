"""`llmservices.json`: checked, read and written back (seed 000, decisions 5 and 9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.services.entries import parse_capabilities, parse_service
from capabilities.core.vocabulary import Capabilities, Source
from capabilities.core.worded import worded
from routing_admin.core.configuration.specs import ServiceSpec
from routing_admin.core.documents.kept_fields import drop_absent, find_leftovers, write_fields
from routing_admin.core.documents.problem_sentences import duplicate_name, errors, missing_field, wrong_type
from routing_admin.core.files import field_rules as rule
from routing_admin.core.files.field_rules import Rule, broken
from routing_admin.core.files.key_checks import NOWHERE, KeyContext, key_warnings

SERVICE_SEED_KEYS = ("id", "name", "baseURL", "model", "apiKey", "capabilityTags", "capabilities", "description")
SERVICE_OWN_KEYS = ("enabled", "routed", "limits", "price", "content", "timeouts", "extraBody")
SERVICE_KEYS = SERVICE_SEED_KEYS + SERVICE_OWN_KEYS

RULES = (
    Rule("id", rule.filled),
    Rule("name", rule.filled),
    Rule("baseURL", rule.url),
    Rule("model", rule.filled),
    Rule("description", rule.text),
    Rule("apiKey", rule.key),
    Rule("enabled", rule.flag),
    Rule("routed", rule.flag),
    Rule("limits", rule.mapping),
    Rule("price", rule.price),
    Rule("content", rule.mapping),
    Rule("timeouts", rule.seconds_table),
    Rule("extraBody", rule.mapping),
)


def validate_services(value: object, *, around: KeyContext = NOWHERE) -> list[Problem]:
    """Every problem of a parsed `llmservices.json`, whatever JSON value it is; bad capabilities are warnings."""
    if not isinstance(value, Mapping):
        return [Problem("", worded("The file must contain an object with the list services."), "type")]
    if "services" not in value:
        return [missing_field("services")]
    if not isinstance(value["services"], list):
        return [wrong_type("services", worded("a list"))]
    ids: set[str] = set()
    entries = enumerate(value["services"])
    return [problem for index, raw in entries for problem in _problems(raw, f"services[{index}]", ids, around)]


def _problems(raw: object, path: str, ids: set[str], around: KeyContext) -> Iterator[Problem]:
    _, found = parse_service(raw, path)
    yield from found
    if not isinstance(raw, Mapping):
        return
    fields = {problem.field for problem in found}
    further = [problem for problem in broken(RULES, raw, path) if problem.field not in fields]
    yield from further
    identifier = raw.get("id")
    if isinstance(identifier, str) and identifier in ids:
        yield duplicate_name(f"{path}.id", "id", identifier)
    elif isinstance(identifier, str):
        ids.add(identifier)
    if not errors([*found, *further]):
        yield from key_warnings(f"{path}.apiKey", raw["apiKey"], around)
        yield from around.endpoint_warnings(f"{path}.baseURL", raw["baseURL"])


def read_service(raw: Mapping[str, Any], provider: str, key: str) -> ServiceSpec:
    """The service an entry describes, at the provider found for it whose key field is written `key`."""
    service = _fields(raw, provider)
    return replace(service, extra=find_leftovers(raw, _canonical(service, key)))


def write_service(service: ServiceSpec, key: str) -> dict[str, Any]:
    """The entry of `services`; `key` is what stands in its key field, never a key."""

    def same(raw: Mapping[str, Any]) -> bool:
        if raw["apiKey"] == "" and key != "NOT_NEEDED":
            return False
        return replace(_fields(raw, service.provider), extra=service.extra) == replace(
            service, capabilities=declared_capabilities(service), sources={}
        )

    return write_fields(_canonical(service, key), service.extra, SERVICE_KEYS, same)


def declared_capabilities(service: ServiceSpec) -> Capabilities | None:
    """What somebody declared, without what was probed or looked up; None where nothing was."""
    found = service.capabilities
    if found is None:
        return None
    kept = Capabilities(*(tuple(_declared_side(service, side, words)) for side, words in _sides(found)))
    return kept if kept.input or kept.output or not (found.input or found.output) else None


def _sides(capabilities: Capabilities) -> Iterable[tuple[str, tuple[str, ...]]]:
    return (("input", capabilities.input), ("output", capabilities.output))


def _declared_side(service: ServiceSpec, side: str, words: tuple[str, ...]) -> Iterator[str]:
    return (word for word in words if service.source(side, word) is Source.DECLARED)


def _fields(raw: Mapping[str, Any], provider: str) -> ServiceSpec:
    capabilities, warnings = parse_capabilities(raw.get("capabilities"))
    enabled = raw.get("enabled")
    return ServiceSpec(
        id=raw["id"],
        name=raw["name"],
        provider=provider,
        model=raw["model"],
        base_url=raw["baseURL"],
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


def _canonical(service: ServiceSpec, key: str) -> dict[str, Any]:
    able = declared_capabilities(service)
    return {
        "id": service.id,
        "name": service.name,
        "baseURL": service.base_url,
        "model": service.model,
        "apiKey": key,
        "capabilityTags": list(service.capability_tags),
        "description": service.description,
    } | drop_absent(
        {
            "capabilities": able and {"input": list(able.input), "output": list(able.output)},
            "enabled": None if service.enabled else False,
            "routed": service.routed or None,
            "limits": service.limits or None,
            "price": service.price or None,
            "content": service.content or None,
            "timeouts": service.timeouts or None,
            "extraBody": service.extra_body or None,
        }
    )
