"""A fair concurrency limit for expensive work, with a bounded queue that no single caller can fill."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from capabilities.core.translatable import translatable
from capabilities.runtime import owned

SHARE = 3
"""Maximum ratio of one caller's waiting threads to the free places in the queue."""
OVERLOADED_MESSAGE = translatable(
    "This server is at its limit, overall or for you. Send the request again in a second."
)

requester: ContextVar[str] = ContextVar("requester", default="")
"""The agent or IP address for which this task or thread works. It is empty if the process works for itself."""


class OverloadedError(Exception):
    """No slot became free in time. A later attempt may succeed."""

    status, code, message = 503, "overloaded", OVERLOADED_MESSAGE
    should_retry, retry_after = True, 1.0


@dataclass(frozen=True, slots=True)
class _Waiter:
    name: str
    patient_until: float
    turn: threading.Event = field(default_factory=threading.Event)


class FairSlots:
    """Limits how many threads work at the same time. All others wait in a bounded queue.

    A caller is identified by name, which is an agent or an IP address. If no name is given, the name in `requester` is
    used. No caller can fill the queue, and none holds more than `max_per_name` slots. If work has a `patience` in
    seconds, other work goes first for that long.
    """

    def __init__(self, slots: int, queue: int, wait_seconds: float, max_per_name: int | None = None) -> None:
        self.slots, self.queue, self.wait_seconds = slots, queue, wait_seconds
        self._max_per_name = max_per_name or slots
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        self._waiters: list[_Waiter] = []
        self._thread = threading.local()

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    @contextmanager
    def hold(self, name: str = "", patience: float = 0.0) -> Iterator[None]:
        """Hold a slot in a `with` block. Raise OverloadedError if none becomes free.

        Nested calls in a thread share its slot. Acquire the slot before a database lock or connection, never the other
        way round.
        """
        # This thread already has a slot, and waiting for a second one could deadlock.
        if self._holder() is not None:
            yield
            return
        name = name or requester.get()
        self.acquire(name, patience)
        self._thread.name = name
        try:
            yield
        finally:
            if self._holder() is not None:  # After a failed `pause`, this thread has no slot.
                self._thread.name = None
                self.release(name)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Release this thread's slot, if it has one, during a `with` block that waits for something else.

        After the block, a slot is acquired again. Raise `OverloadedError` if none becomes free in time.
        """
        name = self._holder()
        if name is None:
            yield
            return
        self._thread.name = None
        self.release(name)
        try:
            yield
        finally:
            self.acquire(name)
            self._thread.name = name

    def _holder(self) -> str | None:
        return getattr(self._thread, "name", None)

    def acquire(self, name: str, patience: float = 0.0) -> None:
        """Acquire a slot, which the caller must release. Raise OverloadedError if none becomes free."""
        with self._lock:
            if self._take(name):
                return
            # The fuller the queue is, the fewer places one caller may occupy.
            if sum(waiter.name == name for waiter in self._waiters) >= SHARE * (self.queue - len(self._waiters)):
                raise OverloadedError
            waiter = _Waiter(name, time.monotonic() + patience)
            self._waiters.append(waiter)
        if waiter.turn.wait(self.wait_seconds):
            return
        with self._lock:
            if not waiter.turn.is_set():  # If it is set, a slot became free just after the timeout.
                self._waiters.remove(waiter)
                raise OverloadedError

    def acquire_at_once(self, name: str) -> bool:
        with self._lock:
            return self._take(name)

    def _take(self, name: str) -> bool:
        if self._held.total() >= self.slots or self._held[name] >= self._max_per_name:
            return False
        self._held[name] += 1
        # Turns are numbered. The caller with the highest number was served most recently.
        self._turns[name] = max(self._turns.values(), default=0) + 1
        return True

    def release(self, name: str) -> None:
        """Release a slot. The waiting caller that holds the fewest slots gets it.

        If several hold equally few slots, those whose patience has ended go first, then those served least recently.
        """
        with self._lock:
            self._held -= Counter([name])  # Subtracting counters removes names that hold no slots.
            if not self._waiters:
                self._turns.clear()
                return
            now = time.monotonic()
            waiter = min(self._waiters, key=lambda waiter: self._rank(waiter, now))
            if self._take(waiter.name):
                self._waiters.remove(waiter)
                waiter.turn.set()

    def _rank(self, waiter: _Waiter, now: float) -> tuple[int, bool, int]:
        return self._held[waiter.name], waiter.patient_until > now, self._turns[waiter.name]


heavy_work = owned(lambda: FairSlots(slots=1, queue=64, wait_seconds=30.0))
"""The slot for threads that compute for a long time. Only one of them runs at a time, because short calls must wait
while it holds the interpreter lock."""
