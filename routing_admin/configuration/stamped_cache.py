"""Cache a value that is built from database rows, because processes cannot read all of these rows at each use.

The stamp is the number of the newest change that the value includes. `current()` returns a value that was checked at
most `FRESH_SECONDS` ago; callers that find a value checked longer ago wait for one shared check. While the rows cannot
be read, the cached value stays in use, and the cache records when this began.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from django.utils import timezone

from routing_admin.platform.databases.explaining import explain_failure
from routing_admin.platform.databases.lock_timeout import LOOK_WAIT_SECONDS, lock_timeout
from routing_admin.platform.databases.router import drop_connections

log = logging.getLogger(__name__)

FRESH_SECONDS = 0.9
"""A value may be used for this many seconds after its stamp was checked. Changes must take effect in every process
within one second, so this is slightly less.
"""
OUTAGE_SECONDS = 15 * 60.0
"""If the database does not respond, requests continue for this many seconds after the last successful check."""
NEVER = float("-inf")


class Stamped(Protocol):
    """A value with the number of the newest change that it includes."""

    @property
    def stamp(self) -> int: ...


S = TypeVar("S", bound=Stamped)


@dataclass(frozen=True, slots=True)
class ReadState(Generic[S]):
    """The cache's state at one moment, replaced as a whole at each check.

    `looked_at` is the time of the last check and `read_at` that of the last successful one, both on the cache's
    monotonic clock. `unread_since` is a wall-clock time, or None while the rows can be read. `stamp` is the last stamp
    that was read; it is newer than the value's stamp if the rows could not be read after it.
    """

    value: S
    stamp: int
    looked_at: float
    read_at: float
    unread_since: datetime | None = None


class StampedCache(Generic[S]):
    """Cache of the newest value.

    `stamp` returns the number of the last change; `build` makes the value from all rows.
    """

    def __init__(
        self, build: Callable[[], S], stamp: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._build, self._ask_stamp, self._clock = build, stamp, clock
        self._state: ReadState[S] | None = None
        self._looking = threading.Lock()

    def current(self) -> S:
        """Return the newest value. The first call reads it, and raises an error if that fails."""
        requested_at, state = self._clock(), self._state
        if state is not None and requested_at - state.looked_at <= FRESH_SECONDS:
            return state.value
        with self._looking:
            state = self._state
            if state is None:
                return self._read().value
            # Another thread may have checked the stamp while this one waited for the lock.
            return (state if requested_at - state.looked_at <= FRESH_SECONDS else self._look(state)).value

    def fresh(self) -> S | None:
        """Return the cached value if its last check is recent enough, otherwise None."""
        state = self._state
        return state.value if state is not None and self._clock() - state.looked_at <= FRESH_SECONDS else None

    def look(self) -> None:
        """Check the stamp now, so that no request has to wait for it.

        This never reads the first value; `current` and `refresh` do.
        """
        with self._looking:
            if self._state is not None:
                self._look(self._state)

    def refresh(self) -> S:
        """Read the value again, regardless of its stamp. If reading fails, the next use checks again."""
        with self._looking:
            if self._state is not None:
                self._state = replace(self._state, looked_at=NEVER)
            return self._read().value

    def unread_since(self) -> datetime | None:
        return self._state.unread_since if self._state else None

    def stamp(self) -> int:
        """Return the last stamp that was read, even if the value could not be read afterwards.

        Caches that were filled under another stamp are outdated. Raise `LookupError` before the first read.
        """
        if self._state is None:
            raise LookupError("nothing was read yet")
        return self._state.stamp

    def read_at(self) -> float:
        return self._state.read_at if self._state else NEVER

    def is_usable(self) -> bool:
        """Return whether requests may still use the cached value."""
        state = self._state
        return state is not None and (not state.unread_since or self._clock() - state.read_at < OUTAGE_SECONDS)

    def _read(self) -> ReadState[S]:
        began, value = self._clock(), self._build()
        self._state = ReadState(value, value.stamp, began, began)
        return self._state

    def _look(self, state: ReadState[S]) -> ReadState[S]:
        began, stamp = self._clock(), state.stamp
        try:
            with lock_timeout(LOOK_WAIT_SECONDS):
                stamp = self._ask_stamp()
                value = state.value if stamp == state.value.stamp else self._build()
        except SynchronousOnlyOperation:  # Only a programming error leads here: the method was called on an event loop.
            raise
        # Whatever the error is, requests continue with the cached value.
        except Exception as error:
            self._state = self._unread(replace(state, stamp=stamp), error)
        else:
            if state.unread_since is not None:
                log.warning("the configuration can be read from the database again")
            self._state = ReadState(value, value.stamp, began, began)
        return self._state

    def _unread(self, state: ReadState[S], error: Exception) -> ReadState[S]:
        drop_connections()
        if state.unread_since is None:
            problem = explain_failure(error) or f"{type(error).__name__}: {error}"
            log.error("the configuration cannot be read from the database, calls go on with what is known: %s", problem)
        return replace(state, looked_at=self._clock(), unread_since=state.unread_since or timezone.now())
