"""An in-memory cache for the results of the extraction process.

A document is read for every candidate model of a request, for the preview, and for every later turn of a conversation.
Its text depends only on its bytes and the options, so results are evicted only to free space. A failure may be
temporary, so it expires after a few minutes.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from artifacts.extract.process import Result
from capabilities.runtime import owned

MAX_CACHE_BYTES = 32 * 1024 * 1024
"""Maximum total size of cached results in bytes, per process."""

FAILURE_SECONDS = 300.0
BUSY_SECONDS = 5.0
"""`FAILURE_SECONDS` is how long a failure is cached, and `BUSY_SECONDS` how long the failure `busy` (no free slot for a
process) is cached."""

OVERHEAD = 512
"""Number of bytes that are added to each result's payload size, so that the number of empty results is limited, too."""

Key = tuple[str, ...]


class AnswerCache:
    """A thread-safe LRU cache of at most `max_bytes`. Concurrent requests for the same key share one result."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes, self._clock, self._used = max_bytes, clock, 0
        self._results: OrderedDict[Key, tuple[Result, float]] = OrderedDict()
        self._lock = threading.Lock()
        self._locks: dict[Key, threading.Lock] = {}

    @property
    def used(self) -> int:
        return self._used

    def answer(self, key: Key, make: Callable[[], Result]) -> Result:
        with self._lock:
            making = self._locks.setdefault(key, threading.Lock())
        try:
            with making:
                result = self.find(key)
                if result is None:
                    result = make()
                    self.keep(key, result)
        finally:
            with self._lock:
                self._locks.pop(key, None)
        return result

    def find(self, key: Key) -> Result | None:
        with self._lock:
            if key not in self._results:
                return None
            result, since = self._results[key]
            if result.reason and self._clock() - since >= _seconds_kept(result.reason):
                self._drop(key)
                return None
            self._results.move_to_end(key)
            return result

    def keep(self, key: Key, result: Result) -> None:
        size = _size(result)
        if size > self._max_bytes:
            return
        with self._lock:
            if key in self._results:
                self._drop(key)
            self._results[key] = (result, self._clock())
            self._used += size
            while self._used > self._max_bytes:
                self._drop(next(iter(self._results)))

    def _drop(self, key: Key) -> None:
        result, _ = self._results.pop(key)
        self._used -= _size(result)


def _size(result: Result) -> int:
    return len(result.payload) + OVERHEAD


def _seconds_kept(reason: str) -> float:
    return BUSY_SECONDS if reason == "busy" else FAILURE_SECONDS


answers = owned(AnswerCache)
"""Cache of extraction results for files whose hash is known."""
