"""Fair limit on concurrency with a bounded queue: no caller can occupy all slots.

A caller (named by agent or IP address) may occupy up to three times as many slots as are free. A single caller gets
three quarters of all slots, two callers get three sevenths each, and a caller without a slot always finds a free slot.
Network switches share their buffers by the same dynamic threshold (Choudhury and Hahne, 1998).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from django.conf import settings

from capabilities.fair_slots import SHARE, OverloadedError
from capabilities.runtime import owned
from routing_admin.platform.server.draining import draining

QUEUE_SHARE = 4
"""The queue has room for one waiting call per this many slots."""
LARGE_BODIES_MIB = 1024
"""Memory in MiB for large bodies in one process; parsing a body takes about as much memory again."""
THREADS = 16
"""Number of threads that process files for calls. It is below a pool's size, because each needs a database connection.
"""
WAIT_SECONDS = 2.0
"""Maximum time that a request waits for a slot, in seconds."""


@dataclass(slots=True)
class FairSemaphore:
    """One process's slots for one type of work. Use each instance from one event loop only.

    `in_use` is the number of occupied slots, `waiting` the number of waiting callers, `refused` the number of
    rejections.
    """

    most: int
    queue: int
    wait_seconds: float = WAIT_SECONDS
    in_use: int = 0
    refused: int = 0
    _own: dict[str, int] = field(default_factory=dict)
    _turns: dict[str, int] = field(default_factory=dict)
    _waiters: list[tuple[str, asyncio.Future[None]]] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    def take(self, name: str, count: int = 1) -> bool:
        """Take `count` slots and return True if enough slots are free for `name`; `leave` releases them."""
        free = self.most - self.in_use
        own = self._own.get(name, 0) + count
        # With a SHARE of 3, a single caller gets at most three quarters of all slots.
        if count > free or own > SHARE * free:
            return False
        self.in_use += count
        self._own[name] = own
        return True

    async def wait(self, name: str) -> None:
        """Wait for a slot; raise `OverloadedError` or `DrainingError`."""
        ahead = sum(waiting_name == name for waiting_name, _ in self._waiters)
        # The queue is divided between callers by the same rule as the slots.
        if ahead >= SHARE * (self.queue - self.waiting):
            self.refused += 1
            raise OverloadedError
        granted = asyncio.get_running_loop().create_future()
        self._waiters.append((name, granted))
        try:
            with draining().limit():
                async with asyncio.timeout(self.wait_seconds):
                    await granted
        except BaseException as error:
            self._leave_queue(name, granted)
            if isinstance(error, TimeoutError):
                self.refused += 1
                raise OverloadedError from None
            raise

    def leave(self, name: str, count: int = 1) -> None:
        """Release slots, and pass them to the waiting caller with the fewest slots.

        Of several such callers, the one that has not been served for the longest time gets them.
        """
        self.in_use -= count
        left = self._own[name] - count
        if left:
            self._own[name] = left
        else:
            del self._own[name]
        # Waiters that were cancelled take no slots.
        self._waiters = [waiter for waiter in self._waiters if not waiter[1].cancelled()]
        while self._waiters:
            at = min(range(len(self._waiters)), key=lambda at: self._rank(self._waiters[at][0]))
            if not self.take(self._waiters[at][0]):
                return
            waiting, granted = self._waiters.pop(at)
            # Callers that hold the same number of slots take turns.
            self._turns[waiting] = max(self._turns.values(), default=0) + 1
            granted.set_result(None)
        self._turns.clear()

    def _rank(self, name: str) -> tuple[int, int]:
        return self._own.get(name, 0), self._turns.get(name, 0)

    def _leave_queue(self, name: str, granted: asyncio.Future[None]) -> None:
        # If the slot was granted just as the wait ended, release it.
        if granted.done() and not granted.cancelled():
            self.leave(name)
        else:
            self._waiters = [waiter for waiter in self._waiters if waiter[1] is not granted]


class Slot:
    """The slots of one call; `leave` releases them and runs `at_end`."""

    __slots__ = ("_count", "_name", "_semaphore", "at_end")

    _name: str | None

    def __init__(self, semaphore: FairSemaphore) -> None:
        self._semaphore, self._name, self._count = semaphore, None, 1
        self.at_end: Callable[[], None] | None = None

    async def enter(self, name: str) -> None:
        """Take a slot, waiting for it if necessary; raise `OverloadedError` or `DrainingError`."""
        if not self._semaphore.take(name):
            await self._semaphore.wait(name)
        self._name = name

    def enter_at_once(self, name: str, count: int) -> None:
        """Take `count` slots; raise `OverloadedError` if there are not enough free slots."""
        if not self._semaphore.take(name, count):
            self._semaphore.refused += 1
            raise OverloadedError
        self._name, self._count = name, count

    def add(self, name: str, count: int) -> None:
        """Take `count` more slots for the same name; raise `OverloadedError` if there are not enough free slots."""
        if self._name is None:
            self.enter_at_once(name, count)
            return
        if not self._semaphore.take(self._name, count):
            self._semaphore.refused += 1
            raise OverloadedError
        self._count += count

    def leave(self) -> None:
        if self.at_end is not None:
            self.at_end()
        if self._name is not None:
            self._semaphore.leave(self._name, self._count)


@owned
def calls() -> FairSemaphore:
    """Return the semaphore for chat calls; its slots are shared between agents."""
    return FairSemaphore(settings.MAX_CALLS, settings.MAX_CALLS // QUEUE_SHARE)


@owned
def requests() -> FairSemaphore:
    """Return the semaphore for all other requests, each of which needs a thread.

    Its slots are shared between agents, or between IP addresses if the key is not cached.
    """
    return FairSemaphore(settings.MAX_REQUESTS, settings.MAX_REQUESTS // QUEUE_SHARE)


@owned
def bodies() -> FairSemaphore:
    """Return the semaphore for large bodies of chat calls, with one slot per MiB, held until the call is answered.

    Its slots are shared between agents, or between IP addresses if the agent is unknown.
    """
    return FairSemaphore(LARGE_BODIES_MIB, 0)


@owned
def parses() -> FairSemaphore:
    """Return the semaphore with one slot for decompressing and parsing large bodies of chat calls."""
    return FairSemaphore(1, 64, 30.0)


@owned
def threads() -> FairSemaphore:
    """Return the semaphore for threads that process files, for which a call may wait up to an hour."""
    return FairSemaphore(THREADS, 8 * settings.MAX_CALLS, 3600.0)


@asynccontextmanager
async def slot(semaphore: FairSemaphore, name: str) -> AsyncIterator[None]:
    """Hold a slot during the block; raise `OverloadedError` or `DrainingError`."""
    held_slot = Slot(semaphore)
    await held_slot.enter(name)
    try:
        yield
    finally:
        held_slot.leave()


@owned
def lookups() -> FairSemaphore:
    """Return the semaphore for looking up keys in the database; its slots are shared between IP addresses."""
    return FairSemaphore(settings.MAX_REQUESTS, 0)


__all__ = [
    "FairSemaphore",
    "OverloadedError",
    "Slot",
    "bodies",
    "calls",
    "lookups",
    "parses",
    "requests",
    "slot",
    "threads",
]
