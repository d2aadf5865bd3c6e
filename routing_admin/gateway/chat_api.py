"""Description of a chat API: how to parse calls in a vendor's format, and how to write answers, events and errors.

Each API parses its own format into the canonical request. Keys, plans, the fallback chain and the log are common to all
APIs, see `calls`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from capabilities.core.message import ChatRequest
from capabilities.core.operations.passthrough import PassthroughCall
from capabilities.core.translatable import translatable
from capabilities.core.values import value_class
from capabilities.core.wire import Annotation, Answer, Delta, Finish, Media, Usage
from routing_admin.core.planning.model_names import MAX_NAME
from routing_admin.dispatch.reasoning_cache import AnsweredTurn
from routing_admin.gateway.body import read_object
from routing_admin.gateway.errors import BadRequestError, GatewayError
from routing_admin.gateway.fields import Object, missing_field_error, read_count, read_text
from routing_admin.gateway.http import HttpCall, HttpReply
from routing_admin.gateway.media import Find
from routing_admin.request_log.kept_answers import Turn

SSE = "text/event-stream"
SMALL_BYTES = 2 * 1024 * 1024
"""Files inside a body of up to this size, in bytes, are examined without a thread.

Switching to a thread would take longer than examining them.
"""
MAX_ANSWERS = 8
"""Maximum number of answers to one request. Each answer is an upstream call."""


Keep = Callable[[str, Sequence[Mapping[str, Any]]], object]


@value_class
class ChatCall:
    """A parsed call: the canonical request, the model name, and options for routing and streaming.

    With `old_calls`, tools were sent as `functions`, so calls to them are returned as `function_call`. A model receives
    a tool of a group under a single name, which `namespaces` maps to the group's and the tool's own name. `passing` is
    the operation if the call is passed through, None for a chat. `count` is the number of requested answers, and
    `choice` identifies this call's answer among them, None if only one is requested. If `is_stored`, later calls may
    refer to the answer and its items: `keep` stores them under the key that their ids contain, and `turn` is the part
    of the request that is stored with them. `previous` is the id of the answer that the call continues.
    """

    chat: ChatRequest
    model: str
    task_type: str | None = None
    language: str | None = None
    stream: bool = False
    include_usage: bool = False
    old_calls: bool = False
    namespaces: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    passing: PassthroughCall | None = None
    count: int = 1
    choice: AnswerChoice | None = None
    is_stored: bool = False
    turn: Turn | None = None
    keep: Keep | None = None
    previous: str | None = None


class Choices:
    """State shared by all answers to a request: their id, the number of answers that have ended, and the summed usage.

    The shared id is that of the stream that began first.
    """

    def __init__(self, count: int) -> None:
        self.count, self.id, self.usage = count, "", Usage()
        self.ended = 0
        self.failed: int | None = None
        self.error: GatewayError | None = None

    def end(self, usage: Usage) -> bool:
        """Add an answer's usage and return whether it was the last answer."""
        self.usage, self.ended = self.usage.plus(usage), self.ended + 1
        return self.ended == self.count

    def fail(self, index: int, error: GatewayError) -> None:
        """Record the error that ends the whole stream, and which answer failed; ignore later errors."""
        if self.error is None:
            self.failed, self.error = index, error


@value_class
class AnswerChoice:
    index: int
    of: Choices


@value_class
class RoutingOptions:
    model: str
    task_type: str | None
    language: str | None


def read_routing_options(body: Object) -> RoutingOptions:
    """Return the routing options.

    Raise `BadRequestError` if the model and the task are both missing, or if a name is too long.
    """
    task_type, language = read_text(body, "task_type", ""), read_text(body, "language", "")
    model = read_text(body, "model", "") or ""
    if not model and not task_type:
        raise missing_field_error("model")
    if len(model) > MAX_NAME or len(task_type or "") > MAX_NAME:
        raise BadRequestError(translatable("A name can have at most %(most)s characters.", most=MAX_NAME), "model")
    return RoutingOptions(model, task_type, language)


def read_answer_count(source: Object, key: str) -> int:
    """Return the number of requested answers; raise `BadRequestError` if it is invalid or too large."""
    count = read_count(source, key) or 1
    if count > MAX_ANSWERS:
        message = translatable("%(param)s can be at most %(most)s.", param=key, most=MAX_ANSWERS)
        raise BadRequestError(message, key, "unsupported_value")
    return count


class AnswerEvents(Protocol):
    """Interface that writes the events of a streamed answer; each method returns bytes, which may be empty."""

    @property
    def turn(self) -> AnsweredTurn:
        """The parts of this answer that the conversation's next turn may need."""

    @property
    def origin(self) -> str: ...

    def write_delta(self, delta: Delta) -> bytes:
        """Write a chunk of the answer's text, reasoning or tool calls."""

    def write_media(self, media: Sequence[Media]) -> bytes:
        """Write complete generated files."""

    def write_sound(self, sound: Media, reference: bool = False) -> bytes:
        """Write a chunk of audio or, if `reference` is set, the reference of the complete audio's stored copy."""

    def write_annotations(self, annotations: Sequence[Annotation]) -> bytes:
        """Write source annotations for the preceding text."""

    def write_finish(self, finish: Finish) -> bytes:
        """Write the finish reason and the usage, and the events that end the stream."""

    def write_error(self, error: GatewayError, request_id: str) -> bytes:
        """Write an error that says that the answer was interrupted; nothing is written after this."""


@value_class
class ChatApi:
    """A chat API at one path. `parse` and `read` raise `BadRequestError`.

    `needs_thread` returns whether `parse` may query the database or examine large files. `answer` and `events` receive
    the model name that the answer contains, and the origin that labels its reasoning. `error` writes an error's body.
    `id_header` is the header, in addition to `x-request-id`, in which the API's clients expect the request id.
    `surface` is the API's name in the log, `stream_type` is the content type of streams, and `keep_alive` is the block
    that is repeated until a stream has content. `blocked` returns the content type and body of the response if a
    provider's content policy blocked the request; it is None if the API has no format for this. `resolve` replaces
    references in the body and is None if the API has no references.

    If several answers can be requested, `count_field` is the field with their number, and `merge` combines their bodies
    and the summed usage. `enclose` wraps the merged stream; it is None if the stream needs no wrapping.
    """

    path: str
    parse: Callable[[Object, Find], ChatCall]
    needs_thread: Callable[[Object, int], bool]
    answer: Callable[[Answer, ChatCall, str, str], HttpReply]
    events: Callable[[ChatCall, str, str], AnswerEvents]
    error: Callable[[GatewayError, str], dict[str, Any]]
    id_header: str = ""
    read: Callable[[HttpCall], Object] = read_object
    surface: str = "v1"
    keep_alive: bytes = b""
    blocked: Callable[[GatewayError], tuple[str, bytes]] | None = None
    stream_type: str = SSE
    resolve: Callable[[HttpCall, str, Object], Awaitable[Object]] | None = None
    count_field: str = ""
    merge: Callable[[Sequence[dict[str, Any]], Usage], dict[str, Any]] | None = None
    enclose: Callable[[AsyncGenerator[bytes, None]], AsyncGenerator[bytes, None]] | None = None
