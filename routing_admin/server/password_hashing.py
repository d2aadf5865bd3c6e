"""Argon2 takes 100 MiB and a core for an eighth of a second: a process computes few hashes at a time, others wait."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.hashers import Argon2PasswordHasher

from routing_admin.server.places import SHARE, OverloadedError


class HashingSlots:
    """A fair, bounded queue of threads; one name (an address) can fill neither the slots nor the queue for others."""

    def __init__(self, slots: int, queue: int, wait_seconds: float) -> None:
        self.slots, self.queue, self.wait_seconds = slots, queue, wait_seconds
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._waiters: list[tuple[str, threading.Event]] = []
        self._thread = threading.local()

    @property
    def waiting(self) -> int:
        """Return how many threads wait for a slot."""
        return len(self._waiters)

    @contextmanager
    def hold(self, name: str = "") -> Iterator[None]:
        """Hold a slot, once per thread however often it is asked for. Raise `OverloadedError` where none is free soon.

        Hold it before taking a database's lock or connection, never the other way round.
        """
        if getattr(self._thread, "holds", False):
            yield
            return
        self._acquire(name)
        self._thread.holds = True
        try:
            yield
        finally:
            self._thread.holds = False
            self._release(name)

    def _acquire(self, name: str) -> None:
        with self._lock:
            if self._held.total() < self.slots:
                self._held[name] += 1
                return
            if sum(each == name for each, _ in self._waiters) >= SHARE * (self.queue - len(self._waiters)):
                raise OverloadedError
            turn = threading.Event()
            self._waiters.append((name, turn))
        if turn.wait(self.wait_seconds):
            return
        with self._lock:
            if not turn.is_set():  # else the slot was handed over at the last moment
                self._waiters.remove((name, turn))
                raise OverloadedError

    def _release(self, name: str) -> None:
        with self._lock:
            self._held -= Counter([name])  # drops names that hold none
            if self._waiters:
                at = min(range(len(self._waiters)), key=lambda at: self._held[self._waiters[at][0]])
                waiter, turn = self._waiters.pop(at)
                self._held[waiter] += 1
                turn.set()


hashing_slots = HashingSlots(slots=2, queue=32, wait_seconds=5.0)
"""Those of the process; whatever hashes or checks a password goes through them."""


class BoundedArgon2Hasher(Argon2PasswordHasher):
    """Django's hasher, which computes within the process's slots."""

    def encode(self, password: str, salt: str) -> str:
        """Hash within a slot. Raise `OverloadedError`."""
        with hashing_slots.hold():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Compare within a slot. Raise `OverloadedError`."""
        with hashing_slots.hold():
            return super().verify(password, encoded)
