"""The newest version of a stamped value in rows, for a process that must not read it at every use.

`current()` is never older than `FRESH_SECONDS`: whoever finds it older waits for a look, one look for all who come
meanwhile. Where the rows cannot be read the value known goes on, and it is told since when (faults.md, row 55).
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
"""How old a look may be: less than the second within which a change holds in every process (CONTRACT §3)."""
OUTAGE_SECONDS = 15 * 60.0
"""How long after the last good look calls go on with what is in memory while the database does not answer."""
NEVER = float("-inf")


class Stamped(Protocol):
    """A value that says which change it was built after."""

    @property
    def stamp(self) -> int:
        """The number of that change."""


S = TypeVar("S", bound=Stamped)


@dataclass(frozen=True, slots=True)
class ReadState(Generic[S]):
    """What is known at one moment, swapped whole: the value, when it was last looked for and last found the newest.

    Both moments are by the clock of `StampedCache`; `unread_since` is a time of day, None while the rows can be read.
    `stamp` is the last one seen: newer than the value's where the rows behind it could not be read.
    """

    value: S
    stamp: int
    looked_at: float
    read_at: float
    unread_since: datetime | None = None


class StampedCache(Generic[S]):
    """Holds the newest value; `stamp` asks the rows for the number of the last change, `build` reads them all."""

    def __init__(
        self, build: Callable[[], S], stamp: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._build, self._ask_stamp, self._clock = build, stamp, clock
        self._state: ReadState[S] | None = None
        self._looking = threading.Lock()

    def current(self) -> S:
        """The newest value. Raises what reading it raises as long as none is known at all."""
        came, state = self._clock(), self._state
        if state is not None and came - state.looked_at <= FRESH_SECONDS:
            return state.value
        with self._looking:
            state = self._state
            if state is None:
                return self._read().value
            return (state if came - state.looked_at <= FRESH_SECONDS else self._look(state)).value

    def fresh(self) -> S | None:
        """The newest value where that is known without asking the rows; None where they have to be looked at."""
        state = self._state
        return state.value if state is not None and self._clock() - state.looked_at <= FRESH_SECONDS else None

    def look(self) -> None:
        """Looks now, however fresh the value is, so that nobody has to wait for it; the first use reads it."""
        with self._looking:
            if self._state is not None:
                self._look(self._state)

    def refresh(self) -> S:
        """Reads the value whatever its stamp says. Raises what reading raises; the next use looks again then."""
        with self._looking:
            if self._state is not None:
                self._state = replace(self._state, looked_at=NEVER)
            return self._read().value

    def unread_since(self) -> datetime | None:
        """Since when the rows cannot be read; None while they can."""
        return self._state.unread_since if self._state else None

    def stamp(self) -> int:
        """The number of the last change seen, of a value that could not be read too; what is kept elsewhere under
        another one is out of date. Call `current()` first: raises `LookupError` as long as nothing was read.
        """
        if self._state is None:
            raise LookupError("nothing was read yet")
        return self._state.stamp

    def read_at(self) -> float:
        """When the value was last found to be the newest, by the clock given; before all time where none is known."""
        return self._state.read_at if self._state else NEVER

    def is_usable(self) -> bool:
        """Whether a value is known that calls may go on with, without asking the rows."""
        state = self._state
        return state is not None and (not state.unread_since or self._clock() - state.read_at < OUTAGE_SECONDS)

    def _read(self) -> ReadState[S]:
        began, value = self._clock(), self._build()
        self._state = ReadState(value, value.stamp, began, began)
        return self._state

    def _look(self, state: ReadState[S]) -> ReadState[S]:
        """What is known after one look; a failed one keeps the value."""
        began, stamp = self._clock(), state.stamp
        try:
            with lock_timeout(LOOK_WAIT_SECONDS):
                stamp = self._ask_stamp()
                value = state.value if stamp == state.value.stamp else self._build()
        except SynchronousOnlyOperation:  # a call on an event loop: our mistake, not the database's
            raise
        except Exception as error:  # whatever stands in the way of reading, calls go on with what is known
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
