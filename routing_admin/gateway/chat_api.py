"""A chat API of the data plane: how a vendor's calls are read, and how answers, events and errors are written.

Each API reads its own shape into the canonical request. Keys, plans, the walk through the chain and the log are common:
see `calls`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from capabilities.core.message import ChatRequest
from capabilities.core.operations.passing import Passing
from capabilities.core.translatable import translatable
from capabilities.core.values import value_class
from capabilities.core.wire import Annotation, Answer, Delta, Finish, Media, Usage
from routing_admin.core.planning.model_names import MAX_NAME
from routing_admin.dispatch.reasoning_cache import AnsweredTurn
from routing_admin.gateway.body import read_object
from routing_admin.gateway.errors import BadRequestError, GatewayError
from routing_admin.gateway.fields import Object, read_count, read_text, refusal_of_missing
from routing_admin.gateway.http import HttpCall, HttpReply
from routing_admin.gateway.media import Find
from routing_admin.request_log.kept_answers import Turn

SSE = "text/event-stream"
SMALL_BYTES = 2 * 1024 * 1024
"""A body up to this size is looked through faster than a thread is entered and left."""
MAX_ANSWERS = 8
"""The most answers to one request, each of which is a call."""


Keep = Callable[[str, Sequence[Mapping[str, Any]]], object]


@value_class
class ChatCall:
    """A parsed call: the canonical request, the model's name, and the wishes about routing and streaming.

    `old_calls` says that tools came as `functions`, so that calls of them are answered as `function_call`; `namespaces`
    has namespace and own name of those tools that came grouped, by the one name that models know them by. `passing` is
    the operation that the call is of, where it is no chat's. `count` answers are asked for, of which it gives `choice`;
    None where it gives the only one. `is_stored` says that later calls may refer to its answer and the items of that;
    `keep` then takes the key of their ids, and them, and `turn` is what is kept of the request beside. `previous` is
    the id of the answer that it continues.
    """

    chat: ChatRequest
    model: str
    task_type: str | None = None
    language: str | None = None
    stream: bool = False
    include_usage: bool = False
    old_calls: bool = False
    namespaces: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    passing: Passing | None = None
    count: int = 1
    choice: AnswerChoice | None = None
    is_stored: bool = False
    turn: Turn | None = None
    keep: Keep | None = None
    previous: str | None = None


class Choices:
    """What the answers to one request have in common: their `id`, and how many of them have ended, with which count.

    The id is the one of the stream that is begun first.
    """

    def __init__(self, count: int) -> None:
        self.count, self.id, self.usage = count, "", Usage()
        self.ended = 0
        self.failed: int | None = None
        self.error: GatewayError | None = None

    def end(self, usage: Usage) -> bool:
        """Add an answer's count; return whether it was the last answer."""
        self.usage, self.ended = self.usage.plus(usage), self.ended + 1
        return self.ended == self.count

    def fail(self, index: int, error: GatewayError) -> None:
        """Note by which answer's error the whole stream ends."""
        if self.error is None:
            self.failed, self.error = index, error


@value_class
class AnswerChoice:
    """One of several answers to a request, by its `index`."""

    index: int
    of: Choices


@value_class
class Wishes:
    """What a request says about its routing: the model's name, or the task type, and the language of the answer."""

    model: str
    task_type: str | None
    language: str | None


def read_wishes(body: Object) -> Wishes:
    """The wishes in a body. Raises `BadRequestError` where it names neither a model nor a task, or at great length."""
    task_type, language = read_text(body, "task_type", ""), read_text(body, "language", "")
    model = read_text(body, "model", "") or ""
    if not model and not task_type:
        raise refusal_of_missing("model")
    if len(model) > MAX_NAME or len(task_type or "") > MAX_NAME:
        raise BadRequestError(translatable("A name can have at most %(most)s characters.", most=MAX_NAME), "model")
    return Wishes(model, task_type, language)


def read_answer_count(source: Object, key: str) -> int:
    """How many answers are asked for. Raises `BadRequestError` for no number, and for too large a one."""
    count = read_count(source, key) or 1
    if count > MAX_ANSWERS:
        message = translatable("%(param)s can be at most %(most)s.", param=key, most=MAX_ANSWERS)
        raise BadRequestError(message, key, "unsupported_value")
    return count


class AnswerEvents(Protocol):
    """Writes one streamed answer as server-sent events; each method gives the bytes, empty for nothing to say."""

    @property
    def turn(self) -> AnsweredTurn:
        """What of the answer its next turn may need."""

    @property
    def origin(self) -> str:
        """The mark of who answers."""

    def write_delta(self, delta: Delta) -> bytes:
        """A piece of the answer."""

    def write_media(self, media: Sequence[Media]) -> bytes:
        """Files that a model made, each whole."""

    def write_sound(self, sound: Media, reference: bool = False) -> bytes:
        """A piece of a sound; behind the last one, with `reference`, where all of it can be had."""

    def write_annotations(self, annotations: Sequence[Annotation]) -> bytes:
        """What the words before rest on."""

    def write_finish(self, finish: Finish) -> bytes:
        """The reason to stop, the count, and the end."""

    def write_error(self, error: GatewayError, request_id: str) -> bytes:
        """That the answer broke off; nothing follows."""


@value_class
class ChatApi:
    """One address and its words.

    `parse` raises `BadRequestError`; `needs_thread` says whether it may read rows or look into large files. `answer`
    and `events` get who the answer names as its model, and the mark of who answers. `error` is the body of a refusal.
    `id_header` is where the API's clients look for the id of a call, beside `x-request-id`. `read` takes the body of a
    call apart, and raises `BadRequestError`, too; `surface` is what the log calls the API, `stream_type` the content
    type of its streams. `keep_alive` is what a stream without content repeats; empty where it sends nothing before.
    `blocked` writes what a provider's policy refused as an answer, with its type, where an API has one for it.
    `resolve` puts what an agent refers to into the body, None where nothing can be referred to.

    Where several answers can be asked for, `count_field` asks for them; `merge` makes one body of theirs and of the
    sum of their counts, and `enclose` one stream of their blocks, None where these need nothing around them.
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
