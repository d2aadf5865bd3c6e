"""Values exchanged with providers: requests, answers, failures, and stream events.

A protocol encodes an adapted `ChatRequest` as an `UpstreamRequest`, and decodes bytes into `Answer | Failure` or
events. Protocols never use sockets. Only `routing_admin/upstream/` does.
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
from capabilities.core.thoughts import ReasoningBlock, reasoning_origin
from capabilities.core.values import value_class
from capabilities.core.vocabulary import Kind


class Fault(StrEnum):
    """All faults that can occur in a call to a provider, as listed in docs/faults.md."""

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
    """Where and how a candidate model is called: provider, endpoint, key, model and options.

    `endpoint` is the base URL, or the full URL if its path already ends in the protocol's path. `quirks` are the
    provider's compatibility options. `extra_body` is merged into the payload last.
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
        return reasoning_origin(protocol, self.provider, self.model)


@value_class
class MediaData:
    """A placeholder for a file's base64 in a payload. `prefix` precedes the base64, e.g. `data:image/png;base64,`."""

    blob: Blob
    prefix: str = ""

    @property
    def length(self) -> int:
        return len(self.prefix) + 4 * ((self.blob.size + 2) // 3)


Piece = bytes | MediaData
BodyPiece = Piece | Blob
"""Part of a body: bytes, a placeholder for a file's base64, or a file whose bytes are sent unchanged."""


def piece_length(piece: BodyPiece) -> int:
    if isinstance(piece, bytes):
        return len(piece)
    return piece.length if isinstance(piece, MediaData) else piece.size


@value_class
class UpstreamRequest:
    """One HTTP request. Its payload is a JSON value with files as `MediaData`."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    payload: Mapping[str, Any] = field(default_factory=dict)
    method: str = "POST"
    dropped_params: tuple[str, ...] = ()

    def pieces(self) -> tuple[BodyPiece, ...]:
        """Return the body's pieces in order: JSON bytes, with placeholders for files between them."""
        return split_payload(self.payload)

    @property
    def content_length(self) -> int:
        """Return the body's total size in bytes. This does not read the files in it."""
        return sum(map(piece_length, self.pieces()))

    def elide(self) -> Any:
        return elide(self.payload)


def split_payload(payload: Mapping[str, Any]) -> tuple[Piece, ...]:
    """Return the payload as compact UTF-8 JSON, split at each `MediaData`."""
    media_found: list[MediaData] = []
    mark = ""

    def start_collecting() -> Callable[[Any], Any]:
        # If the first JSON codec fails, the second one must start again from the beginning.
        media_found.clear()
        return collect

    def collect(value: Any) -> Any:
        nonlocal mark
        if isinstance(value, Mapping):
            return dict(value)
        if not isinstance(value, MediaData):
            raise TypeError(f"{type(value).__name__} cannot be written as JSON")
        media_found.append(value)
        mark = mark or f"media:{secrets.token_hex(16)}:"  # The marker is random, so no caller's text contains it.
        return mark

    # Write the JSON with a marker in place of each file, and then split it at the markers, so that the JSON codec never
    # handles files' bytes.
    text = write_json(payload, start_collecting)
    if not media_found:
        return (text,)
    texts = text.split(mark.encode())
    pieces: list[Piece] = []
    for text_before, media in zip(texts, media_found, strict=False):
        pieces += [text_before + media.prefix.encode(), MediaData(media.blob)]
    return (*pieces, texts[-1])


def elide(value: Any) -> Any:
    """Return the JSON value with each `MediaData` replaced by its prefix and its size as `<N bytes>`."""
    if isinstance(value, MediaData):
        return f"{value.prefix}<{value.blob.size} bytes>"
    if isinstance(value, Mapping):
        return {key: elide(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [elide(item) for item in value]
    return value


def base64_blocks(blob: Blob) -> Iterator[bytes]:
    """Yield the blob's base64 in blocks, with only one block in memory at a time."""
    rest = b""
    for block in blob.blocks():
        data = rest + block
        # Three bytes become four characters, so encode only complete triples until the end.
        cut = len(data) - len(data) % 3
        rest = data[cut:]
        if cut:
            yield base64.b64encode(data[:cut])
    if rest:
        yield base64.b64encode(rest)


WriteData = Callable[[Blob, str], Any]
"""Function that returns what a response contains in place of a file: a prefix followed by the file's base64, or a
placeholder for both."""


def base64_text(blob: Blob, lead: str = "") -> str:
    """Return `lead` followed by the blob's base64, for responses that must contain it."""
    # Append to one buffer, because joining blocks would need memory for two copies of a large file.
    text = bytearray(lead.encode("utf-8"))
    for block in base64_blocks(blob):
        text += block
    return text.decode("utf-8")


def open_media(blob: Blob, lead: str = "") -> MediaData:
    """Return a placeholder for a file that is written later. Raise UnreadableError if the file cannot be read.

    The file can be written only once.
    """
    # Open the file now, while an error response can still be sent.
    blocks = blob.blocks()
    return MediaData(replace(blob, blocks=lambda: blocks), json.dumps(lead, ensure_ascii=False)[1:-1])


@value_class
class Usage:
    """Token counts from the provider. A count is None if the provider did not state it.

    The fields after `total_tokens` count parts of the prompt or the completion. `cached_tokens` were read from the
    provider's prompt cache. `cache_write_tokens` were written to it, and fields with `_5m`, `_1h` and so on count the
    tokens written with that cache duration. `tool_tokens` are input tokens that the provider's own tools produced.
    Fields that end in `_requests` count calls to such tools.
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
        """Return whether the provider counted the tokens in the prompt or in the completion."""
        return self.prompt_tokens is not None or self.completion_tokens is not None

    def plus(self, other: Usage) -> Usage:
        """Return the sum of two usages. If a field is None in both, it stays None."""
        pairs = ((field.name, getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Usage(
            **{
                name: (value or 0) + (other_value or 0)
                for name, value, other_value in pairs
                if (value, other_value) != (None, None)
            }
        )


@value_class
class AnswerDetails:
    """Details of an answer that not all providers state. Missing details are None.

    `stop_reason` is the provider's value if it differs from OpenAI's, and `stop_details` explains it. `stop_sequence`
    is the caller's stop sequence that ended the answer. `vendor` contains other fields of the provider's API.
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
    """A file produced by a model, as base64 or as a URL.

    Audio has OpenAI's fields: `id`, the transcript, and the time at which the provider deletes it (Unix seconds). In a
    stream, audio arrives in chunks. `size` (in bytes) and `artifact_id` are set once the file has been stored.
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
"""A source that an answer cites for a passage, in OpenAI's format."""


@value_class
class Answer:
    """A model's answer. `finish_reason` is one of OpenAI's values (stop, length, tool_calls, content_filter).

    `logprobs` is OpenAI's object, unchanged.
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
    """A failed call to a provider.

    `message` is the provider's message, shortened and without secrets. `retry_after` is in seconds, or None if the
    provider stated none. `param` is the parameter that the provider rejected, and `further_params` are other parameters
    that it named. `refuses_value_only` means that the provider accepts other values of the parameter. `usage` is what
    the provider counted before the failure and will bill, or None if it stated no usage.
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
        """Return the failure with this usage.

        It stays unchanged if it already has a usage, or if nothing was counted.
        """
        return replace(self, usage=usage) if self.usage is None and usage.is_counted else self


@value_class
class ToolCallDelta:
    """A fragment of a tool call. Only the first fragment of each call has its id and name."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    signature: str | None = None
    custom: bool = False
    caller: Mapping[str, Any] | None = field(default=None, hash=False)


class Delta(NamedTuple):
    """A chunk of a streamed answer. It is empty if the provider's event has nothing for the caller.

    `vendor` contains blocks or items that exist only in one vendor's API, either complete or as events for clients of
    that API.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    thoughts: tuple[ReasoningBlock, ...] = ()
    logprobs: Mapping[str, Any] | None = None
    vendor: tuple[VendorItem, ...] = ()


class Supplement(NamedTuple):
    """Parts of a streamed answer other than text. Files are complete, except audio, which arrives in chunks."""

    media: tuple[Media, ...] = ()
    annotations: tuple[Annotation, ...] = ()


@value_class
class Finish:
    """The end of an answer: the finish reason, and the usage if the provider sends any.

    `explains_silence` means that the finish reason explains why the answer has no text.
    """

    finish_reason: str
    usage: Usage = Usage()
    model: str | None = None
    id: str | None = None
    details: AnswerDetails = NO_DETAILS
    explains_silence: bool = False


StreamEvent = Delta | Supplement | Finish | Failure


class StreamDecoder(Protocol):
    """Decodes the bytes of one streamed answer into events. Blocks of bytes may be split anywhere."""

    @property
    def due(self) -> bool:
        """Return whether the finish reason has arrived. Only the usage and the end of the stream may follow it."""

    def feed(self, block: bytes) -> list[StreamEvent]:
        """Return the events that this block completes. Keep-alive comments are not events."""

    def close(self) -> list[StreamEvent]:
        """Return the last events at the end of the body, including a `Failure` if it ended too early."""


class AnswerDecoder(Protocol):
    """Decodes complete responses, which are not streamed."""

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        """Return the answer or the failure in a complete response."""


class WireProtocol(AnswerDecoder, Protocol):
    """One vendor's wire format. All protocols are listed in `protocols/__init__.py`."""

    @property
    def name(self) -> str: ...

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        """Return the HTTP request for an adapted chat.

        Its `dropped_params` lists the parameters that this protocol cannot express.
        """

    def decoder(self) -> StreamDecoder:
        """Return a new decoder for one streamed response with status 200."""
