"""The canonical message: a caller's request before it is adapted to a candidate model.

The canonical message never changes. For each candidate, `adaptation.adapt` derives a message in which a `NativePart` or
a `TextPart` replaces every `FilePart`. The candidate's protocol encodes the derived message.
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
    """The author of a message. OpenAI's role `developer` is read as `system`."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class UnreadableError(Exception):
    """A file's bytes are unavailable. `reason` is `artifact_missing`, `artifact_corrupt` or `failed`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@value_class
class Blob:
    """Bytes that are read only when they are sent. `size` is in bytes, and `blocks()` reads them from the start.

    `blocks` is called again for each attempt. It raises `UnreadableError` if the bytes are missing or corrupt. A remote
    blob is read from another machine, so it must not be read on an event loop.
    """

    size: int
    blocks: Callable[[], Iterator[bytes]] = field(compare=False, repr=False)
    is_remote: bool = field(default=False, compare=False)


def make_blob(data: bytes) -> Blob:
    return Blob(len(data), lambda: iter((data,)))


@value_class
class Text:
    """The text of a file. `source` is the file's encoding or format, such as `utf-8`, `gb18030`, `pdf` or `docx`.

    `share` is the fraction of the file's text that is in `text`, or None if unknown. Unless `share` is 1, a `note`
    explains what is missing. `invalid_bytes` is the number of bytes that could not be decoded and were replaced by
    U+FFFD.
    """

    text: str
    source: str
    note: str = ""
    share: float | None = 1.0
    invalid_bytes: int = 0


@value_class
class Converted:
    """A converted file, such as a PNG made from a BMP: its bytes, its type and, for an image, its size in pixels.

    `original_pixels` is the number of pixels that the decoder produced. If the file itself defines a crop, the cropped
    area does not count as a loss. `frames` is the number of pages or frames in the original file. Only the first one
    was converted.
    """

    blob: Blob
    mime_type: str
    width: int | None = None
    height: int | None = None
    original_pixels: int | None = None
    frames: int = 1


@value_class
class PageImages:
    """Images of a document's pages or an animation's frames. The keys are their numbers, from 1.

    `total` counts all pages or frames.
    """

    images: Mapping[int, Converted]
    total: int


@value_class
class Inspection:
    """The result of opening a file: its duration in seconds, or None if unknown.

    `locked` means that the file needs a password, `damaged` that it cannot be opened.
    """

    seconds: float | None = None
    locked: bool = False
    damaged: bool = False


@value_class
class ConvertTo:
    """What a converted image must satisfy: the allowed types, the maximum bytes, and the maximum pixels per side."""

    mime_types: tuple[str, ...]
    max_bytes: int | None = None
    max_side: int | None = None


class Content(Protocol):
    """Reads a file's content. Every method may raise `UnreadableError`."""

    def blob(self) -> Blob: ...

    def text(self) -> Text | None:
        """Return the file's text, decoded or extracted, or None if there is none."""

    def convert(self, target: ConvertTo) -> Converted | None:
        """Return an image that satisfies `target`, or None if it cannot be converted."""


@runtime_checkable
class Rendered(Protocol):
    """Content in a markup language, such as HTML, that can be rendered as text."""

    def render(self) -> Text | None:
        """Return a web page's text without markup, or None if there is none."""


@runtime_checkable
class Drawable(Protocol):
    """Content whose pages or frames can be drawn as images."""

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        """Return images of the first pages or of evenly spaced frames, or None if there are none.

        There are at most `count` images, and each satisfies `target`.
        """


@runtime_checkable
class Inspectable(Protocol):
    """Content that can be inspected before it is sent to a model."""

    def inspect(self) -> Inspection: ...


@value_class
class CacheBreakpoint:
    """The end of a prompt prefix that the provider should cache. `path` is its position in the caller's request.

    `seconds` is the cache duration (None for the provider's default). Depending on the candidate model, the breakpoint
    is sent as Anthropic's `cache_control` or OpenAI's `prompt_cache_breakpoint`.
    """

    seconds: int | None = None
    path: str = ""


@value_class
class TextPart:
    """Text in a message. `cache` is set if the provider should cache the prompt prefix that ends after this text."""

    text: str
    cache: CacheBreakpoint | None = None


