"""The two values a delivery is decided from: who receives the file, and its position in the request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from capabilities.core.delivery.slots import Slots, ToolMedia
from capabilities.core.message import FilePart, Role
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities


class ContentPolicy(StrEnum):
    """What may be tried for a file that does not fit. Several may be combined, none means `describe`.

    `describe` sends the file's facts. `describer` has another model describe it, and `question` gives that model what
    the user asked with the file.
    """

    DESCRIBE = "describe"
    EXTRACT = "extract"
    CONVERT = "convert"
    NATIVE_ONLY = "native_only"
    DESCRIBER = "describer"
    QUESTION = "question"


FACTUAL_WORDS = ("describe", "extract", "convert", "extract+convert", "native_only")
"""Policies under which a delivery depends on the file and its reader alone."""

POLICY_WORDS = (*FACTUAL_WORDS, "extract+convert+describer", "extract+convert+describer+question")
"""How policies are written in files and the API."""

DEFAULT_POLICY = "extract+convert"
"""The policy for requests where neither the route, nor the service, nor the installation sets one."""


def policies_of(text: str | None) -> frozenset[ContentPolicy]:
    """Return the policies in a word such as `describe` or `extract+convert`; raise ValueError for another."""
    return frozenset(ContentPolicy(name) for name in (text or "describe").replace(" ", "").split("+"))


def find_no_describer(_: FilePart) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Reader:
    """The receiving model: what it reads, its protocol's slots, and what may be tried if a file does not fit.

    Text files longer than `head_chars + tail_chars` characters are cut to their head and tail. `describer_for` returns
    the model that describes a file if the policies allow it, "" if none can. `tool_media` overrides the slots' value.
    """

    slots: Slots
    capabilities: Capabilities = TEXT_ONLY
    policies: frozenset[ContentPolicy] = frozenset()
    tool_media: ToolMedia | None = None
    head_chars: int = 40_000
    tail_chars: int = 4_000
    describer_for: Callable[[FilePart], str] = find_no_describer

    @property
    def media_from_tools(self) -> ToolMedia:
        return self.tool_media or self.slots.tool_media


@dataclass(frozen=True, slots=True)
class Position:
    """A file's position in the request, and what is native before it.

    `counts` and `sizes` (bytes) are by `slots.slot_key` of the kind. `request_bytes` is the size of the request so far,
    on the wire. `total` is the number of images in the whole request, `message` the index of the file's message.
    """

    role: Role = Role.USER
    counts: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    request_bytes: int = 0
    total: int = 1
    message: int = 0
