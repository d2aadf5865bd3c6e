"""What a delivery decision depends on besides the file: the receiving model and the file's position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from capabilities.core.delivery.slots import Slots, ToolMedia
from capabilities.core.delivery.text_limit import TextLimit
from capabilities.core.message import FilePart, Role
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities


class ContentPolicy(StrEnum):
    """What may be sent instead of a file that cannot be sent natively. Policies can be combined.

    An empty set means `describe`, which sends only the file's metadata. `describer` makes another model describe the
    file, and `question` also passes the user's question about the file to that model.
    """

    DESCRIBE = "describe"
    EXTRACT = "extract"
    CONVERT = "convert"
    NATIVE_ONLY = "native_only"
    DESCRIBER = "describer"
    QUESTION = "question"


FACTUAL_WORDS = ("describe", "extract", "convert", "extract+convert", "native_only")
"""Policies that involve no other model. A file's delivery then depends only on the file and on the receiving model."""

POLICY_WORDS = (*FACTUAL_WORDS, "extract+convert+describer", "extract+convert+describer+question")
"""All permitted policy combinations, as written in configuration files and in the API."""

DEFAULT_POLICY = "extract+convert"
"""The policy used if neither the route nor the service nor the installation sets one."""


HTML_FORMS = ("words", "source")
"""Forms in which web pages can be delivered: text with headings and links (the default), or HTML source."""


def parse_policies(text: str | None) -> frozenset[ContentPolicy]:
    """Parse policies such as `describe` or `extract+convert`. Raise ValueError for an unknown policy."""
    return frozenset(ContentPolicy(name) for name in (text or "describe").replace(" ", "").split("+"))


def find_no_describer(_: FilePart) -> str:
    return ""


DEFAULT_TEXT_LIMIT = TextLimit()


@dataclass(frozen=True, slots=True)
class Reader:
    """The receiving model: what it can read, its slots, and what may be sent for files that do not fit.

    Text longer than `text_limit` is reduced to its head and tail. `window` is the model's maximum number of input
    tokens, or None if unknown. `model` is the model name, used to estimate the tokens of media. Under the policy
    `describer`, `describer_for` returns the model that describes a file, or "" if no model can. `tool_media`, if set,
    overrides the value in `slots`. With `html_source`, web pages are delivered as HTML source even if the policies
    would extract their text.
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
    """A file's position in the request, with totals for the content before it.

    `counts` and `sizes` (in bytes) are totals of the natively sent files before it. Their keys are from
    `slots.slot_key`. `request_bytes` is the size of the request so far. `tokens` is the estimate for the content before
    the file, or 0 if the model's window is unknown. `total` is the number of images in the entire request, and
    `message` the index of the file's message.
    """

    role: Role = Role.USER
    counts: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    request_bytes: int = 0
    tokens: int = 0
    total: int = 1
    message: int = 0
