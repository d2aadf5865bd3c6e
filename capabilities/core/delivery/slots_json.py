"""Parse, validate and format slots as JSON, the format of administrators' overrides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from capabilities.core.delivery.slots import SLOT_KINDS, Slot, Slots, ToolMedia
from capabilities.core.delivery.token_limits import CONTEXT, OUTPUT
from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, Kind


def _is_count(value: object) -> bool:
    # In Python, bool is a subclass of int, so exclude it explicitly.
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_strings(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) and item for item in value)


_Check = tuple[Callable[[object], bool], str]
_COUNT: _Check = (
    lambda value: value is None or _is_count(value),
    translatable("a whole number, 0 or more, or null for no limit"),
)
_STRING: _Check = (lambda value: isinstance(value, str), translatable("a text"))
_STRINGS: _Check = (lambda value: _are_strings(value) and bool(value), translatable("a non-empty list of strings"))
_TYPES: _Check = (
    lambda value: value is None or _are_strings(value),
    translatable("a list of MIME types, or null for every type"),
)
_FLAG: _Check = (lambda value: isinstance(value, bool), translatable("true or false"))

_FIELDS: Mapping[str, tuple[str, _Check]] = MappingProxyType(
    {
        "name": ("name", _STRING),
        "capabilities": ("capabilities", _STRINGS),
        "mimeTypes": ("mime_types", _TYPES),
        "minBytes": ("min_bytes", (_is_count, translatable("a whole number, 0 or more"))),
        "maxBytes": ("max_bytes", _COUNT),
        "maxTotalBytes": ("max_total_bytes", _COUNT),
        "maxCount": ("max_count", _COUNT),
        "maxSide": ("max_side", _COUNT),
        "crowdCount": ("crowd_count", _COUNT),
        "crowdMaxSide": ("crowd_max_side", _COUNT),
        "maxPages": ("max_pages", _COUNT),
        "takesUrl": ("takes_url", _FLAG),
        "inToolResult": ("in_tool_result", _FLAG),
        "toolMimeTypes": ("tool_mime_types", _TYPES),
        "source": ("source", _STRING),
        "checkedOn": ("checked_on", _STRING),
    }
)

_WHOLE: Mapping[str, _Check] = MappingProxyType(
    {
        "maxRequestBytes": _COUNT,
        CONTEXT: _COUNT,
        OUTPUT: _COUNT,
        "toolMedia": (
            lambda value: isinstance(value, str) and value in set(ToolMedia),
            translatable("native, hoist or text"),
        ),
    }
)

_FREEZE: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "capabilities": tuple,
        "mime_types": lambda value: None if value is None else frozenset(value),
        "tool_mime_types": lambda value: None if value is None else frozenset(value),
    }
)


def check_limits(data: object, path: str = "limits") -> tuple[Problem, ...]:
    """Validate an administrator's limits and return the problems found. An unknown field causes only a warning."""
    if not isinstance(data, Mapping):
        message = translatable(
            "%(path)s must be an object such as %(example)s.", path=path, example="{'image': {'maxBytes': 5000000}}"
        )
        return (Problem(path, message, "type"),)
    problems: list[Problem] = []
    for key, value in data.items():
        field_path = f"{path}.{key}"
        if key in _WHOLE:
            problems += _check_type(field_path, value, _WHOLE[key])
        elif key not in SLOT_KINDS:
            problems.append(_unknown(field_path, [*SLOT_KINDS, *_WHOLE]))
        elif value is not None:
            problems += _check_slot(field_path, value)
    return tuple(problems)


def _check_slot(path: str, data: object) -> list[Problem]:
    if not isinstance(data, Mapping):
        message = translatable("%(path)s must be an object, or null if there is no place for it.", path=path)
        return [Problem(path, message, "type")]
    problems: list[Problem] = []
    for key, value in data.items():
        field_path = f"{path}.{key}"
        problems += (
            _check_type(field_path, value, _FIELDS[key][1]) if key in _FIELDS else [_unknown(field_path, list(_FIELDS))]
        )
    return problems


def _check_type(path: str, value: object, check: _Check) -> list[Problem]:
    is_valid, expected = check
    message = translatable("%(path)s must be %(expected)s.", path=path, expected=expected)
    return [] if is_valid(value) else [Problem(path, message, "type")]


def _unknown(path: str, names: list[str]) -> Problem:
    message = translatable("%(path)s is unknown and has no effect. Known: %(known)s.", path=path, known=tuple(names))
    return Problem(path, message, "enum", "warning")


def with_limits(slots: Slots, data: object) -> Slots:
    """Return the slots with these limits applied. Invalid values are ignored."""
    if not isinstance(data, Mapping):
        return slots
    by_kind = dict(slots.by_kind)
    for key, kinds in SLOT_KINDS.items():
        if key not in data:
            continue
        for kind in kinds:
            slot = _apply(by_kind.get(kind), key, kind, data[key])
            # Null means that the provider does not accept this kind of file, so remove the slot.
            by_kind.pop(kind, None)
            if slot is not None:
                by_kind[kind] = slot
    whole = {key: data[key] for key, (is_valid, _) in _WHOLE.items() if key in data and is_valid(data[key])}
    return replace(
        slots,
        by_kind=MappingProxyType(by_kind),
        max_request_bytes=whole.get("maxRequestBytes", slots.max_request_bytes),
        tool_media=ToolMedia(whole.get("toolMedia", slots.tool_media)),
    )


def _apply(slot: Slot | None, key: str, kind: Kind, data: object) -> Slot | None:
    if data is None:
        return None
    if not isinstance(data, Mapping):
        return slot
    base = slot or Slot(name=key, capabilities=(CAPABILITY_OF_KIND[kind],))
    values = {
        name: _FREEZE.get(name, lambda value: value)(data[field])
        for field, (name, (is_valid, _)) in _FIELDS.items()
        if field in data and is_valid(data[field])
    }
    return replace(base, **values)


def to_json(slots: Slots) -> dict[str, Any]:
    """Return the slots as JSON, in the format of overrides. `from_json` parses them."""
    json_names = {name: json_name for json_name, (name, _) in _FIELDS.items()}
    data: dict[str, Any] = {"maxRequestBytes": slots.max_request_bytes, "toolMedia": slots.tool_media.value}
    for key, kinds in SLOT_KINDS.items():
        # The kinds `document` and `other` share a slot in JSON.
        slot = slots.get(kinds[0])
        data[key] = slot and {json_names[item.name]: _plain(getattr(slot, item.name)) for item in fields(slot)}
    return data


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else list(value) if isinstance(value, tuple) else value


def from_json(data: object, name: str = "") -> tuple[Slots, tuple[Problem, ...]]:
    """Parse slots from JSON, and return them with the problems found."""
    return with_limits(Slots(name=name), data), check_limits(data)
