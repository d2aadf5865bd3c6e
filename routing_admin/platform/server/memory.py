"""How a serving process holds its memory: what stays is not looked through again and again."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from contextlib import suppress

GENERATIONS = (10_000, 20, 50)
"""How many objects, and collections of the younger, come before each collection; Python's own are for scripts."""


M_ARENA_MAX = -8
"""The name of an option of the C library (malloc.h): from how many pools threads take memory."""


def settle() -> None:
    """Once all is loaded: the garbage collector never looks at it again, and at what calls make less often.

    Threads that begin later take memory from one pool beside the loop's, so that what one gives back serves the next.
    With a single pool for all, the log's writer and the loop would wait for one another.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GENERATIONS)
    with suppress(OSError, AttributeError):  # another C library holds memory as it likes
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


_loops: list[asyncio.AbstractEventLoop] = []


def note_loop() -> None:
    """Remembers the running loop as the one that serves."""
    _loops[:] = [asyncio.get_running_loop()]


def count_tasks() -> int:
    """How many tasks the serving loop has that are not over; 0 where none was noted. For any thread."""
    return sum(len(asyncio.all_tasks(each)) for each in _loops)
