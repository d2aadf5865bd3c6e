"""List the changes between a route and its draft: candidates added, removed, moved or edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any

from routing_admin.core.configuration.specs import CandidateSpec, Configuration, RouteSpec
from routing_admin.core.documents.kept_fields import same_json

ROUTE_FIELDS = (
    *("enabled", "temperature", "max_tokens", "retries", "deadline", "first_content", "on_error", "content"),
    *("on_drop", "on_overflow", "directive", "keep_alive_seconds", "allow_n", "extra"),
)
CANDIDATE_FIELDS = ("temperature", "max_tokens", "extra_body", "extra")


class RouteChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    SET = "set"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteChange:
    """One change to a route. `candidate` is empty if the change concerns the route itself; positions count from 1."""

    did: RouteChangeKind
    candidate: str = ""
    field: str = ""
    before: Any = None
    after: Any = None


Identity = tuple[str, str | None, int]


def with_route(configuration: Configuration, spec: RouteSpec) -> Configuration:
    """Return the configuration with the route replaced, or appended if it is new."""
    if configuration.route(spec.task_type) is None:
        return replace(configuration, routes=(*configuration.routes, spec))
    routes = tuple(spec if item.task_type == spec.task_type else item for item in configuration.routes)
    return replace(configuration, routes=routes)


def route_changes(before: RouteSpec | None, after: RouteSpec) -> tuple[RouteChange, ...]:
    """Return the changes between two versions of a route; `before` is None for a new route."""
    if before is None:
        return tuple(_chain_changes((), after.candidates))
    return (*_chain_changes(before.candidates, after.candidates), *_field_changes(before, after))


def candidate_name(spec: CandidateSpec) -> str:
    return f"{spec.provider}/{spec.model}" if spec.model else spec.provider


def _identities(chain: Sequence[CandidateSpec]) -> dict[Identity, CandidateSpec]:
    # A candidate is identified by its provider and model, and by how many equal candidates precede it.
    seen: Counter[tuple[str, str | None]] = Counter()
    found: dict[Identity, CandidateSpec] = {}
    for spec in chain:
        found[spec.provider, spec.model, seen[spec.provider, spec.model]] = spec
        seen[spec.provider, spec.model] += 1
    return found


def _chain_changes(before: Sequence[CandidateSpec], after: Sequence[CandidateSpec]) -> Iterator[RouteChange]:
    old, new = _identities(before), _identities(after)
    for position, (key, spec) in enumerate(old.items(), start=1):
        if key not in new:
            yield RouteChange(did=RouteChangeKind.REMOVED, candidate=candidate_name(spec), before=position)
    for position, (key, spec) in enumerate(new.items(), start=1):
        if key not in old:
            yield RouteChange(did=RouteChangeKind.ADDED, candidate=candidate_name(spec), after=position)
    positions = {key: position for position, key in enumerate(old, start=1)}
    for key in _find_moved([key for key in old if key in new], [key for key in new if key in old]):
        yield RouteChange(
            did=RouteChangeKind.MOVED,
            candidate=candidate_name(new[key]),
            before=positions[key],
            after=list(new).index(key) + 1,
        )
    for key, spec in new.items():
        if key in old:
            yield from _settings(old[key], spec)


def _find_moved(old: list[Identity], new: list[Identity]) -> list[Identity]:
    # Report as few candidates as possible as moved; all others keep their relative order.
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    unmoved = {key for block in matcher.get_matching_blocks() for key in new[block.b : block.b + block.size]}
    return [key for key in new if key not in unmoved]


def _settings(old: CandidateSpec, new: CandidateSpec) -> Iterator[RouteChange]:
    for field in CANDIDATE_FIELDS:
        before, after = getattr(old, field), getattr(new, field)
        if not same_json(before, after):
            yield RouteChange(
                did=RouteChangeKind.SET, candidate=candidate_name(new), field=field, before=before, after=after
            )


def _field_changes(before: RouteSpec, after: RouteSpec) -> Iterator[RouteChange]:
    for field in ROUTE_FIELDS:
        old, new = getattr(before, field), getattr(after, field)
        if not same_json(old, new):
            yield RouteChange(did=RouteChangeKind.SET, field=field, before=old, after=new)
