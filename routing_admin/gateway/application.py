"""The data plane as an ASGI application, without sessions, a URLconf or a thread per request.

Django's handler starts a thread for each request and runs every middleware in it (docs/guarantees.md). Here a call runs
in the server's own task. Paths without a chat API are left to Django.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any

from django.conf import settings

from capabilities.access import Principal
from capabilities.json_bodies import received_limit
from routing_admin.gateway.calls import complete
from routing_admin.gateway.chat.completions import COMPLETIONS
from routing_admin.gateway.chat_api import ChatApi
from routing_admin.gateway.errors import GatewayError, error_reply
from routing_admin.gateway.gemini.endpoints import find_gemini
from routing_admin.gateway.http import HttpReply, RequestBytes, build_scope_call
from routing_admin.gateway.keep_alive import KeepAlive
from routing_admin.gateway.key_cache import cached_principal
from routing_admin.gateway.messages.endpoints import MESSAGES
from routing_admin.gateway.passthrough.endpoints import OPERATION_APIS
from routing_admin.gateway.responses.endpoints import RESPONSES
from routing_admin.platform.auth.known_callers import UNKNOWN_BYTES, is_known_caller
from routing_admin.platform.server.answers import header_pairs, send_refusal, send_whole
from routing_admin.platform.server.fair_semaphore import OverloadedError, Slot, bodies, calls, lookups
from routing_admin.platform.server.hosts import is_known_host
from routing_admin.platform.server.request_id import claim_scope_id
from routing_admin.platform.server.request_limit import (
    UnknownCallerError,
    announced_length,
    mebibytes,
    refuse,
    refuse_unknown,
    scope_headers,
)
from routing_admin.upstream.exchange import PhaseTimer, WaitTooLongError

CHAT_APIS: Mapping[str, ChatApi] = MappingProxyType(
    {api.path: api for api in (COMPLETIONS, MESSAGES, RESPONSES, *OPERATION_APIS.values())}
)
"""Chat APIs by path; Gemini's paths contain the model's name and are matched separately."""
READ_TIMEOUT_SECONDS = 60.0
"""Maximum time in seconds for the caller to accept one block of the response."""
WATCH_AFTER_SECONDS = 0.02
"""After this many seconds, a task starts to watch whether the caller disconnects. Shorter calls do without it."""
FOREVER = float(60 * 60 * 24 * 365)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def find_chat_api(scope: Mapping[str, Any]) -> ChatApi | None:
    """Return the chat API at the request's path, or None for a path that Django serves."""
    return CHAT_APIS.get(scope["path"]) or find_gemini(scope["path"], scope["query_string"].decode("latin-1"))


