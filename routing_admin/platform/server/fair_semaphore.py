"""So many at a time, and so many that wait; beyond that whoever comes is refused, and nobody has all for himself.

A name (an agent, an address) may hold up to three times as many places as are free. So one alone gets three quarters of
them, two get three sevenths each, and there is always one for somebody who has none: the dynamic threshold by which
switches share their buffers (Choudhury and Hahne, 1998).
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
"""For so many places one may wait."""
LARGE_BODIES_MIB = 1024
"""Memory for large bodies in a process; what is made of one takes about as much again."""
THREADS = 16
"""Threads that work on calls' files, each with a connection: fewer than a pool of the database has."""
WAIT_SECONDS = 2.0
"""How long one waits for a place."""


@dataclass(slots=True)
class FairSemaphore:
    """The places of one process for one kind of work; used from one event loop.

    `in_use` and `waiting` are those of the moment, `refused` all that were refused.
    """

    most: int
    queue: int
    wait_seconds: float = WAIT_SECONDS
    in_use: int = 0
    refused: int = 0
    _own: dict[str, int] = field(default_factory=dict)
    _turns: dict[str, int] = field(default_factory=dict)
    _line: list[tuple[str, asyncio.Future[None]]] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._line)

    def take(self, name: str, count: int = 1) -> bool:
        """Whether so many places were free for that name; they are its own then, until `leave`."""
        free = self.most - self.in_use
        own = self._own.get(name, 0) + count
        if count > free or own > SHARE * free:
            return False
        self.in_use += count
        self._own[name] = own
        return True

    async def wait(self, name: str) -> None:
        """Waits for a place, which is that name's own then. Raises `OverloadedError`, `DrainingError`."""
        ahead = sum(each == name for each, _ in self._line)
        if ahead >= SHARE * (self.queue - self.waiting):
            self.refused += 1
            raise OverloadedError
        turn = asyncio.get_running_loop().create_future()
        self._line.append((name, turn))
        try:
            with draining().limit():
                async with asyncio.timeout(self.wait_seconds):
                    await turn
        except BaseException as error:
            self._leave_line(name, turn)
            if isinstance(error, TimeoutError):
                self.refused += 1
                raise OverloadedError from None
            raise

    def leave(self, name: str, count: int = 1) -> None:
        """Gives places back; of those in line whoever holds least has one next, or had one least lately."""
        self.in_use -= count
        left = self._own[name] - count
        if left:
            self._own[name] = left
        else:
            del self._own[name]
        self._line = [each for each in self._line if not each[1].cancelled()]  # who left a moment ago takes none
        while self._line:
            at = min(range(len(self._line)), key=lambda at: self._rank(self._line[at][0]))
            if not self.take(self._line[at][0]):
                return
            waiting, turn = self._line.pop(at)
            self._turns[waiting] = max(self._turns.values(), default=0) + 1
            turn.set_result(None)
        self._turns.clear()

    def _rank(self, name: str) -> tuple[int, int]:
        return self._own.get(name, 0), self._turns.get(name, 0)

    def _leave_line(self, name: str, turn: asyncio.Future[None]) -> None:
        """Nobody waits any more; a place that came at the last moment is given back."""
        if turn.done() and not turn.cancelled():
            self.leave(name)
        else:
            self._line = [each for each in self._line if each[1] is not turn]


class Slot:
    """The place of one call, or several, once it has them."""

    __slots__ = ("_count", "_name", "_places", "at_end")

    _name: str | None

    def __init__(self, places: FairSemaphore) -> None:
        self._places, self._name, self._count = places, None, 1
        self.at_end: Callable[[], None] | None = None

    async def enter(self, name: str) -> None:
        """Has a place from now on, at once where one is free. Raises `OverloadedError`, `DrainingError`."""
        if not self._places.take(name):
            await self._places.wait(name)
        self._name = name

    def enter_at_once(self, name: str, count: int) -> None:
        """Has so many from now on. Raises `OverloadedError` where they are not free."""
        if not self._places.take(name, count):
            self._places.refused += 1
            raise OverloadedError
        self._name, self._count = name, count

    def add(self, name: str, count: int) -> None:
        """Has so many more, for the name that has the others. Raises `OverloadedError` where they are not free."""
        if self._name is None:
            self.enter_at_once(name, count)
            return
        if not self._places.take(self._name, count):
            self._places.refused += 1
            raise OverloadedError
        self._count += count

    def leave(self) -> None:
        """Gives it back, if there is one, and does what is to be done at the end of the call."""
        if self.at_end is not None:
            self.at_end()
        if self._name is not None:
            self._places.leave(self._name, self._count)


@owned
def calls() -> FairSemaphore:
    """Those of chat calls, by agent."""
    return FairSemaphore(settings.MAX_CALLS, settings.MAX_CALLS // QUEUE_SHARE)


@owned
def requests() -> FairSemaphore:
    """Those of everything else, each in a thread of its own; by agent where the key is known, else by address."""
    return FairSemaphore(settings.MAX_REQUESTS, settings.MAX_REQUESTS // QUEUE_SHARE)


@owned
def bodies() -> FairSemaphore:
    """MiB of memory for the large bodies of chat calls, until they are answered; by agent or address."""
    return FairSemaphore(LARGE_BODIES_MIB, 0)


@owned
def parses() -> FairSemaphore:
    """Those of large bodies of chat calls that are unpacked and parsed, one at a time; by agent."""
    return FairSemaphore(1, 64, 30.0)


@owned
def threads() -> FairSemaphore:
    """Threads that may have to wait for a file's reader, by agent; a call waits for one as long as it lives."""
    return FairSemaphore(THREADS, 8 * settings.MAX_CALLS, 3600.0)


@asynccontextmanager
async def slot(places: FairSemaphore, name: str) -> AsyncIterator[None]:
    """Hold one of them. Raises `OverloadedError`, `DrainingError`."""
    place = Slot(places)
    await place.enter(name)
    try:
        yield
    finally:
        place.leave()


@owned
def lookups() -> FairSemaphore:
    """Those of callers whose key has to be looked up in the database, by address."""
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
