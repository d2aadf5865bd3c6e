"""One timer of the event loop for all the waits of an exchange, instead of one for each wait.

A wait only moves the moment. The loop's timer is set again when it would ring too late, or has rung too early.
"""

from __future__ import annotations

import asyncio
from typing import Self

AHEAD_SECONDS = 5.0
"""How far ahead the loop's timer is set at most, so that a shorter wait that follows needs no other one."""


class WaitTooLongError(Exception):
    """What was waited for did not come within its time; `total` says that it was the whole exchange's."""

    def __init__(self, *, total: bool) -> None:
        super().__init__("the whole time is over" if total else "the time for this is over")
        self.total = total


class PhaseTimer:
    """The times of one exchange: `total` seconds for all of it, and for each wait its own; one wait at a time.

    A wait stands in `with timer.until(...)`, which raises `WaitTooLongError` at its end where it took too long.
    """

    __slots__ = ("_handle", "_loop", "_others", "_rang", "_rings_at", "_task", "_until", "deadline")

    def __init__(self, total: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.deadline = self._loop.time() + total
        self._until = self.deadline
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._rang = False
        self._rings_at = 0.0
        self._others = 0

    def until(self, moment: float) -> Self:
        """For a `with` around one wait, which may last until the loop's clock shows that moment."""
        self._until = min(moment, self.deadline)
        return self

    def within(self, seconds: float) -> Self:
        """For a `with` around one wait, which may take so long."""
        return self.until(self._loop.time() + seconds)

    def __enter__(self) -> None:
        self._task = task = asyncio.current_task(self._loop)
        if self._handle is None or self._rings_at > self._until:
            self._set(self._until)
        self._others = task.cancelling() if task is not None else 0

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        task, rang = self._task, self._rang
        self._task, self._rang = None, False
        if kind is None or not rang or task is None:
            return
        ended = task.uncancel() <= self._others  # whatever the wait made of being cancelled: the task is not, any more
        if ended and issubclass(kind, asyncio.CancelledError):
            raise WaitTooLongError(total=self._until >= self.deadline) from None

    def close(self) -> None:
        """Nothing is waited for any more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _set(self, until: float) -> None:
        self.close()
        self._rings_at = min(until, self._loop.time() + AHEAD_SECONDS)
        self._handle = self._loop.call_at(self._rings_at, self._ring)

    def _ring(self) -> None:
        self._handle = None
        if self._task is None:
            return
        if self._until > self._loop.time():
            self._set(self._until)
            return
        self._rang = True
        self._task.cancel()
