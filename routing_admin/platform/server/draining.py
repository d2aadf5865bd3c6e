"""The end of a process: requests in flight may finish; those that outlast it get an error instead of a cut connection.

The server cancels whatever is left `ROUTING_ADMIN_DRAIN_SECONDS` after SIGTERM. A little earlier everything that still
waits for a provider is given up in order: a stream ends with an error event, a whole answer becomes 503 (faults.md,
row 53).
"""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType
from typing import Any

from django.conf import settings

from capabilities.core.translatable import translatable
from capabilities.runtime import owned
from routing_admin.core.fallback.endings import DRAINED
from routing_admin.platform.server.process_mark import process_mark

EARLY_SECONDS = 2.0
"""How long before the server's own end they are given up, so that the last words still go out."""
DRAINED_MESSAGE = translatable("The server is shutting down before the answer was complete. Send the request again.")


class DrainingError(Exception):
    """The process ends before the answer is whole; another one will take the request."""

    status, code, message = 503, DRAINED, DRAINED_MESSAGE
    should_retry, retry_after = True, 1.0

    def as_json(self) -> dict[str, Any]:
        """The error as `/api/v1` writes it (CONTRACT §4); nobody's attempt was whole."""
        return {"error": self.code, "message": self.message, "attempts": []}


class WaitingPeriod:
    """A stretch of waiting of one task, known to the draining as long as it lasts."""

    __slots__ = ("_others", "_over", "_reason", "_task", "_waiting")

    def __init__(self, waiting: dict[WaitingPeriod, asyncio.AbstractEventLoop], *, over: bool) -> None:
        self._waiting, self._over = waiting, over
        self._reason: Exception | None = None

    def __enter__(self) -> None:
        loop = self._waiting[self] = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        self._others = self._task.cancelling() if self._task else 0
        if self._over:
            loop.call_soon(self.give_up)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._waiting.pop(self, None)
        cancelled = self._reason is not None and kind is asyncio.CancelledError
        if cancelled and self._task and self._task.uncancel() <= self._others:
            raise self._reason or DrainingError() from None

    def give_up(self, reason: Exception | None = None) -> None:
        """Wait no longer: the task that waits gets the reason raised, by default that the process ends."""
        if self in self._waiting and self._task is not None:
            self._reason = reason or DrainingError()
            self._task.cancel()


class Draining:
    """Everything of one process that waits for a provider."""

    def __init__(self) -> None:
        self.has_begun = self._over = False
        self._waiting: dict[WaitingPeriod, asyncio.AbstractEventLoop] = {}

    def limit(self) -> WaitingPeriod:
        """A stretch of waiting that ends with the drain time. Raises `DrainingError` then."""
        return WaitingPeriod(self._waiting, over=self._over)

    def schedule_end(self) -> None:
        """SIGTERM has come: what waits may go on until shortly before the server's end."""
        process_mark().remove()
        self.has_begun, seconds = True, settings.DRAIN_SECONDS
        asyncio.get_running_loop().call_later(max(seconds - EARLY_SECONDS, seconds / 2), self.end)

    def check(self) -> None:
        """Raises `DrainingError` once the time is over: for a stream that never has to wait."""
        if self._over:
            raise DrainingError

    def end(self) -> None:
        """The time is over for everything that waits, and for whatever would begin to."""
        self._over = True
        self.give_up()

    def give_up(self) -> None:
        """The time is over for everything that waits now, in whichever thread's loop it does."""
        for one, loop in tuple(self._waiting.items()):
            loop.call_soon_threadsafe(one.give_up)

    def listen(self) -> None:
        """Learns of SIGTERM and SIGINT beside the server, whose own handlers stay; in a main thread only."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)

            def begin_draining(number: int, frame: FrameType | None, before: object = before) -> None:
                loop.call_soon_threadsafe(self.schedule_end)
                if callable(before):
                    before(number, frame)

            signal.signal(number, begin_draining)


draining = owned(Draining)
