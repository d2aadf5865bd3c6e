"""Kinds of content, text types, capabilities and directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Kind(StrEnum):
    """A file's kind, as a model sees it (ABR-1.2). Every model can read `text`."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    DOCUMENT = "document"
    OTHER = "other"


class Direction(StrEnum):
    """The direction of a capability (MCR-1.2). `both` means input and output."""

    INPUT = "input"
    OUTPUT = "output"
    BOTH = "both"


Cell = tuple[str, str]
"""A cell of the capability matrix, which is a side and a capability, such as `("input", "vision")`."""


class Source(StrEnum):
    """The source of a capability's value. Earlier members take precedence. A contested capability counts as absent."""

    DECLARED = "declared"
    PROBED = "probed"
    CATALOGUE = "catalogue"
    CONTESTED = "contested"
    UNKNOWN = "unknown"


STANDARD_CAPABILITIES = ("text", "vision", "audio", "video", "file", "structured_output", "tool_calling")
"""The standard capabilities of MCR-1.3, and `video`. Any other string that is not empty is a custom capability."""

CAPABILITY_OF_KIND: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.TEXT: "text",
        Kind.IMAGE: "vision",
        Kind.AUDIO: "audio",
        Kind.VIDEO: "video",
        Kind.DOCUMENT: "file",
        Kind.OTHER: "file",
    }
)
"""Maps each kind of content to the capability that a model needs to read it."""

TEXT_TYPES = frozenset(
    {
        "application/ecmascript",
        "application/graphql",
        "application/json5",
        "application/sql",
        "application/toml",
        "application/typescript",
        "application/x-httpd-php",
        "application/x-ndjson",
        "application/x-perl",
        "application/x-python-code",
        "application/x-ruby",
        "application/x-sh",
        "application/x-subrip",
        "application/x-tex",
        "application/x-www-form-urlencoded",
        "application/xhtml",
        "application/yaml",
        "application/jsonl",
        "application/x-pem-file",
        "application/postscript",
        "message/rfc822",
        "multipart/related",
        "application/mbox",
        "application/vnd.apple.mpegurl",
        "application/vnd.mif",
        "application/x-research-info-systems",
    }
)
"""MIME types of text whose names neither begin with `text/` nor end in `+json`, `+xml` or `+yaml`."""


def is_text_mime(mime: str) -> bool:
    """Return whether a model can read this normalised MIME type directly as text, such as SVG and XML but not RTF."""
    return mime.startswith("text/") or mime in TEXT_TYPES or mime.endswith(("+json", "+xml", "+yaml", "/json", "/xml"))


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A model's input and output capabilities, in order of declaration."""

    input: tuple[str, ...] = ("text",)
    output: tuple[str, ...] = ("text",)

    def has(self, capability: str, direction: Direction = Direction.INPUT) -> bool:
        """Return whether the capability is present. `both` means input and output (MCR-P7)."""
        sides = {
            Direction.INPUT: (self.input,),
            Direction.OUTPUT: (self.output,),
            Direction.BOTH: (self.input, self.output),
        }
        return all(capability in side for side in sides[direction])


TEXT_ONLY = Capabilities()
"""The capabilities of a service that declares none (MCR-1.5)."""
