"""Read and write `capabilitySources`, where a service's capabilities come from.

`capabilities` of an entry are the declared ones. This field adds those that were probed or found in the catalogue, and
those disabled by hand: `{"input": {"vision": "probed", "audio": "declared no"}}`. An import keeps them if its file
lacks the field.
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
WORDS = (*(each.value for each in Source), *(f"{each.value}{NO}" for each in Source))

FIELD = "capabilitySources"


def capability_sources(path: str, value: Any) -> Iterator[Problem]:
    """Check an object by side, of sources by capability."""
    if not isinstance(value, Mapping):
        yield wrong_type(path, translatable("an object"))
        return
    for side, words in value.items():
        where = child(path, side)
        if side not in SIDES:
            yield not_one_of(where, SIDES)
        elif not isinstance(words, Mapping):
            yield wrong_type(where, translatable("an object"))
        else:
            known = (child(where, name) for name, word in words.items() if word not in WORDS or not name)
            yield from (not_one_of(each, WORDS) for each in known)


def declared_capabilities(service: ServiceSpec) -> Capabilities | None:
    """Return the declared capabilities, without probed and catalogued ones; None if none were declared."""
    able = service.capabilities
    if able is None:
        return None
    kept = [
        tuple(word for word in getattr(able, side) if service.source(side, word) is Source.DECLARED) for side in SIDES
    ]
    return Capabilities(*kept) if any(kept) or not (able.input or able.output) else None


def write_findings(service: ServiceSpec) -> dict[str, dict[str, str]]:
    """Return the field's value, empty if every capability is declared."""
    declared = declared_capabilities(service)
    return {side: words for side in SIDES if (words := _side(service, side, declared))}


def _side(service: ServiceSpec, side: str, declared: Capabilities | None) -> dict[str, str]:
    able: tuple[str, ...] = getattr(service.capabilities, side) if service.capabilities else ()
    first: tuple[str, ...] = getattr(declared, side) if declared else ()
    # Declared capabilities are listed too if the order of a side would change otherwise.
    is_in_order = able[: len(first)] == first
    found = {
        word: source.value
        for word in able
        if (source := service.source(side, word)) != Source.DECLARED or not is_in_order
    }
    cells = [(*cell.partition(":"), source) for cell, source in service.sources.items()]
    not_able = {name: f"{source.value}{NO}" for own, _, name, source in cells if own == side and name not in able}
    return found | not_able


def with_findings(service: ServiceSpec, raw: Mapping[str, Any], old: ServiceSpec | None = None) -> ServiceSpec:
    """Return the service with the sources of its entry, else with those of the same model before the import."""
    said = raw.get(FIELD)
    if said is None and old and (old.provider, old.model) == (service.provider, service.model):
        said = write_findings(old)
    sources: dict[str, Source] = {}
    sides = []
    for side in SIDES:
        declared: tuple[str, ...] = getattr(service.capabilities, side) if service.capabilities else ()
        words = (said or {}).get(side) or {}
        # A capability exists if it was found, or if the entry itself declares it.
        yes = [word for word, source in words.items() if not source.endswith(NO) and _holds(source, word, declared)]
        # A field that lists every declared capability also gives their order.
        ordered = yes if set(declared) <= set(yes) else [*declared, *(word for word in yes if word not in declared)]
        sides.append(tuple(ordered))
        for word, source in words.items():
            kind = Source(source.removesuffix(NO))
            is_no = source.endswith(NO)
            if word not in declared and (is_no or kind is not Source.DECLARED):
                sources[f"{side}:{word}"] = kind
    able = Capabilities(*sides) if service.capabilities is not None or any(sides) else None
    return replace(service, capabilities=able, sources=sources)


def _holds(source: str, word: str, declared: tuple[str, ...]) -> bool:
    return source != Source.DECLARED or word in declared
