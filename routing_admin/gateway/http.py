"""A call to the data plane and its reply, whether our ASGI application or Django serves it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.http.request import UnreadablePostError

from capabilities.core.values import value_class
from capabilities.json_bodies import body_limit
from routing_admin.gateway.keep_alive import KeepAlive
from routing_admin.platform.server.fair_semaphore import Slot
from routing_admin.platform.server.request_id import read_request_id


@dataclass(slots=True)
class RequestBytes:
    """A request body that can be taken only once, so that its raw and its parsed form need not be in memory together.

    `broken` means that the body ended early. `room` is the slot that reserves the body's memory.
    """

    data: bytes | bytearray = field(default=b"", repr=False)
    broken: bool = False
    room: Slot | None = None
    is_unpacked: bool = False

    def take(self) -> bytes | bytearray:
        """Return the bytes, and drop this object's reference to them."""
        data, self.data = self.data, b""
        return data


@value_class
class HttpCall:
    """A call that has been received completely; header names are lower case, `address` is the caller's IP address.

    With `in_own_threads`, database work may run in any thread. `slot` is occupied until the call is answered; it is
    None if the number of calls is not limited. `keep_alive` can start a stream before it has content; it is None if the
    server does not support this.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    address: str
    request_id: str
    body: RequestBytes
    in_own_threads: bool = False
    slot: Slot | None = None
    keep_alive: KeepAlive | None = None


@dataclass(slots=True)
class HttpReply:
    """A reply with a complete body, or with blocks that are sent as they arrive.

    After the last block, `is_whole` can be called to learn whether the answer was complete; it is None if this is
    unknown.
    """

    status: int
    headers: MutableMapping[str, str]
    body: bytes = b""
    blocks: AsyncGenerator[bytes, None] | None = None
    is_whole: Callable[[], bool] | None = None


def build_call(request: HttpRequest) -> HttpCall:
    """Build a call from Django's request, reading at most one byte more than the body limit."""
    body, broken = b"", False
    try:
        body = request.read(body_limit(request.path) + 1)
    except UnreadablePostError:
        broken = True
    return HttpCall(
        request.method or "",
        request.path,
        request.META.get("QUERY_STRING", ""),
        {name.lower(): value for name, value in request.headers.items()},
        request.META.get("REMOTE_ADDR") or "",
        read_request_id(request),
        RequestBytes(body, broken),
    )


def build_scope_call(
    scope: Mapping[str, Any],
    request_id: str,
    headers: Mapping[str, str],
    body: RequestBytes,
    slot: Slot,
    keep_alive: KeepAlive,
) -> HttpCall:
    """Build a call from our ASGI application's scope."""
    client = scope.get("client")
    return HttpCall(
        scope["method"],
        scope["path"],
        scope["query_string"].decode("latin-1"),
        headers,
        client[0] if client else "",
        request_id,
        body,
        in_own_threads=True,
        slot=slot,
        keep_alive=keep_alive,
    )


def build_response(reply: HttpReply) -> HttpResponseBase:
    if reply.blocks is not None:
        return StreamingHttpResponse(reply.blocks, status=reply.status, headers=dict(reply.headers))
    return HttpResponse(reply.body, status=reply.status, headers=dict(reply.headers))
