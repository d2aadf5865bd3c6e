"""The canonical message: what a caller said, before it is adapted to any candidate.

A request keeps its canonical message untouched; for each candidate `adaptation.adapt` derives one in which every
`FilePart` has become a `NativePart` or a `TextPart`, and that candidate's protocol writes it down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from capabilities.core.thoughts import ReasoningBlock
from capabilities.core.values import value_class
from capabilities.core.vocabulary import Kind


class Role(StrEnum):
    """Who speaks; OpenAI's `developer` is read as `system`."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class UnreadableError(Exception):
    """The bytes behind a file cannot be had; `reason` is `artifact_missing`, `artifact_corrupt` or `failed`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@value_class
class Blob:
    """Bytes that are read only when they are sent: `size` in bytes, `blocks()` starts a fresh pass over them.

    `blocks` may be called once per try; it raises `UnreadableError` when the bytes are missing or corrupt. Those of a
    remote blob come from another machine, so that no event loop waits for them.
    """

    size: int
    blocks: Callable[[], Iterator[bytes]] = field(compare=False, repr=False)
    is_remote: bool = field(default=False, compare=False)


def blob_of(data: bytes) -> Blob:
    """A blob over bytes that are in memory already."""
    return Blob(len(data), lambda: iter((data,)))


@value_class
class Text:
    """Readable text of a file: `source` says how it was had, e.g. `utf-8`, `gb18030`, `pdf`, `docx`.

    `share` is how much of the file's words it is, 1 for all; less, or None where nobody knows, comes with a `note`.
    """

    text: str
    source: str
    note: str = ""
    share: float | None = 1.0


@value_class
class Converted:
    """A file in another form, e.g. a BMP as PNG: its bytes, type and size in pixels where it is an image.

    `original_pixels` is how many its decoder saw: a crop that the file asks for is no loss.
    """

    blob: Blob
    mime_type: str
    width: int | None = None
    height: int | None = None
    original_pixels: int | None = None


@value_class
class PageImages:
    """Pages of a document as images: page number (from 1) → its image, and how many pages there are in all."""

    images: Mapping[int, Converted]
    total: int


@value_class
class Inspection:
    """What only a look into a file tells: how long it plays, None where unknown, and whether it wants a password."""

    seconds: float | None = None
    locked: bool = False


@value_class
class ConvertTo:
    """What a converted image must satisfy: one of these types, at most so many bytes and pixels a side."""

    mime_types: tuple[str, ...]
    max_bytes: int | None = None
    max_side: int | None = None


class Content(Protocol):
    """Ways to a file's content, filled by whoever holds the bytes; every method may raise `UnreadableError`."""

    def blob(self) -> Blob:
        """The bytes as stored."""

    def text(self) -> Text | None:
        """The file's text: decoded for a text file, extracted for a document; None when there is none."""

    def convert(self, target: ConvertTo) -> Converted | None:
        """The image in a form that satisfies `target`; None when no decoder is there or it fails."""


@runtime_checkable
class Rendered(Protocol):
    """Content that knows what a reader would see of text that is marked up, beside the text as it is written."""

    def render(self) -> Text | None:
        """The words of a web page without its markup; None when there are none."""


@runtime_checkable
class Drawable(Protocol):
    """Content whose pages can be drawn, beside the text that may be in it."""

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        """The first pages, at most `count`, each in a form that satisfies `target`; None when none can be had."""


@runtime_checkable
class Inspectable(Protocol):
    """Content that can be looked into before anybody is asked about it."""

    def inspect(self) -> Inspection:
        """What can be told of it."""


@value_class
class CacheMark:
    """The end of a prefix worth keeping: how long in seconds (None as the vendor has it), and where it stood.

    Written as Anthropic's `cache_control` or OpenAI's `prompt_cache_breakpoint`, whatever the candidate speaks.
    """

    seconds: int | None = None
    path: str = ""


@value_class
class TextPart:
    """Words; `cache` marks the end of a prefix."""

    text: str
    cache: CacheMark | None = None


@value_class
class FilePart:
    """A file inside a message: what is known of it, and `content`, the way to its bytes (None for a remote URL).

    `size` in bytes, `seconds` of audio or video, `width`/`height` in pixels; None where unknown. `unreadable` is set
    when it is known beforehand that the bytes are missing or corrupt. `led` marks media that came in as a
    ContentRouteResult and is introduced by a line naming it (CONTRACT §6). `detail` is how closely OpenAI looks at it.
    """

    kind: Kind
    mime_type: str = "application/octet-stream"
    filename: str | None = None
    size: int | None = None
    artifact_id: str | None = None
    url: str | None = None
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    seconds: float | None = None
    unreadable: str | None = None
    led: bool = False
    detail: str | None = None
    content: Content | None = field(default=None, compare=False, repr=False)
    cache: CacheMark | None = None


