"""POST /v1/embeddings and the other operations beside chat: a door for each row of the table."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from capabilities.core.operations.table import OPERATIONS, Operation
from routing_admin.gateway.calls import complete
from routing_admin.gateway.chat_api import ChatApi, ChatCall
from routing_admin.gateway.errors import body_of
from routing_admin.gateway.fields import Object
from routing_admin.gateway.http import call_of, response_of_reply
from routing_admin.gateway.keep_alive import COMMENT
from routing_admin.gateway.passthrough.bodies import read_body
from routing_admin.gateway.passthrough.parsing import needs_thread, parse
from routing_admin.gateway.passthrough.writing import PassedEvents, write_answer

SURFACE = "v1/"


def _write_events(_call: ChatCall, name: str, origin: str) -> PassedEvents:
    return PassedEvents(name, origin)


def _door(operation: Operation) -> ChatApi:
    def in_thread(body: Object, _size: int) -> bool:
        return needs_thread(operation, body)

    return ChatApi(
        f"/v1{operation.path}",
        partial(parse, operation),
        in_thread,
        write_answer,
        _write_events,
        body_of,
        read=partial(read_body, operation),
        surface=SURFACE + operation.name,
        keep_alive=COMMENT,
    )


OPERATION_DOORS: Mapping[str, ChatApi] = MappingProxyType({each.name: _door(each) for each in OPERATIONS})
"""The doors by the names of their operations."""


def view_of(door: ChatApi) -> Callable[[HttpRequest], Coroutine[Any, Any, HttpResponseBase]]:
    """The view of a door, for servers that run Django alone."""

    @csrf_exempt
    async def operation(request: HttpRequest) -> HttpResponseBase:
        return response_of_reply(await complete(door, call_of(request)))

    return operation
