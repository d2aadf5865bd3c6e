"""The server's HTTP protocol: uvicorn's, with timeouts, so that no caller occupies a connection for too long.

A request whose head and body arrive together starts no timer. An incomplete request has a timer. When the timer fires,
the caller receives a 408 and the connection is closed, unless the server itself delays the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from enum import Enum
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from routing_admin.platform.auth.addresses import client_address
from routing_admin.platform.server.answers import send_refusal
from routing_admin.platform.server.connections import HEALTH_PATHS, Connections, process_connections
from routing_admin.platform.server.request_reading import RequestReader

TOO_MANY = "too_many_connections"
TOO_MANY_MESSAGE = "Too many open connections from this address. Close some, or retry in a second."
FULL_MESSAGE = "This server has as many open connections as it may have. Retry in a second."
LAST_REQUEST_SECONDS = 0.5
"""How long idle connections of a stopping server still accept a request, in seconds, because a proxy may just have sent
one.
"""


class Part(Enum):
    HEAD = "head"
    BODY = "body"
    NOTHING = "nothing"


HEAD, BODY, NOTHING = Part


class Protocol(RequestReader):
    """uvicorn's protocol, with limits on a caller's connections and on the time for sending a request."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        connections: Connections | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._application: Any = self.app
        self.app: Any = self._answer
        self._counted = process_connections() if connections is None else connections
        self._limits = self._counted.limits
        self._max_head = self._limits.head_bytes
        self._timed, self._ends, self._only_health = NOTHING, False, False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Above the limit on connections, serve only health checks.
        self._only_health = not self._counted.add(self)
        if self._only_health and not self._counted.has_room_for_health():
            self._refuse(503, TOO_MANY, FULL_MESSAGE)
        elif not self._only_health and not self._limits.proxies and not self._counted.enter(self, self._peer):
            self._refuse(503, TOO_MANY, TOO_MANY_MESSAGE)
        else:
            self._time(HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()
        self._counted.remove(self)
        if not self._limits.proxies:
            self._counted.leave(self, self._peer)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        # The server is stopping, so the response must announce that it is the last one on this connection.
        if self._ends and self.cycle is not None:
            self.cycle.keep_alive = False

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # The timer runs only while a request is incomplete.
        if not self._whole or self.cycle.response_complete:
            self._watch(len(data))
        elif self._timer is not None:
            self._stop_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._drop_unread()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._drop_unread()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def shutdown(self) -> None:
        # Finish requests in progress, and keep idle connections open briefly for a request that may be on its way.
        if self.cycle is None or self.cycle.response_complete:
            self._ends = True
            self.loop.call_later(LAST_REQUEST_SECONDS, super().shutdown)
        else:
            super().shutdown()

    @property
    def waits_for_head(self) -> bool:
        waits = self._timed is HEAD and (self.cycle is None or self.cycle.response_complete)
        return waits and not self.transport.is_closing()

    @property
    def is_idle(self) -> bool:
        answered = self._whole and self.cycle is not None and self.cycle.response_complete
        return answered and not self.transport.is_closing()

    def make_room(self) -> None:
        if self.waits_for_head:
            self._refuse(503, TOO_MANY, TOO_MANY_MESSAGE)
        else:
            self._close()

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _watch(self, size: int) -> None:
        # Bytes between two requests count as the start of the next one.
        head_is_whole = self.cycle is not None and self.cycle.scope is self.scope
        part = BODY if head_is_whole and not self._whole else HEAD
        if self.transport.is_closing():
            self._drop_unread()
            return
        if self._timed is not part:
            self._time(part)
            return
        self._received += size
        if part is HEAD and self._received > self._max_head:
            self._refuse(*self._too_large("request headers"))

    def _time(self, part: Part) -> None:
        self._stop_timer()
        self._timed, self._received = part, 0
        seconds = self._limits.head_seconds if part is HEAD else self._limits.body_seconds
        self._timer = self.loop.call_later(seconds, self._look)

    def _stop_timer(self) -> None:
        self._timed = NOTHING
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        part, limits = self._timed, self._limits
        if self.transport.is_closing():
            return
        # Restart the timer if the server itself delays the request, or if the body arrives fast enough.
        if self._lets_wait(part) or self._comes_fast_enough(part):
            self._time(part)
        elif part is HEAD:
            rule = f"The request headers did not arrive within {limits.head_seconds:g} s."
            self._refuse(408, "request_timeout", f"{rule} Send it again.")
        else:
            rate = f"{limits.body_rate} bytes per second"
            rule = f"The body did not arrive within {limits.body_seconds:g} s, nor at {rate}."
            self._refuse(408, "request_timeout", f"{rule} Send it again over a faster connection.")

    def _lets_wait(self, part: Part) -> bool:
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return False
        # The caller may have sent more than was read, because an earlier request is being answered, or reading is
        # paused.
        return part is HEAD or bool(self.pipeline) or self.flow.read_paused or bool(cycle.body)

    def _comes_fast_enough(self, part: Part) -> bool:
        # The body of a request that has been answered is no longer needed.
        if part is HEAD or self.cycle.response_complete:
            return False
        return self._received >= self._limits.body_seconds * self._limits.body_rate

    def _close(self) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            self.transport.close()
            self._drop_unread()

    def _drop_unread(self, before: int | None = None) -> None:
        # While the connection is closing, keep the rest of a response only as long as the caller continues to read it.
        left, closing = self.transport.get_write_buffer_size(), self.transport.is_closing()
        if left and closing and before is not None and left >= before:
            self.transport.abort()
        elif left:
            self.loop.call_later(self._limits.unread_seconds, self._drop_unread, left if closing else None)

    def _answer(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        app = self._application
        if self._only_health and scope["path"] not in HEALTH_PATHS:
            app = _refuse_request
        elif self._limits.proxies:
            app = self._count_request(app)
        cycle = self._running
        # HTTP/1.0 has no chunked encoding, so a response of unknown length ends when the connection is closed.
        if cycle is not None and scope["http_version"] == "1.0":
            app = _without_chunks(cycle, app)
        return cast("Awaitable[None]", app(scope, receive, send))

    def _count_request(self, app: Any) -> Any:
        async def counting(scope: Any, receive: Any, send: Any) -> None:
            forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
            meta = {"HTTP_X_FORWARDED_FOR": forwarded.decode("latin-1"), "REMOTE_ADDR": self._peer}
            address = client_address(meta, self._limits.proxies)
            if not self._counted.enter(self, address):
                await send_refusal(scope, 503, TOO_MANY, TOO_MANY_MESSAGE, send)
                return
            try:
                await app(scope, receive, send)
            finally:
                self._counted.leave(self, address)

        return counting


async def _refuse_request(scope: Any, receive: Any, send: Any) -> None:
    await send_refusal(scope, 503, TOO_MANY, FULL_MESSAGE, send)


def _without_chunks(cycle: RequestResponseCycle, app: Any) -> Any:
    async def answering(scope: Any, receive: Any, send: Any) -> None:
        is_open = False

        async def sending(message: Any) -> None:
            nonlocal is_open
            if message["type"] == "http.response.start":
                is_open = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
                cycle.chunked_encoding = False if is_open else None
            elif is_open:
                # uvicorn compares the body with the declared length, so before each block, set this length to the
                # block's.
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await app(scope, receive, sending)

    return answering
