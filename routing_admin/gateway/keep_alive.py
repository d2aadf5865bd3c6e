"""Start a streamed answer before it has content: with status 200, then a comment every few seconds.

Proxies and clients give up on a silent connection, usually after 60 seconds, while a fallback chain may take minutes.
Headers that are not known at the start follow as comments before the first event. A call that is answered sooner needs
only a timer in the event loop, not a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from routing_admin.platform.server.answers import header_pairs

if TYPE_CHECKING:
    from routing_admin.gateway.errors import GatewayError

REPEAT_SECONDS = 15.0
COMMENT = b": keep-alive\n"
"""A comment without a blank line after it.

openai-go up to March 2026 parses a blank line as an event and fails on its missing data (openai/openai-go#556).
"""
BLANK = b"\r\n"
"""A blank line, for Google's clients, which parse any other line as JSON, and for answers that are a single JSON list.
"""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class KeepAlive:
    """Starts a streamed answer early and keeps its connection alive."""

    __slots__ = ("_begun", "_block", "_make_headers", "_send", "_sent", "_task", "_timer", "has_begun", "write_error")

    write_error: Callable[[GatewayError], bytes]

    def __init__(self, send: Send) -> None:
        self._send, self.has_begun = send, False
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def start(
        self,
        seconds: float,
        block: bytes,
        *,
        headers: Callable[[], Mapping[str, str]],
        begun: Callable[[], None],
        write_error: Callable[[GatewayError], bytes],
    ) -> None:
        """Start the answer after `seconds`, and then send `block` repeatedly until `stop` is called.

        `write_error` formats an error as an event, for an answer that has already started.
        """
        self._block, self._make_headers, self._begun, self.write_error = block, headers, begun, write_error
        self._timer = asyncio.get_running_loop().call_later(seconds, self._start_task)

    async def stop(self) -> None:
        """Stop sending comments; a comment that is being sent is either completed or dropped."""
        if self._timer is None:
            return
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._timer = None
        # Break the reference cycle between these attributes, which refer to the call, and the call, which refers to
        # this object.
        del self._make_headers, self._begun
        if not self.has_begun:
            del self.write_error

    def write_comments(self, headers: Mapping[str, str]) -> bytes:
        """Return, as comments, headers that were unknown at the start, or "" if the format allows only blank lines."""
        if self._block == BLANK:
            return b""
        pairs = [(name, value) for name, value in header_pairs(headers) if name not in self._sent]
        return b"".join([b": %b: %b\n" % pair for pair in pairs])

    def _start_task(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        headers = header_pairs(self._make_headers())
        self._sent = frozenset(name for name, _ in headers)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        # Set this only after sending, because a send that is cancelled while it waits has sent nothing.
        self.has_begun = True
        self._begun()
        while True:
            await self._send({"type": "http.response.body", "body": self._block, "more_body": True})
            await asyncio.sleep(REPEAT_SECONDS)
