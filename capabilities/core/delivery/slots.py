"""Slots: which content a protocol takes, in which part of a request, and how much of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from capabilities.core.vocabulary import Kind


class ToolMedia(StrEnum):
    """How media in a tool result is sent: in place, in a user message after it, or as a description."""

    NATIVE = "native"
    HOIST = "hoist"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Slot:
    """One kind of part for media in a request. None in a limit means that none is known.

    Any one of `capabilities` opens the slot. `mime_types` None takes every type, `tool_mime_types` None the same ones
    inside tool results. Bytes are those of the file before base64: `max_bytes` for one file, `max_total_bytes` for all
    of this slot. Sides are in pixels. More than `crowd_count` files in a request lower the limit to `crowd_max_side`.
    `source` and `checked_on` say where the numbers are from.
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
        """Return the most pixels per side in a request with `total` files of this kind."""
        # Anthropic: 8,000 pixels a side, but 2,000 in a request with more than 20 images.
        crowded = self.crowd_count is not None and total > self.crowd_count
        return self.crowd_max_side if crowded and self.crowd_max_side is not None else self.max_side


@dataclass(frozen=True, slots=True)
class Slots:
    """All slots of a service by kind, the bytes of a whole request, and how media from tools is sent."""

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
"""The names of slots in JSON, and the kinds of each."""


def slot_key(kind: Kind) -> str:
    """Return the name of a kind's slot in JSON and in headers: `file` for documents and others."""
    return next(key for key, kinds in SLOT_KINDS.items() if kind in kinds)