@value_class
class FilePart:
    """A file in a message: its known properties, and `content` to read it (None for a remote URL).

    `size` is in bytes, `seconds` is the duration of audio or video, `width` and `height` are in pixels. They are None
    if unknown. `unreadable` is set if the bytes are known to be missing or corrupt. `introduced` means that a line with
    the file's name is sent before the file, as for a file in a tool result. `detail` is OpenAI's level of detail for
    images.
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
    introduced: bool = False
    detail: str | None = None
    content: Content | None = field(default=None, compare=False, repr=False)
    cache: CacheBreakpoint | None = None


@value_class
class NativePart:
    """A file in a form that one candidate model accepts: bytes or, if the protocol allows it, a URL.

    `kind` selects the protocol's field (image, audio, video, document). `mime_type` is the type of the bytes. `width`
    and `height` are the pixels of an image that was converted or drawn for this candidate.
    """

    kind: Kind
    mime_type: str
    blob: Blob | None = None
    url: str | None = None
    filename: str | None = None
    detail: str | None = None
    cache: CacheBreakpoint | None = None
    width: int | None = None
    height: int | None = None


Part = TextPart | FilePart | NativePart


@value_class
class ToolCall:
    """A model's call to a tool. `arguments` is JSON as the model wrote it, or any text for a `custom` tool.

    `signature` is an opaque proof that some protocols require in later requests (Gemini's thoughtSignature). `origin`
    identifies the model that signed it, as in `ReasoningBlock`, and is empty if unknown. `caller` identifies the
    program in Anthropic's API that made the call, or is None if the model itself made it.
    """

    id: str
    name: str
    arguments: str
    signature: str | None = None
    custom: bool = False
    origin: str = ""
    caller: Mapping[str, Any] | None = field(default=None, hash=False)

    def signature_for(self, origin: str) -> str | None:
        # A model rejects another model's signature.
        return self.signature if self.origin in ("", origin) else None


@value_class
class VendorItem:
    """A tool, field, block or item that only one protocol can express, as the caller or the model wrote it.

    `name` is its name in a provider's `vendorTools`, and `path` is its position in the request. `offset`, `calls` and
    `thoughts` are its position in a turn: the number of characters, tool calls and reasoning blocks before it. `origin`
    identifies the model that signed it (only in Gemini's API), as in `ReasoningBlock`.
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
        """Return how many characters of the turn's text this item repeats.

        An item for text with citations repeats that text. Any other item repeats none.
        """
        return len(self.value["text"]) if self.name == CITATIONS and self.value.get("type") == "text" else 0


CITATIONS = "citations"
METADATA = "metadata"
"""The `VendorItem.name` of fields that describe an entire answer and are not part of its content."""


@value_class
class Message:
    """One turn of a conversation.

    `tool_call_id` is the call that a `tool` message answers, and `is_error` means that the tool failed. `reasoning` is
    a model's reasoning as readable text. `thoughts` are the reasoning blocks that must be sent back to the model that
    produced them.
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
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))


def interleave(
    thoughts: Sequence[ReasoningBlock], vendor: Sequence[VendorItem], origin: str | None = None
) -> list[ReasoningBlock | VendorItem]:
    """Return a turn's reasoning blocks (all, or only those of `origin`) and vendor items, in their original order."""
    if not vendor:
        return [thought for thought in thoughts if origin in (None, thought.origin)]
    # Sort by position in the turn. A vendor item precedes reasoning at the same position.
    blocks: list[tuple[tuple[int, ...], ReasoningBlock | VendorItem]] = [
        ((thought.offset, thought.calls, at, 1), thought)
        for at, thought in enumerate(thoughts)
        if origin in (None, thought.origin)
    ]
    blocks += [((item.offset, item.calls, item.thoughts, 0), item) for item in vendor]
    return [block for _, block in sorted(blocks, key=lambda pair: pair[0])]


def find_opening_system(messages: Sequence[Message]) -> int | None:
    """Return the index of the first system message, or None if none precedes the model's first answer."""
    # Messages before the first answer never change, so text added to this message is the same in every later turn.
    for at, message in enumerate(messages):
        if message.role in (Role.SYSTEM, Role.ASSISTANT):
            return at if message.role is Role.SYSTEM else None
    return None


@value_class
class Tool:
    """A function that the model may call. `parameters` is its JSON Schema.

    `custom` is set only for OpenAI's custom tools, whose input is free text. It specifies the format of the input, or
    is empty if any text is allowed.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    strict: bool | None = None
    custom: Mapping[str, Any] | None = None
    cache: CacheBreakpoint | None = None


@value_class
class ChatRequest:
    """A caller's request, independent of the model that will answer.

    `tool_choice` is `none`, `auto` or `required`, unless `tool_name` names a tool. `allowed_tools` are the tools that
    the model may choose from (all if empty). `response_format` is OpenAI's object (`json_object` or `json_schema`) or
    None. `extra` has OpenAI's other parameters (seed, penalties, reasoning_effort …), unchanged. `inner` lists nested
    fields that not every protocol has, e.g. `messages[2].content[0].cache_control`. `vendor` contains the tools, fields
    and beta flags that exist only in one vendor's API.
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
        return bool(self.tools) and any(tool.name == name for tool in self.tools)

    @property
    def has_files(self) -> bool:
        for message in self.messages:
            for part in message.parts:
                if isinstance(part, FilePart):
                    return True
        return False
