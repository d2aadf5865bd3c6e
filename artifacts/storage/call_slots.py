"""How many calls to a remote store are under way at a time, so that a store that hangs does not take every thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MAX_CALLS, MAX_UNANSWERED = 32, 8
"""Calls that may be under way, and how many while none was answered for `SLOW_SECONDS`: fewer than the gateway has
threads for files, so that a service that hangs does not take them all."""
SLOW_SECONDS = 3.0
SLOT_SECONDS = 2.0
"""How long a call waits for others to end."""


class CallSlots:
    """A semaphore for the calls of one process, with fewer slots while the service answers none of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._freed = clock, threading.Condition()
        self._in_use, self._answered_at = 0, 0.0

    def acquire(self) -> bool:
        """Whether a slot was free, or became free in time."""
        with self._freed:
            until = self._clock() + SLOT_SECONDS
            while self._in_use >= (MAX_UNANSWERED if self._is_quiet() else MAX_CALLS):
                left = until - self._clock()
                if left <= 0 or self._is_quiet():
                    return False
                self._freed.wait(left)
            self._answered_at = self._answered_at if self._in_use else self._clock()
            self._in_use += 1
            return True

    def release(self) -> None:
        """Give the slot of an answered call back."""
        with self._freed:
            self._in_use, self._answered_at = self._in_use - 1, self._clock()
            self._freed.notify()

    def _is_quiet(self) -> bool:
        return bool(self._in_use) and self._clock() - self._answered_at > SLOW_SECONDS
