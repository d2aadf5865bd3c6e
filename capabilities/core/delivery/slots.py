"""Where a protocol takes which content, and how much of it: one `Slot` per kind, from data that can be edited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from capabilities.core.delivery import limits
from capabilities.core.problems import Problem
from capabilities.core.providers.quirks import quirk
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, Kind
from capabilities.core.worded import worded


class ToolMedia(StrEnum):
    """What becomes of media in a tool result: it stays, moves to a user message after it, or is described."""

    NATIVE = "native"
    HOIST = "hoist"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Slot:
    """One place for media in a request; None in a limit means that none is known.

    `capabilities`: any one of them opens the slot. `mime_types` None takes every type, `tool_mime_types` None the
    same ones inside tool results. Bytes are those of the file before base64: `max_bytes` one file, `max_total_bytes`
    all of this slot. Sides are pixels; more than `crowd_count` files in a request lower the limit to
    `crowd_max_side`. `source` and `checked_on` say where the numbers come from.
    """

    name: str
    capabilities: tuple[str, ...]
    mime_types: frozenset[str] | None = None
    min_bytes: int = 1
    max_bytes: int | None = None
    max_total_bytes: int | None = None
    max_count: int | None = None
    max_side: int | None = None
    crowd_count: int | None = None
    crowd_max_side: int | None = None
    max_pages: int | None = None
    takes_url: bool = False
    in_tool_result: bool = False
    tool_mime_types: frozenset[str] | None = None
    source: str = ""
    checked_on: str = ""

    def carries(self, mime_type: str, *, in_tool_result: bool = False) -> bool:
        """Whether a file of that type may stand here."""
        listed = self.tool_mime_types if in_tool_result and self.tool_mime_types is not None else self.mime_types
        return listed is None or mime_type in listed

    def side(self, total: int) -> int | None:
        """The most pixels a side when the request holds `total` files of this kind."""
        crowded = self.crowd_count is not None and total > self.crowd_count
        return self.crowd_max_side if crowded and self.crowd_max_side is not None else self.max_side


@dataclass(frozen=True, slots=True)
class Slots:
    """All slots of one service: by kind, the bytes of a whole request, and what it does with media from tools."""

    name: str = ""
    by_kind: Mapping[Kind, Slot] = field(default_factory=dict)
    max_request_bytes: int | None = None
    tool_media: ToolMedia = ToolMedia.TEXT

    def get(self, kind: Kind) -> Slot | None:
        """The slot for a kind of content; None where there is no place for it."""
        return self.by_kind.get(kind)


SLOT_KINDS: Mapping[str, tuple[Kind, ...]] = MappingProxyType(
    {
        "text": (Kind.TEXT,),
        "image": (Kind.IMAGE,),
        "audio": (Kind.AUDIO,),
        "video": (Kind.VIDEO,),
        "file": (Kind.DOCUMENT, Kind.OTHER),
    }
)
"""The names slots have in JSON, and the kinds each stands for."""


def slot_key(kind: Kind) -> str:
    """The name of a kind's slot in JSON and in headers: `file` for documents and others."""
    return next(key for key, kinds in SLOT_KINDS.items() if kind in kinds)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_words(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) and word for word in value)


_Check = tuple[Callable[[object], bool], str]
_COUNT: _Check = (
    lambda value: value is None or _is_count(value),
    worded("a whole number, 0 or more, or null for no limit"),
)
_WORD: _Check = (lambda value: isinstance(value, str), worded("a text"))
_WORDS: _Check = (lambda value: _are_words(value) and bool(value), worded("a list of words that is not empty"))
_TYPES: _Check = (
    lambda value: value is None or _are_words(value),
    worded("a list of MIME types, or null for every type"),
)
_FLAG: _Check = (lambda value: isinstance(value, bool), worded("true or false"))

_FIELDS: Mapping[str, tuple[str, _Check]] = MappingProxyType(
    {
        "name": ("name", _WORD),
        "capabilities": ("capabilities", _WORDS),
        "mimeTypes": ("mime_types", _TYPES),
        "minBytes": ("min_bytes", (_is_count, worded("a whole number, 0 or more"))),
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
        "source": ("source", _WORD),
        "checkedOn": ("checked_on", _WORD),
    }
)

