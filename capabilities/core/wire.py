"""What goes to a provider and what can come back: requests, answers, failures, stream events.

A protocol turns a derived `ChatRequest` into an `UpstreamRequest` and bytes back into `Answer | Failure` or events.
It never touches a socket; `routing_admin/upstream.py` does.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from capabilities.core.json_codec import write_json
from capabilities.core.message import Blob, ChatRequest, ToolCall, VendorItem
from capabilities.core.thoughts import ReasoningBlock, origin_of
from capabilities.core.values import value_class
from capabilities.core.vocabulary import Kind


class Fault(StrEnum):
    """What a call can come back with instead of an answer: the closed list that verdicts are a table over.

    The codes are those of the fault table in the documentation (docs/faults.md).
    """

    DNS_ERROR = "dns_error"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS_ERROR = "tls_error"
    TLS_CERT_ERROR = "tls_cert_error"
    RESET_BEFORE_HEADERS = "reset_before_headers"
    READ_TIMEOUT = "read_timeout"
    DEADLINE = "deadline"
    TRUNCATED_BODY = "truncated_body"
    SLOW_BODY = "slow_body"
    TOO_LARGE = "too_large"
    REDIRECT = "redirect"
    BAD_HTTP = "bad_http"
    BAD_CONTENT_TYPE = "bad_content_type"
    BAD_JSON = "bad_json"
    BAD_SHAPE = "bad_shape"
    EMPTY_CHOICES = "empty_choices"
    EMPTY_CONTENT = "empty_content"
    GENERATION_FAILED = "generation_failed"
    HTTP_400 = "http_400"
    CONTEXT_LENGTH = "http_400_context"
    CONTENT_POLICY = "http_400_content"
    UNSUPPORTED_PARAMETER = "unsupported_parameter"
    CAPABILITY_MISMATCH = "capability_mismatch"
    HTTP_401 = "http_401"
    HTTP_402 = "http_402"
    HTTP_403 = "http_403"
    HTTP_404 = "http_404"
    HTTP_408 = "http_408"
    HTTP_409 = "http_409"
    HTTP_413 = "http_413"
    HTTP_415 = "http_415"
    HTTP_422 = "http_422"
    HTTP_425 = "http_425"
    HTTP_429 = "http_429"
    HTTP_429_WAIT = "http_429_wait"
    HTTP_429_BAD_HEADER = "http_429_bad_header"
    HTTP_429_QUOTA = "http_429_quota"
    HTTP_4XX = "http_4xx"
    HTTP_500 = "http_500"
    HTTP_501 = "http_501"
    HTTP_502 = "http_502"
    HTTP_503 = "http_503"
    HTTP_504 = "http_504"
    HTTP_52X = "http_52x"
    HTTP_529 = "http_529"
    HTTP_5XX = "http_5xx"
    HTTP_OTHER = "http_other"
    TTFT_TIMEOUT = "ttft_timeout"
    STREAM_EMPTY = "stream_empty"
    STREAM_STALL = "stream_stall"
    STREAM_BROKEN = "stream_broken"
    STREAM_TRUNCATED = "stream_truncated"
    ORIGIN_REFUSED = "origin_refused"
    KEY_MISSING = "key_missing"
    FIRE_DRILL = "fire_drill"


@value_class
class Target:
    """Where one candidate's request goes: provider, endpoint, key, model, and the provider's ways.

    `endpoint` is the base URL, or the full call URL when its path ends in the protocol's call (REQUIREMENTS 9).
    `quirks` are the compatibility options of the provider; `extra_body` is merged into the payload last.
    """

    provider: str
    endpoint: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    quirks: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int | None = None

    def origin(self, protocol: str) -> str:
        """The mark of what this model thinks, asked through that protocol."""
        return origin_of(protocol, self.provider, self.model)


@value_class
class MediaData:
    """A place in a payload where a file's base64 goes, after `prefix` as JSON has it, e.g. `data:image/png;base64,`."""

    blob: Blob
    prefix: str = ""

    @property
    def length(self) -> int:
        """Characters this place takes on the wire."""
        return len(self.prefix) + 4 * ((self.blob.size + 2) // 3)


Piece = bytes | MediaData
BodyPiece = Piece | Blob
"""Bytes as they are, a place where a file's base64 goes, or a file that goes as it is."""


def piece_length(piece: BodyPiece) -> int:
    """Bytes that a piece takes on the wire, known without reading a file."""
    if isinstance(piece, bytes):
        return len(piece)
    return piece.length if isinstance(piece, MediaData) else piece.size


@value_class
class UpstreamRequest:
    """One HTTP call, its payload still a JSON value in which files stand as `MediaData`."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    payload: Mapping[str, Any] = field(default_factory=dict)
    method: str = "POST"
    dropped_params: tuple[str, ...] = ()

    def pieces(self) -> tuple[BodyPiece, ...]:
        """The body in order: JSON bytes, and the places of files between them."""
        return split_payload(self.payload)

    @property
    def content_length(self) -> int:
        """Bytes of the whole body, known without reading a file."""
        return sum(map(piece_length, self.pieces()))

    def elide(self) -> Any:
        """The payload as previews show it: each file's data as `<N bytes>` (CONTRACT §4)."""
        return elide(self.payload)


def split_payload(payload: Mapping[str, Any]) -> tuple[Piece, ...]:
    """The payload as compact UTF-8 JSON, cut where a `MediaData` stands."""
    places: list[MediaData] = []
    mark = ""

    def collect_places() -> Callable[[Any], Any]:
        places.clear()
        return place

    def place(value: Any) -> Any:
        nonlocal mark
        if isinstance(value, Mapping):
            return dict(value)
        if not isinstance(value, MediaData):
            raise TypeError(f"{type(value).__name__} cannot be written as JSON")
        places.append(value)
        mark = mark or f"media:{secrets.token_hex(16)}:"  # unguessable: no text a caller sends can look like a place
        return mark

    text = write_json(payload, collect_places)
    if not places:
        return (text,)
    texts = text.split(mark.encode())
    pieces: list[Piece] = []
    for before, media in zip(texts, places, strict=False):
        pieces += [before + media.prefix.encode(), MediaData(media.blob)]
    return (*pieces, texts[-1])


def elide(value: Any) -> Any:
    """The same JSON value with each `MediaData` written as its prefix and `<N bytes>`."""
    if isinstance(value, MediaData):
        return f"{value.prefix}<{value.blob.size} bytes>"
    if isinstance(value, Mapping):
        return {key: elide(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [elide(item) for item in value]
    return value


def base64_blocks(blob: Blob) -> Iterator[bytes]:
    """The blob's base64 in blocks, whatever the sizes of its own blocks; memory stays that of one block."""
    rest = b""
    for block in blob.blocks():
        data = rest + block
        cut = len(data) - len(data) % 3
        rest = data[cut:]
        if cut:
            yield base64.b64encode(data[:cut])
    if rest:
        yield base64.b64encode(rest)


WriteData = Callable[[Blob, str], Any]
"""Gives what stands in an answer for a file: its base64 behind the lead, or the place where that will stand."""


def base64_text(blob: Blob, lead: str = "") -> str:
    """The blob's base64 behind `lead`, for answers that have to hold it: put together once, not joined and copied."""
    text = bytearray(lead.encode("utf-8"))
    for block in base64_blocks(blob):
        text += block
    return text.decode("utf-8")


def open_media(blob: Blob, lead: str = "") -> MediaData:
    """The place of a file whose base64 is written later, once. Raises `UnreadableError` now where that cannot be."""
    blocks = blob.blocks()
    return MediaData(replace(blob, blocks=lambda: blocks), json.dumps(lead, ensure_ascii=False)[1:-1])


@value_class
class Usage:
    """Tokens as the provider counted them; None where it did not say.

    All that follow `total_tokens` are parts of the prompt or of the completion. `cached_tokens` were read from the
    provider's cache; `cache_write_tokens` were written to it, `_5m` and `_1h` of them to be kept so long.
    `tool_tokens` are what the provider's own tools gave the model to read. The `_requests` count calls of such tools.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_5m_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    prompt_audio_tokens: int | None = None
    prompt_image_tokens: int | None = None
    tool_tokens: int | None = None
    completion_audio_tokens: int | None = None
    completion_image_tokens: int | None = None
    prompt_text_tokens: int | None = None
    completion_text_tokens: int | None = None
    accepted_prediction_tokens: int | None = None
    rejected_prediction_tokens: int | None = None
    cache_write_30m_tokens: int | None = None
    cache_write_12h_tokens: int | None = None
    web_search_requests: int | None = None
    web_fetch_requests: int | None = None

    @property
    def is_counted(self) -> bool:
        """Whether the provider said how much there was of anything that is paid for."""
        return self.prompt_tokens is not None or self.completion_tokens is not None

    def plus(self, other: Usage) -> Usage:
        """Return the sum of both, of each sort where one of them counts it."""
        pairs = ((each.name, getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return Usage(**{name: (one or 0) + (two or 0) for name, one, two in pairs if (one, two) != (None, None)})


@value_class
class AnswerDetails:
    """What a provider says beside an answer, in its own words; None where it does not.

    `stop_reason` is its own reason to stop, where that is another word than ours; `stop_details` what it says of it;
    `stop_sequence` the caller's stop sequence that it met, `vendor` further fields that only its own API has.
    """

    stop_reason: str | None = None
    stop_details: Mapping[str, Any] | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    stop_sequence: str | None = None
    vendor: Mapping[str, Any] | None = None


NO_DETAILS = AnswerDetails()


@value_class
class Media:
    """Something that a model made: its base64 as it came, or the address where it stands.

    A sound has what OpenAI says of one: `id`, what is said in it, and when its maker forgets it (Unix seconds); a
    stream brings it in pieces. `size` in bytes and `artifact_id` are known once it is stored.
    """

    kind: Kind
    mime_type: str
    data: str = field(default="", repr=False)
    url: str | None = None
    id: str | None = None
    transcript: str = ""
    expires_at: int | None = None
    size: int | None = None
    artifact_id: str | None = None


Annotation = Mapping[str, Any]
"""Where words of an answer come from, as OpenAI writes it."""


@value_class
class Answer:
    """What a model said; `finish_reason` in OpenAI's words (stop, length, tool_calls, content_filter).

    `logprobs` is OpenAI's object, as it came.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: str = "stop"
    usage: Usage = Usage()
    model: str | None = None
    id: str | None = None
    details: AnswerDetails = NO_DETAILS
    thoughts: tuple[ReasoningBlock, ...] = ()
    logprobs: Mapping[str, Any] | None = None
    media: tuple[Media, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    vendor: tuple[VendorItem, ...] = ()


@value_class
class Failure:
    """Why a call gave no answer: a value until nobody can act on it.

    `message` is the provider's sentence, shortened and free of secrets; `retry_after` in seconds, None when the
    provider named no time; `param` is the parameter it would not take, `further_params` those it names beside that.
    `refuses_value_only` says that it takes other values of that. `usage` is what the provider counted before it failed,
    and bills; None where it said nothing.
    """

    fault: Fault
    message: str = ""
    status: int | None = None
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None
    usage: Usage | None = None
    further_params: tuple[str, ...] = ()
    refuses_value_only: bool = False

    def counted(self, usage: Usage) -> Failure:
        """The same with what the provider counted; what it said before, or nothing, changes nothing."""
        return replace(self, usage=usage) if self.usage is None and usage.is_counted else self


@value_class
class ToolCallDelta:
    """A piece of a tool call: id and name come with the first piece of an index, arguments in fragments."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    signature: str | None = None
    custom: bool = False
    caller: Mapping[str, Any] | None = field(default=None, hash=False)


class Delta(NamedTuple):
    """A piece of an answer as it streams in; empty when the event carried nothing a caller sees.

    `vendor` are events of blocks or items that only one API has, for callers of that API; or such blocks, whole.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    thoughts: tuple[ReasoningBlock, ...] = ()
    logprobs: Mapping[str, Any] | None = None
    vendor: tuple[VendorItem, ...] = ()


class Supplement(NamedTuple):
    """What a streamed answer brings beside words; whole files but for sounds, which come in pieces."""

    media: tuple[Media, ...] = ()
    annotations: tuple[Annotation, ...] = ()


@value_class
class Finish:
    """The model is done: why, and the count where the provider sends one.

    `explains_silence` says that an answer of no words is one for that reason.
    """

    finish_reason: str
    usage: Usage = Usage()
    model: str | None = None
    id: str | None = None
    details: AnswerDetails = NO_DETAILS
    explains_silence: bool = False


StreamEvent = Delta | Supplement | Finish | Failure


class StreamDecoder(Protocol):
    """Turns the bytes of one streamed answer into events, whatever the cuts between blocks."""

    @property
    def due(self) -> bool:
        """Whether the reason to stop has come: the answer is whole, only its count and the goodbye may follow."""

    def feed(self, block: bytes) -> list[StreamEvent]:
        """Events completed by this block; keep-alive comments give none."""

    def close(self) -> list[StreamEvent]:
        """Events owed at the end of the body: `Failure(stream_empty | stream_truncated)` when it ended too early."""


class WireProtocol(Protocol):
    """One vendor's bytes; those there are stand in `protocols/__init__.py`."""

    @property
    def name(self) -> str:
        """Which of the five it is."""

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        """The call for a derived request (no `FilePart` left in it); what it cannot say is in `dropped_params`."""

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        """The outcome of a whole response."""

    def decoder(self) -> StreamDecoder:
        """A fresh decoder for one streamed response with status 200."""
