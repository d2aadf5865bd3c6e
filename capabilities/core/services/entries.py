"""Parse a model service in JSON, and report the problems in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.texts.phrases import escape_name
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities

NOT_NEEDED = "NOT_NEEDED"
"""Value of `apiKey` for a provider that needs no key. An empty string means the same."""

FILLED = ("id", "name", "baseURL", "model")
STRINGS = (*FILLED, "apiKey", "description")
KNOWN = frozenset({*STRINGS, "capabilityTags", "capabilities"})
SIDES = ("input", "output")

TYPE_NAMES: Mapping[type, str] = {
    bool: translatable("a boolean"),
    int: translatable("a number"),
    float: translatable("a number"),
    str: translatable("a string"),
    list: translatable("a list"),
    dict: translatable("an object"),
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class LlmServiceConfig:
    """An entry of `llmservices.json`: a model at a provider, and its input and output capabilities.

    `declared` is True if the entry states the capabilities. If not, the service is text only. `extra` contains the
    entry's unknown fields.
    """

    id: str
    name: str
    base_url: str
    model: str
    api_key: str = field(default=NOT_NEEDED, repr=False)
    capability_tags: tuple[str, ...] = ()
    capabilities: Capabilities = TEXT_ONLY
    description: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)
    declared: bool = True

    @property
    def needs_key(self) -> bool:
        return self.api_key not in ("", NOT_NEEDED)


def type_name(value: object) -> str:
    """Return the JSON type of a value, such as `a list` or `null`.

    Messages state the type, because they must not reveal the value.
    """
    return TYPE_NAMES.get(type(value), type(value).__name__)


def parse_capabilities(raw: object, path: str = "capabilities") -> tuple[Capabilities, list[Problem]]:
    """Return the declared capabilities, or text only with warnings if any is invalid (MCR-1.4, MCR-1.5, MCR-E1).

    None and `{}` mean text input and output, and cause no warning. If only the input or the output list is missing,
    that side is text. Duplicates are removed, an empty list remains empty, and any non-empty string is a capability
    (MCR-5.4).
    """
    if raw is None:
        return TEXT_ONLY, []
    if not isinstance(raw, Mapping):
        return TEXT_ONLY, [
            _problem(
                path,
                translatable("must be an object with the lists input and output, not %(type)s", type=type_name(raw)),
            )
        ]
    sides = {side: raw.get(side) for side in SIDES}
    if raw and not any(side in raw for side in SIDES):
        return TEXT_ONLY, [_problem(path, translatable("must have the lists input and output, and has neither"))]
    problems = [problem for side, entries in sides.items() for problem in _side_problems(f"{path}.{side}", entries)]
    # A single invalid entry makes the entire service text only.
    if problems:
        return TEXT_ONLY, problems
    by_side = {side: tuple(dict.fromkeys(entries)) for side, entries in sides.items() if entries is not None}
    return Capabilities(by_side.get("input", TEXT_ONLY.input), by_side.get("output", TEXT_ONLY.output)), []


def _declared(raw: object) -> bool:
    # Null in place of a list declares nothing.
    return isinstance(raw, Mapping) and any(raw.get(side) is not None for side in SIDES)


def _side_problems(path: str, entries: object) -> list[Problem]:
    if entries is None:
        return []
    if not isinstance(entries, list | tuple):
        return [
            _problem(path, translatable("must be a list of capability types, not %(type)s", type=type_name(entries)))
        ]
    return [
        _problem(
            f"{path}[{index}]",
            translatable(
                "must be a non-empty string, not %(type)s",
                type=translatable("an empty one") if entry == "" else type_name(entry),
            ),
        )
        for index, entry in enumerate(entries)
        if not isinstance(entry, str) or not entry
    ]


def _problem(path: str, rule: str) -> Problem:
    message = translatable(
        "%(path)s %(rule)s; the service counts as text only until this is corrected", path=path, rule=rule
    )
    return Problem(path, message, "type", "warning")


def parse_service(raw: object, path: str) -> tuple[LlmServiceConfig | None, list[Problem]]:
    """Return the service (None if it is invalid) and all problems. A valid service may have warnings."""
    if not isinstance(raw, Mapping):
        return None, [_wrong_type(path, translatable("an object"), raw)]
    errors = [problem for name in STRINGS for problem in _string_problems(raw, path, name)]
    tags, tag_problems = _tags(raw, f"{path}.capabilityTags")
    capabilities, warnings = parse_capabilities(raw.get("capabilities"), f"{path}.capabilities")
    problems = [*errors, *tag_problems, *warnings]
    if any(problem.severity == "error" for problem in problems):
        return None, problems
    service = LlmServiceConfig(
        id=raw["id"],
        name=raw["name"],
        base_url=raw["baseURL"],
        model=raw["model"],
        api_key=raw["apiKey"],
        capability_tags=tags,
        capabilities=capabilities,
        description=raw["description"],
        # Keep unknown fields, so that an export contains them again.
        extra={name: value for name, value in raw.items() if name not in KNOWN},
        declared=_declared(raw.get("capabilities")) and not warnings,
    )
    return service, problems


def _wrong_type(path: str, expected: str, value: object) -> Problem:
    message = translatable(
        "%(path)s must be %(wanted)s, not %(type)s", path=path, wanted=expected, type=type_name(value)
    )
    return Problem(path, message, "type")


def _string_problems(raw: Mapping[str, Any], path: str, name: str) -> Iterable[Problem]:
    field_path = f"{path}.{name}"
    if name not in raw:
        yield Problem(
            field_path, translatable("%(path)s is missing; every model service needs it", path=field_path), "required"
        )
    elif not isinstance(raw[name], str):
        yield _wrong_type(field_path, translatable("a string"), raw[name])
    elif name in FILLED and not raw[name]:
        yield Problem(
            field_path, translatable("%(path)s is empty; every model service needs it", path=field_path), "required"
        )


def _tags(raw: Mapping[str, Any], path: str) -> tuple[tuple[str, ...], list[Problem]]:
    if "capabilityTags" not in raw:
        return (), [
            Problem(
                path, translatable("%(path)s is missing; it must be a list, which can be empty", path=path), "required"
            )
        ]
    tags = raw["capabilityTags"]
    if not isinstance(tags, list | tuple):
        return (), [_wrong_type(path, translatable("a list"), tags)]
    problems = [
        Problem(
            f"{path}[{index}]",
            translatable(
                "%(path)s must be a string, not %(type)s; it is left out",
                path=f"{path}[{index}]",
                type=type_name(tag),
            ),
            "type",
            "warning",
        )
        for index, tag in enumerate(tags)
        if not isinstance(tag, str)
    ]
    return tuple(tag for tag in tags if isinstance(tag, str)), problems


def duplicate_ids(services: Iterable[tuple[str, LlmServiceConfig]]) -> list[Problem]:
    """Return a problem for each service that has the same id as an earlier one.

    `services` are pairs of path and service.
    """
    first: dict[str, str] = {}
    problems = []
    for path, service in services:
        first_path = first.setdefault(service.id, path)
        if first_path != path:
            message = translatable(
                "%(path)s %(id)s is already used by %(earlier)s; rename or remove one of them",
                path=f"{path}.id",
                id=repr(escape_name(service.id)),
                earlier=first_path,
            )
            problems.append(Problem(f"{path}.id", message, "duplicate"))
    return problems
