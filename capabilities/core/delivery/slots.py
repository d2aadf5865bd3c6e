"""Slots: which media a protocol accepts, in which request parts, and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.vocabulary import Kind


class ToolMedia(StrEnum):
    """How media in a tool result is sent: in the result, in a user message after it, or as a description in text."""

    NATIVE = "native"
    HOIST = "hoist"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Slot:
    """A type of request part that contains media. A limit of None means that the limit is unknown.

    A model needs only one of `capabilities` to use the slot. `mime_types` is None if every type is accepted, and
    `tool_mime_types` is None if tool results accept the same types. Sizes are in bytes before base64: `max_bytes` for
    one file, `max_total_bytes` for all files in this slot. `max_side` is in pixels, and `crowd_max_side` replaces it if
    a request has more than `crowd_count` images. `source` and `checked_on` state the source of the numbers, and when
    they were checked.
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
        accepted = self.tool_mime_types if in_tool_result and self.tool_mime_types is not None else self.mime_types
        return accepted is None or mime_type in accepted

    def side(self, total: int) -> int | None:
        """Return the maximum length of an image side in pixels, for a request with `total` images."""
        # Anthropic allows 8,000 pixels per side, but only 2,000 in a request with more than 20 images.
        crowded = self.crowd_count is not None and total > self.crowd_count
        return self.crowd_max_side if crowded and self.crowd_max_side is not None else self.max_side


@dataclass(frozen=True, slots=True)
class Slots:
    """A service's slots for each kind of file, the maximum size of a request, and how media in tool results is sent."""

    name: str = ""
    by_kind: Mapping[Kind, Slot] = field(default_factory=dict)
    max_request_bytes: int | None = None
    tool_media: ToolMedia = ToolMedia.TEXT

    def get(self, kind: Kind) -> Slot | None:
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
"""Maps each slot's name in JSON to the kinds of files that it accepts."""


def slot_key(kind: Kind) -> str:
    """Return the slot name for a kind of file, as used in JSON and headers: `file` for documents and other kinds."""
    return next(key for key, kinds in SLOT_KINDS.items() if kind in kinds)
