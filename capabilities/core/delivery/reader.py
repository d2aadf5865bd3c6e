"""Who receives a file and where in the request it stands: the two values a delivery is decided from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from capabilities.core.delivery.slots import Slots, ToolMedia
from capabilities.core.message import FilePart, Role
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities


class ContentPolicy(StrEnum):
    """What may be tried for a file that does not fit; several may be combined, none means `describe`: by its facts.

    `describer` has another model describe it, `question` tells that model what the user asked with the file.
    """

    DESCRIBE = "describe"
    EXTRACT = "extract"
    CONVERT = "convert"
    NATIVE_ONLY = "native_only"
    DESCRIBER = "describer"
    QUESTION = "question"


FACTUAL_WORDS = ("describe", "extract", "convert", "extract+convert", "native_only")
"""Those with which what becomes of a file depends on the file and its reader alone."""

POLICY_WORDS = (*FACTUAL_WORDS, "extract+convert+describer", "extract+convert+describer+question")
"""How policies are written in files and the API."""

DEFAULT_POLICY = "extract+convert"
"""What holds on the data plane where neither the route, nor the service, nor the installation says (decision 15)."""


def policies_of(text: str | None) -> frozenset[ContentPolicy]:
    """The policies in a word such as `describe` or `extract+convert`; ValueError names a word that is none."""
    return frozenset(ContentPolicy(word) for word in (text or "describe").replace(" ", "").split("+"))


def find_no_describer(_: FilePart) -> str:
    """No model: where none is configured for it."""
    return ""


@dataclass(frozen=True, slots=True)
class Reader:
    """Who receives: what the model reads, where its protocol puts it, and what may be tried when it does not fit.

    Text files longer than `head_chars + tail_chars` characters are cut to their head and tail (decision 4).
    `describer_for` names the model that describes a file where the policies have that tried, empty where none can.
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
        """What becomes of media in tool results: the reader's own word, else the slots'."""
        return self.tool_media or self.slots.tool_media


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the request a file stands, and what went natively before it.

    `counts` and `sizes` (bytes) are by `slots.slot_key` of the kind; `request_bytes` is what the request holds so
    far, on the wire; `total` is how many images the whole request holds, `message` the index of its message.
    """

    role: Role = Role.USER
    counts: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    request_bytes: int = 0
    total: int = 1
    message: int = 0
