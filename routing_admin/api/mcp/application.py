"""The ASGI application at `/mcp`.

It authenticates callers, and imports the MCP package at the first authenticated call.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from django.conf import settings

from capabilities.access import Refusal
from capabilities.fair_slots import OverloadedError, requester
from capabilities.json_bodies import LARGE_BYTES, JsonTooLargeError, extract_texts
from routing_admin.api.mcp.callers import KEY, LONG_STRINGS, McpCaller, identify
from routing_admin.core.fallback.endings import UNAVAILABLE
from routing_admin.limits.reservations import LimitReachedError, Reservation, limit_headers, make_reservation
from routing_admin.platform.databases import unavailable
from routing_admin.platform.server.answers import send_refusal
from routing_admin.platform.server.fair_semaphore import parses, slot
from routing_admin.platform.server.hosts import is_known_host
from routing_admin.platform.server.metrics import request_metrics
from routing_admin.platform.server.request_id import make_request_id
from routing_admin.platform.server.request_limit import Receive, Send, announced_length, scope_headers

if TYPE_CHECKING:
    from routing_admin.api.mcp.server import ToolServer

log = logging.getLogger(__name__)

NO_STREAM = "MCP is spoken here by POST alone: there are no sessions, and so no stream to open and nothing to end."


class McpApp:
    """The application at `/mcp`. From its first call until the process ends, the MCP server runs in a task."""

    def __init__(self) -> None:
        self._server: asyncio.Future[ToolServer] | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop_event: asyncio.Event | None = None

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        headers = scope_headers(scope)
        request_id = make_request_id(headers.get("x-request-id", ""))
        send = _named(request_id, send)
        if not is_known_host(headers.get("host", ""), tuple(settings.ALLOWED_HOSTS)):
            message = "This host name is not one of ROUTING_ADMIN_ALLOWED_HOSTS."
            await send_refusal(scope, 400, "host_not_allowed", message, send)
            return
        # Refuse GET: older clients would use it to open a stream that never carries anything.
        if scope["method"] in ("GET", "DELETE"):
            await send_refusal(scope, 405, "method_not_allowed", NO_STREAM, send)
            return
        try:
            caller = await identify(scope, headers, request_id)
        except Exception as error:
            if not unavailable.is_unavailable(error):
                raise
            log.error("a call over MCP needs the database, which does not answer: %s", error)
            await send_refusal(scope, 503, UNAVAILABLE, unavailable.explain(error), send)
            return
        if isinstance(caller, Refusal):
            request_metrics().count_refused_key("mcp", caller.code)
            await send_refusal(scope, caller.status, caller.code, caller.message, send)
            return
        await self._answer(scope, receive, send, caller, make_reservation(caller.principal.holders))

    async def _answer(
        self, scope: Any, receive: Receive, send: Send, caller: McpCaller, reservation: Reservation | None
    ) -> None:
        try:
            if reservation is not None:
                await reservation.enter(announced_length(scope))
            server = await self._run_server()
            body, texts = await _read_body(receive)
            await server.answer({**scope, KEY: caller, LONG_STRINGS: texts}, _replay(body, receive), send)
        except JsonTooLargeError as error:
            await send_refusal(scope, error.status, error.code, str(error), send)
        except OverloadedError as error:
            await send_refusal(scope, error.status, error.code, error.message, send)
        except LimitReachedError as error:
            await send_refusal(scope, error.status, error.code, error.message, send, limit_headers(error))
        finally:
            if reservation is not None:
                reservation.close()

    async def close(self) -> None:
        """Stop the server if it is running; the next call starts a new one."""
        task, self._server, self._task = self._task, None, None
        if task is not None and self._stop_event is not None:
            self._stop_event.set()
            await task

    async def _run_server(self) -> ToolServer:
        loop = asyncio.get_running_loop()
        # A server that was started in another event loop cannot answer here, so start a new one.
        if self._server is None or self._server.get_loop() is not loop:
            self._server, self._stop_event = loop.create_future(), asyncio.Event()
            self._task = loop.create_task(_serve(self._server, self._stop_event))
        # If this caller disconnects, the server's start must continue for the other callers.
        return await asyncio.shield(self._server)


async def _read_body(receive: Receive) -> tuple[bytes, dict[str, str]]:
    # The MCP package parses bodies on the event loop, which delays all other calls. Therefore replace long strings by
    # placeholders first.
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) < LARGE_BYTES:
        return bytes(body), {}
    async with slot(parses(), requester.get()):
        try:
            return await asyncio.to_thread(extract_texts, body)
        except JsonTooLargeError:
            raise
        except ValueError:  # Let the MCP package report the invalid JSON.
            return bytes(body[:LARGE_BYTES]), {}


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Any:
        return waiting.pop() if waiting else await receive()

    return receiving


def _named(request_id: str, send: Send) -> Send:
    # Replace the request id in the response: if the MCP package refused the request, it may have generated its own.
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            other_headers = [header for header in message["headers"] if header[0].lower() != b"x-request-id"]
            message = {**message, "headers": [*other_headers, (b"x-request-id", request_id.encode())]}
        await send(message)

    return sending


async def _serve(ready: asyncio.Future[ToolServer], stop_event: asyncio.Event) -> None:
    # The MCP package's server must be started and closed by the same task.
    try:
        # Importing the package is slow, so it must not block the event loop.
        server = await asyncio.to_thread(_import_server)
        await server.start()
    except Exception as error:
        ready.set_exception(error)
        return
    ready.set_result(server)
    try:
        await stop_event.wait()
    finally:
        await server.close()


def _import_server() -> ToolServer:
    from routing_admin.api.mcp.server import ToolServer

    return ToolServer()
