"""Ids that name and guard nothing: unlike any other, and made without asking the system each time.

`secrets` lets go of the interpreter for each id, and another thread then has it for a while. What must not be guessed
(keys, tokens) still comes from `secrets`.

An id begins with its second: those that follow one another lie beside one another in the indexes of the log, which
halves what logging a request costs.
"""

from __future__ import annotations

import os
import time
from random import Random

_random = Random()  # noqa: S311  # seeded by the system; ids are no secrets
os.register_at_fork(after_in_child=_random.seed)


def new_id(prefix: str, now: float | None = None) -> str:
    """The prefix and 24 hexadecimal digits: eight for the second it is made in, sixteen at random."""
    return f"{prefix}{int(time.time() if now is None else now):08x}{_random.getrandbits(64):016x}"
