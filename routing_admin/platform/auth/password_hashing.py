"""Password hashing with bounded concurrency: each Argon2 hash takes 100 MiB and a core for an eighth of a second."""

from __future__ import annotations

from django.contrib.auth.hashers import Argon2PasswordHasher

from capabilities.fair_slots import FairSlots
from capabilities.runtime import owned

hashing_slots = owned(lambda: FairSlots(slots=2, queue=32, wait_seconds=5.0))
"""Semaphore that limits how many passwords this process hashes concurrently."""


class BoundedArgon2Hasher(Argon2PasswordHasher):
    """Argon2 hasher that needs one of the process's hashing slots; it raises `OverloadedError` if none becomes free."""

    # Use one thread, because Argon2's eight threads per hash would take CPU time from the event loop. Work and memory
    # per hash stay the same.
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with hashing_slots().hold():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with hashing_slots().hold():
            return super().verify(password, encoded)
