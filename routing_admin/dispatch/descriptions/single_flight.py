"""Two calls at once that want the same of a model: one asks, the other waits for what it hears."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """The questions of this process that are under way, whichever event loop asks them."""

    def __init__(self) -> None:
        self._flights: dict[str, Future[T | None]] = {}
        self._lock = threading.Lock()

    async def join(self, key: str, ask: Callable[[], Awaitable[T]], is_for_all: Callable[[T], bool]) -> T:
        """What `ask` gives, or what a call before this one is given, where that is for all; its caller may leave."""
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None:
                    own = self._flights[key] = Future()
            if flight is None:
                return await self._ask(key, own, ask)
            given = await asyncio.shield(asyncio.wrap_future(flight))
            if given is not None and is_for_all(given):
                return given

    async def _ask(self, key: str, own: Future[T | None], ask: Callable[[], Awaitable[T]]) -> T:
        given: T | None = None
        try:
            given = await ask()
            return given
        finally:
            with self._lock:
                del self._flights[key]
            own.set_result(given)