async def answer_call(api: ChatApi, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer a call to a chat API. If the caller disconnects, cancel all work on the call."""
    limit = received_limit(scope["path"])
    if announced_length(scope) > limit:
        return await refuse(scope, limit, send)
    room = Slot(bodies())
    try:
        body = await _read_body(scope, receive, limit, room)
        if body is not None and len(body.data) > limit:
            return await refuse(scope, limit, send)
        if body is not None:
            await _answer_body(api, scope, receive, send, body)
    except UnknownCallerError:
        await refuse_unknown(scope, send)
    except OverloadedError as error:
        await send_refusal(scope, error.status, error.code, error.message, send)
    finally:
        room.leave()


async def _answer_body(
    api: ChatApi, scope: MutableMapping[str, Any], receive: Receive, send: Send, body: RequestBytes
) -> None:
    # When the caller disconnects, the `_DisconnectWatch` cancels this task and the call ends silently. Any other
    # cancellation, such as a server shutdown, is passed on.
    watch, slot, keep_alive = _DisconnectWatch(receive), Slot(calls()), KeepAlive(send)
    try:
        await _send_reply(await _reply_to(api, scope, body, slot, keep_alive), send, keep_alive)
    except asyncio.CancelledError:
        if not watch.has_left():
            raise
    finally:
        watch.close()
        slot.leave()


async def _read_body(scope: Mapping[str, Any], receive: Receive, limit: int, room: Slot) -> RequestBytes | None:
    # Return None if the caller disconnected before the end of the body. Stop reading a body once it exceeds the limit.
    announced = announced_length(scope)
    # A large body requires a valid key, which is checked before memory is reserved for the body.
    is_known = announced > UNKNOWN_BYTES
    if is_known:
        room.enter_at_once(await _find_known(scope), mebibytes(announced))
    message = await receive()
    body: bytes | bytearray = message.get("body", b"")
    if message.get("more_body"):
        body = bytearray(body)
        while message.get("more_body") and len(body) <= limit:
            if len(body) > UNKNOWN_BYTES and not is_known:
                room.enter_at_once(await _find_known(scope), mebibytes(announced or limit))
                is_known = True
            message = await receive()
            body += message.get("body", b"")
    return None if message["type"] == "http.disconnect" else RequestBytes(body, room=room)


async def _find_known(scope: Mapping[str, Any]) -> str:
    # The memory for a large body counts against its agent, or against the caller's IP address if the key is not cached.
    headers = scope_headers(scope)
    caller = cached_principal(headers)
    if isinstance(caller, Principal):
        return caller.key_owner
    slot, address = Slot(lookups()), scope["client"][0] if scope.get("client") else ""
    await slot.enter(address)
    try:
        if await is_known_caller(headers):
            return address
    finally:
        slot.leave()
    raise UnknownCallerError


async def _reply_to(
    api: ChatApi, scope: MutableMapping[str, Any], body: RequestBytes, slot: Slot, keep_alive: KeepAlive
) -> HttpReply:
    headers = scope_headers(scope)
    request_id = claim_scope_id(scope, headers)
    if not is_known_host(headers.get("host", ""), tuple(settings.ALLOWED_HOSTS)):
        message = "This host name is not one of ROUTING_ADMIN_ALLOWED_HOSTS."
        return error_reply(GatewayError(400, "host_not_allowed", message), request_id, api.error)
    return await complete(api, build_scope_call(scope, request_id, headers, body, slot, keep_alive))


async def _send_reply(reply: HttpReply, send: Send, keep_alive: KeepAlive) -> None:
    reply.headers["x-content-type-options"] = "nosniff"
    if reply.blocks is None:
        return await send_whole(reply.status, reply.headers, reply.body, send)
    # A caller that stops reading must not keep the upstream response open forever.
    timer = PhaseTimer(FOREVER)
    try:
        if keep_alive.has_begun:
            if comments := keep_alive.write_comments(reply.headers):
                await send({"type": "http.response.body", "body": comments, "more_body": True})
        else:
            await send({"type": "http.response.start", "status": reply.status, "headers": header_pairs(reply.headers)})
        async for block in reply.blocks:
            with timer.within(READ_TIMEOUT_SECONDS):
                await send({"type": "http.response.body", "body": block, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except WaitTooLongError:
        raise TimeoutError("the caller does not read its response") from None
    finally:
        timer.close()
        await reply.blocks.aclose()


class _DisconnectWatch:
    """Cancels the current task when the server reports `http.disconnect`."""

    def __init__(self, receive: Receive) -> None:
        loop = asyncio.get_running_loop()
        self._receive = receive
        self._task = asyncio.current_task(loop)
        self._left = False
        self._listener: asyncio.Task[None] | None = None
        self._timer = loop.call_later(WATCH_AFTER_SECONDS, self._start_listening)

    def has_left(self) -> bool:
        # After `uncancel`, the task can await again during its cleanup.
        if self._left and self._task is not None:
            self._task.uncancel()
        return self._left

    def close(self) -> None:
        self._timer.cancel()
        if self._listener is not None:
            self._listener.cancel()

    def _start_listening(self) -> None:
        self._listener = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left = True
        if self._task is not None:
            self._task.cancel()
