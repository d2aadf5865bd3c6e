"""Read and write `capabilitySources`, where a service's capabilities come from.

An entry's `capabilities` are the declared capabilities. This field adds capabilities that were probed or found in the
catalogue, and capabilities disabled by hand: `{"input": {"vision": "probed", "audio": "declared no"}}`. An import keeps
them if its file lacks the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Capabilities, Source
from routing_admin.core.configuration.specs import ServiceSpec
from routing_admin.core.documents.json_path import child
from routing_admin.core.documents.problem_sentences import not_one_of, wrong_type

SIDES = ("input", "output")
NO = " no"
"""Suffix of the source for a capability that the model lacks."""
WORDS = (*(source.value for source in Source), *(f"{source.value}{NO}" for source in Source))

FIELD = "capabilitySources"


def capability_sources(path: str, value: Any) -> Iterator[Problem]:
    """Yield the problems of an object that maps each side (`input`, `output`) to sources by capability."""
    if not isinstance(value, Mapping):
        yield wrong_type(path, translatable("an object"))
        return
    for side, sources in value.items():
        side_path = child(path, side)
        if side not in SIDES:
            yield not_one_of(side_path, SIDES)
        elif not isinstance(sources, Mapping):
            yield wrong_type(side_path, translatable("an object"))
        else:
            invalid = (child(side_path, name) for name, source in sources.items() if source not in WORDS or not name)
            yield from (not_one_of(invalid_path, WORDS) for invalid_path in invalid)


def declared_capabilities(service: ServiceSpec) -> Capabilities | None:
    """Return the declared capabilities, without probed and catalogued ones; None if nothing was declared."""
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
    """Return the field's value, empty if every capability is declared."""
    declared = declared_capabilities(service)
    return {side: sources for side in SIDES if (sources := _side(service, side, declared))}


def _side(service: ServiceSpec, side: str, declared: Capabilities | None) -> dict[str, str]:
    capabilities: tuple[str, ...] = getattr(service.capabilities, side) if service.capabilities else ()
    first: tuple[str, ...] = getattr(declared, side) if declared else ()
    # Declared capabilities are also listed if the order of a side would change otherwise.
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
    """Return the service with the sources in its entry, else with the sources of the same model before the import."""
    findings = raw.get(FIELD)
    if findings is None and old and (old.provider, old.model) == (service.provider, service.model):
        findings = write_findings(old)
    sources: dict[str, Source] = {}
    sides = []
    for side in SIDES:
        declared: tuple[str, ...] = getattr(service.capabilities, side) if service.capabilities else ()
        entries = (findings or {}).get(side) or {}
        # A capability exists if it was found, or if the entry itself declares it.
        present = [
            capability
            for capability, source in entries.items()
            if not source.endswith(NO) and _holds(source, capability, declared)
        ]
        # A field that lists every declared capability also gives their order.
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