_WHOLE: Mapping[str, _Check] = MappingProxyType(
    {
        "maxRequestBytes": _COUNT,
        "toolMedia": (
            lambda value: isinstance(value, str) and value in set(ToolMedia),
            worded("native, hoist or text"),
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
    """What is wrong with limits as an administrator wrote them; an unknown field is a warning, the rest errors."""
    if not isinstance(data, Mapping):
        message = worded(
            "%(path)s must be an object such as %(example)s.", path=path, example="{'image': {'maxBytes': 5000000}}"
        )
        return (Problem(path, message, "type"),)
    found: list[Problem] = []
    for key, value in data.items():
        here = f"{path}.{key}"
        if key in _WHOLE:
            found += _checked(here, value, _WHOLE[key])
        elif key not in SLOT_KINDS:
            found.append(_unknown(here, [*SLOT_KINDS, *_WHOLE]))
        elif value is not None:
            found += _check_slot(here, value)
    return tuple(found)


def _check_slot(path: str, data: object) -> list[Problem]:
    if not isinstance(data, Mapping):
        message = worded("%(path)s must be an object, or null where there is no place for it.", path=path)
        return [Problem(path, message, "type")]
    found: list[Problem] = []
    for key, value in data.items():
        here = f"{path}.{key}"
        found += _checked(here, value, _FIELDS[key][1]) if key in _FIELDS else [_unknown(here, list(_FIELDS))]
    return found


def _checked(path: str, value: object, check: _Check) -> list[Problem]:
    holds, wanted = check
    message = worded("%(path)s must be %(expected)s.", path=path, expected=wanted)
    return [] if holds(value) else [Problem(path, message, "type")]


def _unknown(path: str, known: list[str]) -> Problem:
    message = worded("%(path)s is not known and has no effect; known are %(known)s.", path=path, known=tuple(known))
    return Problem(path, message, "enum", "warning")


def with_limits(slots: Slots, data: object) -> Slots:
    """The slots with these limits on top; what `check_limits` would call an error is left as it was."""
    if not isinstance(data, Mapping):
        return slots
    by_kind = dict(slots.by_kind)
    for key, kinds in SLOT_KINDS.items():
        if key not in data:
            continue
        for kind in kinds:
            slot = _changed(by_kind.get(kind), key, kind, data[key])
            by_kind.pop(kind, None)
            if slot is not None:
                by_kind[kind] = slot
    whole = {key: data[key] for key, (holds, _) in _WHOLE.items() if key in data and holds(data[key])}
    return replace(
        slots,
        by_kind=MappingProxyType(by_kind),
        max_request_bytes=whole.get("maxRequestBytes", slots.max_request_bytes),
        tool_media=ToolMedia(whole.get("toolMedia", slots.tool_media)),
    )


def _changed(slot: Slot | None, key: str, kind: Kind, data: object) -> Slot | None:
    if data is None:
        return None
    if not isinstance(data, Mapping):
        return slot
    base = slot or Slot(name=key, capabilities=(CAPABILITY_OF_KIND[kind],))
    given = {
        name: _FREEZE.get(name, lambda value: value)(data[word])
        for word, (name, (holds, _)) in _FIELDS.items()
        if word in data and holds(data[word])
    }
    return replace(base, **given)


def slots_for(
    protocol: str,
    template: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    quirks: Mapping[str, Any] | None = None,
) -> Slots:
    """The slots of a service: its protocol's, changed by its provider's template, then by the administrator.

    `template` is the preset's or host's name, unknown ones change nothing; an unknown protocol has no slot at all.
    `quirks` are the compatibility options in effect: what they cannot write down is no slot, whoever allowed it.
    """
    slots = with_limits(Slots(name=protocol), limits.PROTOCOLS.get(protocol, {}))
    slots = with_limits(with_limits(slots, limits.TEMPLATES.get(template or "", {})), overrides or {})
    return slots if quirks is None else within_quirks(slots, quirks)


def within_quirks(slots: Slots, quirks: Mapping[str, Any]) -> Slots:
    """What a provider's compatibility options leave of its slots; a video slot appears where they can write one."""
    tool_media = ToolMedia(quirk(quirks, "tool_media", slots.name))
    if slots.name != "openai":
        return replace(slots, tool_media=tool_media if "tool_media" in quirks else slots.tool_media)
    start = slots if slots.get(Kind.VIDEO) else with_limits(slots, limits.VIDEO_URL)
    inside = tool_media is ToolMedia.NATIVE
    kept = {
        kind: replace(slot, takes_url=slot.takes_url and _by_url(kind, quirks), in_tool_result=inside)
        for kind, slot in start.by_kind.items()
        if _written(kind, quirks)
    }
    return replace(slots, by_kind=MappingProxyType(kept), tool_media=tool_media)


_PART: Mapping[Kind, str] = MappingProxyType(
    {Kind.VIDEO: "video_part", Kind.DOCUMENT: "file_part", Kind.OTHER: "file_part"}
)
"""The option that says how a kind is written, where there is one."""


def _written(kind: Kind, quirks: Mapping[str, Any]) -> bool:
    """Whether the options can write a file of that kind at all."""
    return not quirk(quirks, "string_content_only") and (kind not in _PART or quirk(quirks, _PART[kind]) != "none")


def _by_url(kind: Kind, quirks: Mapping[str, Any]) -> bool:
    """Whether the options can write a file of that kind by its address."""
    if kind is Kind.IMAGE:
        return not quirk(quirks, "no_remote_image_urls")
    if kind is Kind.AUDIO:
        return bool(quirk(quirks, "input_audio_shape") == "audio_url")
    return kind is Kind.VIDEO or bool(quirk(quirks, "file_urls"))


def to_json(slots: Slots) -> dict[str, Any]:
    """The slots as JSON, in the form overrides are written in; `from_json` gives the same slots back."""
    words = {name: word for word, (name, _) in _FIELDS.items()}
    data: dict[str, Any] = {"maxRequestBytes": slots.max_request_bytes, "toolMedia": slots.tool_media.value}
    for key, kinds in SLOT_KINDS.items():
        slot = slots.get(kinds[0])
        data[key] = slot and {words[item.name]: _plain(getattr(slot, item.name)) for item in fields(slot)}
    return data


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else list(value) if isinstance(value, tuple) else value


def from_json(data: object, name: str = "") -> tuple[Slots, tuple[Problem, ...]]:
    """The slots that JSON describes, and what is wrong with it."""
    return with_limits(Slots(name=name), data), check_limits(data)


MESSAGE_SLOTS = with_limits(Slots(name="messages"), limits.MESSAGES)
GET_ARTIFACT_SLOTS = with_limits(Slots(name="get_artifact"), limits.GET_ARTIFACT)
