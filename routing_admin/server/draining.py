"""The end of a process: what is in flight may finish, and what outlasts that is told so instead of being cut.

The server cancels whatever is left `DRAIN_SECONDS` after SIGTERM. A little earlier everything that still waits for a
provider is given up in order: a stream ends with an error event, a whole answer becomes 503 (faults.md, row 53).
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

from capabilities.core.worded import worded

DRAIN_SECONDS = 30
"""How long requests in flight may take to finish after SIGTERM."""
EARLY_SECONDS = 2
"""How long before the server's own end they are given up, so that the last words still go out."""


DRAINED = "server_draining"
DRAINED_MESSAGE = worded("This server is being stopped before the answer was whole. Send the request again.")


class DrainingError(Exception):
    """The process ends before the answer is whole; another one will take the request."""

    status, code, message = 503, DRAINED, DRAINED_MESSAGE
    should_retry, retry_after = True, 1.0

    def as_json(self) -> dict[str, Any]:
        """The error as `/api/v1` writes it (CONTRACT §4); nobody's attempt was whole."""
        return {"error": self.code, "message": self.message, "attempts": []}


class Draining:
    """Everything of one process that waits for a provider."""

    def __init__(self) -> None:
        self._over = False
        self._waiting: dict[asyncio.Timeout, asyncio.AbstractEventLoop] = {}

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """A stretch of waiting that ends with the drain time. Raises `DrainingError` then."""
        try:
            async with asyncio.timeout(0 if self._over else None) as one:
                self._waiting[one] = asyncio.get_running_loop()
                try:
                    yield
                finally:
                    self._waiting.pop(one, None)
        except TimeoutError:
            if not one.expired():
                raise
            raise DrainingError from None

    def begin(self) -> None:
        """SIGTERM has come: what waits may go on until shortly before the server's end."""
        asyncio.get_running_loop().call_later(DRAIN_SECONDS - EARLY_SECONDS, self.end)

    def end(self) -> None:
        """The time is over for everything that waits, and for whatever would begin to."""
        self._over = True
        self.give_up()

    def give_up(self) -> None:
        """The time is over for everything that waits now, in whichever thread's loop it does."""
        for one, loop in tuple(self._waiting.items()):
            loop.call_soon_threadsafe(self._expire, one)

    def _expire(self, one: asyncio.Timeout) -> None:
        if one in self._waiting:
            one.reschedule(asyncio.get_running_loop().time())

    def listen(self) -> None:
        """Learns of SIGTERM and SIGINT beside the server, whose own handlers stay; in a main thread only."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)

            def begin_draining(number: int, frame: FrameType | None, before: object = before) -> None:
                loop.call_soon_threadsafe(self.begin)
                if callable(before):
                    before(number, frame)

            signal.signal(number, begin_draining)


draining = Draining()
"""This process's."""