@value_class
class NativePart:
    """A file as one candidate receives it natively: bytes or, where the protocol takes it, a URL.

    `kind` picks the protocol's slot (image, audio, video, document); `mime_type` is what those bytes are, `width` and
    `height` the pixels of what was converted or drawn for it.
    """

    kind: Kind
    mime_type: str
    blob: Blob | None = None
    url: str | None = None
    filename: str | None = None
    detail: str | None = None
    cache: CacheMark | None = None
    width: int | None = None
    height: int | None = None


Part = TextPart | FilePart | NativePart


@value_class
class ToolCall:
    """A model's wish to call a tool; `arguments` is the JSON text as the model wrote it, of a `custom` tool any text.

    `signature` is the opaque proof some protocols want back in history (Gemini's thoughtSignature), and `origin` whose
    it is, as in `ReasoningBlock`; empty where unknown. `caller` is the program at Anthropic that makes the call, None
    where the model makes it itself.
    """

    id: str
    name: str
    arguments: str
    signature: str | None = None
    custom: bool = False
    origin: str = ""
    caller: Mapping[str, Any] | None = field(default=None, hash=False)

    def signature_for(self, origin: str) -> str | None:
        """The proof, where it is that origin's or nobody knows whose it is."""
        return self.signature if self.origin in ("", origin) else None


@value_class
class VendorItem:
    """What only one protocol has words for, as its caller or its model wrote it: a tool, a field, a block, an item.

    `name` is its word in a provider's `vendorTools`, `path` its place in the request. In a turn it is behind so many
    characters, tool calls and thoughts. `origin` is whose signature a part of Gemini's has, as in `Thought`.
    """

    protocol: str
    name: str
    value: Any = field(hash=False)
    path: str = ""
    offset: int = 0
    calls: int = 0
    thoughts: int = 0
    origin: str = field(default="", kw_only=True)

    @property
    def covered(self) -> int:
        """How many characters of the turn it repeats, as a text with its vendor's citations does."""
        return len(self.value["text"]) if self.name == CITATIONS and self.value.get("type") == "text" else 0


CITATIONS = "citations"
METADATA = "metadata"
"""The `name` of what a vendor says of a whole answer in fields of its own; no content of it."""


@value_class
class Message:
    """One turn; `tool_call_id` names the call that a `tool` message answers, `is_error` says that the tool failed.

    `reasoning` are the words of an assistant's thoughts for whoever reads any, `thoughts` what their origin wants back.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    reasoning: str | None = None
    thoughts: tuple[ReasoningBlock, ...] = ()
    is_error: bool = False
    vendor: tuple[VendorItem, ...] = ()

    @property
    def text(self) -> str:
        """All words of the message, one part a line."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))


def weave(
    thoughts: Sequence[ReasoningBlock], vendor: Sequence[VendorItem], origin: str | None = None
) -> list[ReasoningBlock | VendorItem]:
    """Return a turn's thoughts, of that origin or of all, and its vendor's own blocks, in their order."""
    if not vendor:
        return [each for each in thoughts if origin in (None, each.origin)]
    placed: list[tuple[tuple[int, ...], ReasoningBlock | VendorItem]] = [
        ((each.offset, each.calls, at, 1), each) for at, each in enumerate(thoughts) if origin in (None, each.origin)
    ]
    placed += [((each.offset, each.calls, each.thoughts, 0), each) for each in vendor]
    return [each for _, each in sorted(placed, key=lambda pair: pair[0])]


def find_opening_system(messages: Sequence[Message]) -> int | None:
    """The place of the first system message, where it came before any answer; else None.

    What stands before the first answer stands there in every later turn, so words that lead it stay where they are.
    """
    for at, message in enumerate(messages):
        if message.role in (Role.SYSTEM, Role.ASSISTANT):
            return at if message.role is Role.SYSTEM else None
    return None


@value_class
class Tool:
    """A function the model may call; `parameters` is its JSON Schema.

    `custom` is set for OpenAI's tools of free text: the format of their input, empty for any text.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    strict: bool | None = None
    custom: Mapping[str, Any] | None = None
    cache: CacheMark | None = None


@value_class
class ChatRequest:
    """What a caller asks for, independent of who will answer.

    `tool_choice` is `none`, `auto`, `required` or a tool's name in `tool_name`; `allowed_tools` are those it is
    limited to, empty for all. `response_format` is OpenAI's object (`json_object` or `json_schema`) or None. `extra`
    holds OpenAI parameters without a field of their own (seed, penalties, reasoning_effort …), as they came; `inner`
    the places below the top that not every protocol has, e.g. `messages[2].content[0].cache_control`; `vendor` are
    tools, fields and betas of one vendor's API.
    """

    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    tool_choice: str | None = None
    tool_name: str | None = None
    parallel_tool_calls: bool | None = None
    response_format: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    vendor: tuple[VendorItem, ...] = ()

    def has_tool(self, name: str) -> bool:
        """Whether the caller offers the model a tool of that name."""
        return bool(self.tools) and any(tool.name == name for tool in self.tools)

    @property
    def has_files(self) -> bool:
        """Whether a file stands in it, so that its form depends on who reads it."""
        for message in self.messages:
            for part in message.parts:
                if isinstance(part, FilePart):
                    return True
        return False
