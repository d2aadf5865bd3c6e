"""Argon2 takes 100 MiB and a core for an eighth of a second: a process computes few hashes at a time, others wait."""

from __future__ import annotations

from django.contrib.auth.hashers import Argon2PasswordHasher

from capabilities.fair_slots import FairSlots
from capabilities.runtime import owned

hashing_slots = owned(lambda: FairSlots(slots=2, queue=32, wait_seconds=5.0))
"""Those of the process; whatever hashes or checks a password goes through them."""


class BoundedArgon2Hasher(Argon2PasswordHasher):
    """Django's hasher, which computes within the process's slots, and in one thread each.

    Its eight threads per hash would take the processor from the event loop; the work and the memory stay the same.
    """

    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        """Hash within a slot. Raise `OverloadedError`."""
        with hashing_slots().hold():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        """Compare within a slot. Raise `OverloadedError`."""
        with hashing_slots().hold():
            return super().verify(password, encoded)
