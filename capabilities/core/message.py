"""The canonical message: a caller's request before it is adapted to any candidate.

A request keeps its canonical message unchanged. For each candidate, `adaptation.adapt` derives one in which every
`FilePart` has become a `NativePart` or a `TextPart`, and the candidate's protocol encodes it.
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
    """The author of a message. OpenAI's `developer` is read as `system`."""

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
    """Bytes that are read only when they are sent: `size` in bytes, `blocks()` starts a fresh pass over them.

    `blocks` may be called once per attempt. It raises `UnreadableError` when the bytes are missing or corrupt. A remote
    blob is read from another machine, so an event loop must not wait for it.
    """

    size: int
    blocks: Callable[[], Iterator[bytes]] = field(compare=False, repr=False)
    is_remote: bool = field(default=False, compare=False)


def blob_of(data: bytes) -> Blob:
    return Blob(len(data), lambda: iter((data,)))


@value_class
class Text:
    """Text of a file. `source` says how it was obtained, e.g. `utf-8`, `gb18030`, `pdf`, `docx`.

    `share` is the part of the file's words it contains: 1 for all, None if unknown. Anything but 1 has a `note`.
    """

    text: str
    source: str
    note: str = ""
    share: float | None = 1.0


@value_class
class Converted:
    """A file in another form, e.g. a BMP as PNG: its bytes, type, and size in pixels if it is an image.

    `original_pixels` is how many the decoder saw: a crop that the file itself asks for is not a loss.
    """

    blob: Blob
    mime_type: str
    width: int | None = None
    height: int | None = None
    original_pixels: int | None = None


@value_class
class PageImages:
    """Pages of a document as images by page number (from 1), and the document's number of pages."""

    images: Mapping[int, Converted]
    total: int


@value_class
class Inspection:
    """Facts found only inside a file: its playing time (None if unknown), and whether it needs a password."""

    seconds: float | None = None
    locked: bool = False


@value_class
class ConvertTo:
    """What a converted image must satisfy: one of these types, at most so many bytes, and pixels per side."""

    mime_types: tuple[str, ...]
    max_bytes: int | None = None
    max_side: int | None = None


class Content(Protocol):
    """Access to a file's content. Every method may raise `UnreadableError`."""

    def blob(self) -> Blob: ...

    def text(self) -> Text | None:
        """Return the file's text, decoded or extracted, or None if there is none."""

    def convert(self, target: ConvertTo) -> Converted | None:
        """Return the image in a form that satisfies `target`, or None if it cannot be converted."""


@runtime_checkable
class Rendered(Protocol):
    """Content with marked-up text that can also be rendered."""

    def render(self) -> Text | None:
        """Return the words of a web page without its markup, or None if there are none."""


@runtime_checkable
class Drawable(Protocol):
    """Content whose pages can be drawn."""

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        """Return at most `count` first pages, each satisfying `target`, or None if none can be drawn."""


@runtime_checkable
class Inspectable(Protocol):
    """Content that can be inspected before a model is asked about it."""

    def inspect(self) -> Inspection: ...


@value_class
class CacheMark:
    """The end of a prefix to cache: for how many seconds (None: the vendor's default), and where it was set.

    It is written as Anthropic's `cache_control` or OpenAI's `prompt_cache_breakpoint`, depending on the candidate.
    """

    seconds: int | None = None
    path: str = ""


@value_class
class TextPart:
    """Words. `cache` marks the end of a prefix."""

    text: str
    cache: CacheMark | None = None


@value_class
class FilePart:
    """A file inside a message: what is known of it, and `content` to read its bytes (None for a remote URL).

    `size` in bytes, `seconds` of audio or video, `width`/`height` in pixels; None if unknown. `unreadable` is set if
    the bytes are known to be missing or corrupt. `led` marks media that arrived as a ContentRouteResult, which a line
    with its name introduces. `detail` is OpenAI's level of detail for images.
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
    """A file as one candidate receives it natively: bytes or, if the protocol takes it, a URL.

    `kind` picks the protocol's slot (image, audio, video, document). `mime_type` is what those bytes are, `width` and
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
    """A model's call of a tool. `arguments` is JSON as the model wrote it, or any text for a `custom` tool.

    `signature` is the opaque proof that some protocols require back in the history (Gemini's thoughtSignature), and
    `origin` the model that signed it, as in `ReasoningBlock`; empty if unknown. `caller` is the program at Anthropic
    that makes the call, None where the model makes it itself.
    """

    id: str
    name: str
    arguments: str
    signature: str | None = None
    custom: bool = False
    origin: str = ""
    caller: Mapping[str, Any] | None = field(default=None, hash=False)

    def signature_for(self, origin: str) -> str | None:
        """Return the signature if it is of this origin or of unknown origin."""
        # A signature of another model would be rejected.
        return self.signature if self.origin in ("", origin) else None


@value_class
class VendorItem:
    """Something only one protocol can express, as its caller or model wrote it: a tool, field, block or item.

    `name` is its word in a provider's `vendorTools`, `path` its place in the request. In a turn it follows `offset`
    characters, `calls` tool calls and `thoughts` blocks of reasoning. `origin` is the model that signed a part of
    Gemini's, as in `ReasoningBlock`.
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
        """Return how many characters of the turn it repeats, as a text with its vendor's citations does."""
        return len(self.value["text"]) if self.name == CITATIONS and self.value.get("type") == "text" else 0


CITATIONS = "citations"
METADATA = "metadata"
"""The `name` for a vendor's own fields about a whole answer. They are not content."""


@value_class
class Message:
    """One turn. `tool_call_id` is the call that a `tool` message answers, `is_error` says that the tool failed.

    `reasoning` is an assistant's reasoning as readable text, `thoughts` the blocks that their origin requires back.
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


def weave(
    thoughts: Sequence[ReasoningBlock], vendor: Sequence[VendorItem], origin: str | None = None
) -> list[ReasoningBlock | VendorItem]:
    """Return a turn's reasoning blocks, of one origin or of all, and its vendor items, in their order."""
    if not vendor:
        return [thought for thought in thoughts if origin in (None, thought.origin)]
    # Sorted by place in the turn. At the same place a vendor's block goes before the reasoning after it.
    blocks: list[tuple[tuple[int, ...], ReasoningBlock | VendorItem]] = [
        ((thought.offset, thought.calls, at, 1), thought)
        for at, thought in enumerate(thoughts)
        if origin in (None, thought.origin)
    ]
    blocks += [((item.offset, item.calls, item.thoughts, 0), item) for item in vendor]
    return [block for _, block in sorted(blocks, key=lambda pair: pair[0])]


def find_opening_system(messages: Sequence[Message]) -> int | None:
    """Return the index of the first system message if it precedes any answer, else None."""
    # Text added there stays in every later turn, because the messages before the first answer never change.
    for at, message in enumerate(messages):
        if message.role in (Role.SYSTEM, Role.ASSISTANT):
            return at if message.role is Role.SYSTEM else None
    return None


@value_class
class Tool:
    """A function the model may call. `parameters` is its JSON Schema.

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
    """A caller's request, independent of the model that will answer.

    `tool_choice` is `none`, `auto`, `required` or a tool's name in `tool_name`. `allowed_tools` are those it is limited
    to, empty for all. `response_format` is OpenAI's object (`json_object` or `json_schema`) or None. `extra` holds
    OpenAI parameters without a field of their own (seed, penalties, reasoning_effort …), unchanged; `inner` the paths
    below the top level that not every protocol has, e.g. `messages[2].content[0].cache_control`; `vendor` the tools,
    fields and betas of one vendor's API.
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
