"""Endpoints such as `POST /v1/embeddings`, one for each operation in `OPERATIONS`, which contains all except chat."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import orjson
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from artifacts.core.artifact import REF_PREFIX
from artifacts.core.detection.extensions import EXTENSIONS_OF_MIME
from capabilities.core.message import ChatRequest
from capabilities.core.operations.passthrough import PassthroughCall
from capabilities.core.operations.replies import PassthroughAnswer
from capabilities.core.operations.stream import rename_model
from capabilities.core.operations.table import OPERATIONS, BodyShape, FormFile, Operation
from capabilities.core.translatable import translatable
from capabilities.core.wire import Annotation, Answer, Delta, Finish, Media
from routing_admin.dispatch.reasoning_cache import AnsweredTurn
from routing_admin.gateway.calls import complete
from routing_admin.gateway.chat_api import ChatApi, ChatCall, read_routing_options
from routing_admin.gateway.errors import BadRequestError, GatewayError, error_body
from routing_admin.gateway.fields import Object
from routing_admin.gateway.http import HttpReply, build_call, build_response
from routing_admin.gateway.keep_alive import COMMENT
from routing_admin.gateway.media import Find, find_by_either_id
from routing_admin.gateway.passthrough.bodies import FormBody, read_body

PARSED_FIELDS = frozenset({"model", "task_type"})
"""Fields that are parsed here and not passed on; the provider gets its own model name instead."""
FORMAT, COUNT = "response_format", "n"
"""Fields that are parsed but also passed on, because the answer's format and size depend on them."""


def parse(operation: Operation, body: Object, find: Find) -> ChatCall:
    """Return the call; raise `BadRequestError` if the model or a required file is missing."""
    routing = read_routing_options({name: _value(body, name) for name in PARSED_FIELDS})
    fields = {name: value for name, value in body.items() if name not in PARSED_FIELDS}
    shape = BodyShape.FORM if isinstance(body, FormBody) else BodyShape.JSON
    if shape is BodyShape.FORM:
        fields = _with_files(operation, fields, find)
    stream = operation.is_streamed(_value(body, operation.stream[0]))
    answer_format, count = str(_value(body, FORMAT) or ""), str(_value(body, COUNT) or "")
    # Cost estimates need the number of results; the provider itself rejects an invalid number.
    results = int(count) if count.isdecimal() and len(count) < 4 else 1
    passing = PassthroughCall(
        operation=operation,
        shape=shape,
        stream=stream,
        answer_format=answer_format,
        count=results * _count_prompts(body),
    )
    return ChatCall(ChatRequest((), extra=fields), routing.model, routing.task_type, stream=stream, passing=passing)


def _count_prompts(body: Object) -> int:
    # A completion request may contain a list of prompts, each with its own results. A list of numbers is one tokenized
    # prompt.
    prompt = body.get("prompt")
    return len(prompt) if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) else 1


def needs_thread(operation: Operation, body: Object) -> bool:
    """Return whether a file is given as a reference to an artifact, which must be looked up."""
    values = (value for name in operation.files for value in body.get(name) or ())
    return isinstance(body, FormBody) and any(isinstance(value, str) for value in values)


def _value(body: Object, name: str) -> Any:
    value = body.get(name)
    return value[-1] if isinstance(value, tuple) else value


def _with_files(operation: Operation, fields: Object, find: Find) -> dict[str, Any]:
    first = operation.files[0]
    if not any(fields.get(name) for name in (first, f"{first}[]")):
        message = translatable(
            "%(param)s is required: a file, or the id of one (GET /v1/files lists yours).", param=first
        )
        raise BadRequestError(message, first, "missing_required_parameter")
    return {
        name: tuple(_file(value, name, find) for value in values) if name in operation.files else values
        for name, values in fields.items()
    }


def _file(value: str | FormFile, param: str, find: Find) -> FormFile:
    if isinstance(value, FormFile):
        return value
    part = find_by_either_id(find, value.strip())
    if part is None or part.content is None or part.unreadable:
        message = translatable("%(param)s is not a file, and this agent has no artifact with that id.", param=param)
        raise BadRequestError(message, param, "artifact_not_found")
    extension = EXTENSIONS_OF_MIME.get(part.mime_type, "").partition(" ")[0]
    return FormFile(part.filename or f"file.{extension}".rstrip("."), part.mime_type, part.content.blob())


ARTIFACTS = "x-routing-artifacts"
"""Response header that lists the artifacts in which generated media are stored."""


def write_answer(answer: Answer, _call: ChatCall, name: str, _origin: str) -> HttpReply:
    """Return the complete answer with the model name replaced; a header lists the artifacts of generated media."""
    passed = cast(PassthroughAnswer, answer)
    reply = HttpReply(200, {"Content-Type": passed.content_type}, passed.body_for(name))
    references = [REF_PREFIX + item.artifact_id for item in passed.media if item.artifact_id]
    if references:
        reply.headers[ARTIFACTS] = ", ".join(references)
    return reply


class PassedEvents:
    """Passes events on, changing only the model name in them. Each delta is a whole event."""

    def __init__(self, name: str, origin: str) -> None:
        self._name, self.origin = name, origin
        self.turn = AnsweredTurn()

    def write_delta(self, delta: Delta) -> bytes:
        return rename_model(delta.text, self._name).encode()

    # Each delta is a whole event and already contains everything else, so these methods write nothing.
    def write_media(self, media: Sequence[Media]) -> bytes:
        return b""

    def write_sound(self, sound: Media, reference: bool = False) -> bytes:
        return b""

    def write_annotations(self, annotations: Sequence[Annotation]) -> bytes:
        return b""

    def write_finish(self, finish: Finish) -> bytes:
        return b""

    def write_error(self, error: GatewayError, request_id: str) -> bytes:
        return b"event: error\ndata: " + orjson.dumps(error_body(error, request_id)) + b"\n\n"


SURFACE = "v1/"


def _write_events(_call: ChatCall, name: str, origin: str) -> PassedEvents:
    return PassedEvents(name, origin)


def _api(operation: Operation) -> ChatApi:
    def in_thread(body: Object, _size: int) -> bool:
        return needs_thread(operation, body)

    return ChatApi(
        f"/v1{operation.path}",
        partial(parse, operation),
        in_thread,
        write_answer,
        _write_events,
        error_body,
        read=partial(read_body, operation),
        surface=SURFACE + operation.name,
        keep_alive=COMMENT,
    )


OPERATION_APIS: Mapping[str, ChatApi] = MappingProxyType({operation.name: _api(operation) for operation in OPERATIONS})
"""Maps the name of each operation to its API."""


def make_view(api: ChatApi) -> Callable[[HttpRequest], Coroutine[Any, Any, HttpResponseBase]]:
    """Return a Django view for an API, for servers that run Django without our ASGI application."""

    @csrf_exempt
    async def operation(request: HttpRequest) -> HttpResponseBase:
        return build_response(await complete(api, build_call(request)))

    return operation
