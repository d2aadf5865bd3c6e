"""Answers of the extraction process, kept in memory: what was taken out of some bytes once need not be taken again.

A document in a chain of three candidates, in its preview and in every later turn of a conversation is one file; its
words depend on its bytes and on what was asked alone, so nothing ever has to be forgotten but for room. A failure may
have been the moment's, so it is believed for some minutes only.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from artifacts.extract.process import Result

ROOM = 32 * 1024 * 1024
"""Bytes of answers that are kept, of all files together and in each process."""

BELIEVED_SECONDS = 300.0
BUSY_SECONDS = 5.0
"""How long a failure stands before the file is tried again, and that nobody was free to look."""

OVERHEAD = 512
"""Bytes that an answer counts beside its payload, so that many empty ones fill the room, too."""

Key = tuple[str, ...]


class AnswerCache:
    """The last used answers, at most `room` bytes; safe for threads. Those who ask for the same share one answer."""

    def __init__(self, room: int = ROOM, clock: Callable[[], float] = time.monotonic) -> None:
        self._room, self._clock, self._used = room, clock, 0
        self._results: OrderedDict[Key, tuple[Result, float]] = OrderedDict()
        self._lock = threading.Lock()
        self._locks: dict[Key, threading.Lock] = {}

    @property
    def used(self) -> int:
        """Bytes that are kept."""
        return self._used

    def answer(self, key: Key, make: Callable[[], Result]) -> Result:
        """The kept answer, or the one that `make` gives, which is kept where it may be."""
        with self._lock:
            making = self._locks.setdefault(key, threading.Lock())
        try:
            with making:
                result = self._find(key)
                if result is None:
                    result = make()
                    self._keep(key, result)
        finally:
            with self._lock:
                self._locks.pop(key, None)
        return result

    def _find(self, key: Key) -> Result | None:
        with self._lock:
            if key not in self._results:
                return None
            result, since = self._results[key]
            if result.reason and self._clock() - since >= _seconds_kept(result.reason):
                self._drop(key)
                return None
            self._results.move_to_end(key)
            return result

    def _keep(self, key: Key, result: Result) -> None:
        size = _size(result)
        if size > self._room:
            return
        with self._lock:
            if key in self._results:
                self._drop(key)
            self._results[key] = (result, self._clock())
            self._used += size
            while self._used > self._room:
                self._drop(next(iter(self._results)))

    def _drop(self, key: Key) -> None:
        result, _ = self._results.pop(key)
        self._used -= _size(result)


def _size(result: Result) -> int:
    return len(result.payload) + OVERHEAD


def _seconds_kept(reason: str) -> float:
    return BUSY_SECONDS if reason == "busy" else BELIEVED_SECONDS
