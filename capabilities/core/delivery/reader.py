"""What determines a file's delivery in addition to the file itself: the receiving model, and the position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from capabilities.core.delivery.slots import Slots, ToolMedia
from capabilities.core.delivery.text_limit import TextLimit
from capabilities.core.message import FilePart, Role
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities


class ContentPolicy(StrEnum):
    """What may be tried for a file that does not fit. Policies can be combined. An empty set means `describe`.

    `describe` sends the file's metadata. `describer` has another model describe the file, and `question` also gives
    that model what the user asked about the file.
    """

    DESCRIBE = "describe"
    EXTRACT = "extract"
    CONVERT = "convert"
    NATIVE_ONLY = "native_only"
    DESCRIBER = "describer"
    QUESTION = "question"


FACTUAL_WORDS = ("describe", "extract", "convert", "extract+convert", "native_only")
"""Policies under which a delivery depends only on the file and its reader."""

POLICY_WORDS = (*FACTUAL_WORDS, "extract+convert+describer", "extract+convert+describer+question")
"""The combinations of policies, as they are written in files and in the API."""

DEFAULT_POLICY = "extract+convert"
"""The policy if neither the route, nor the service, nor the installation sets one."""


HTML_FORMS = ("words", "source")
"""What a model gets of a web page: its words with headings and links, or its source. The first is the default."""


def parse_policies(text: str | None) -> frozenset[ContentPolicy]:
    """Return the policies in text such as `describe` or `extract+convert`; raise ValueError if it is unknown."""
    return frozenset(ContentPolicy(name) for name in (text or "describe").replace(" ", "").split("+"))


def find_no_describer(_: FilePart) -> str:
    return ""


DEFAULT_TEXT_LIMIT = TextLimit()


@dataclass(frozen=True, slots=True)
class Reader:
    """The model that receives a file: what it reads, its slots, and what may be tried if a file does not fit.

    Longer text than `text_limit` is cut to its head and tail. `window` is the most tokens that the model reads, None if
    unknown. `model` is its name, by which the tokens of media are estimated. If the policies allow it, `describer_for`
    returns the model that describes a file, or "" if no model can. `tool_media` overrides the value of the slots.
    With `html_source`, a web page arrives as its source, although the policies would extract its words.
    """

    slots: Slots
    capabilities: Capabilities = TEXT_ONLY
    policies: frozenset[ContentPolicy] = frozenset()
    tool_media: ToolMedia | None = None
    text_limit: TextLimit = DEFAULT_TEXT_LIMIT
    html_source: bool = False
    window: int | None = None
    model: str = ""
    describer_for: Callable[[FilePart], str] = find_no_describer

    @property
    def media_from_tools(self) -> ToolMedia:
        return self.tool_media or self.slots.tool_media


@dataclass(frozen=True, slots=True)
class Position:
    """A file's position in the request, and the native files before it.

    `counts` and `sizes` (in bytes) have the result of `slots.slot_key` as keys. `request_bytes` is the size so far of
    the request that will be sent, `tokens` the estimate of what precedes the file (0 if the model's window is unknown).
    `total` is the number of images in the whole request, `message` the index of the file's message.
    """

    role: Role = Role.USER
    counts: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    request_bytes: int = 0
    tokens: int = 0
    total: int = 1
    message: int = 0
