"""Ids that name and guard nothing: unlike any other, and made without asking the system each time.

`secrets` lets go of the interpreter for each id, and another thread then has it for a while. What must not be guessed
(keys, tokens) still comes from `secrets`.
"""

from __future__ import annotations

import os
from random import Random

_random = Random()  # noqa: S311  # seeded by the system; ids are no secrets
os.register_at_fork(after_in_child=_random.seed)


def random_id(prefix: str) -> str:
    """The prefix and 24 hexadecimal digits."""
    return f"{prefix}{_random.getrandbits(96):024x}"
