"""What the system gives a serving process: memory, which is not looked through again and again, and descriptors."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import resource
from contextlib import suppress

from django.conf import settings

from capabilities.runtime import owned

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


_loops = owned(list[asyncio.AbstractEventLoop])


def note_loop() -> None:
    """Remembers the running loop as the one that serves."""
    _loops()[:] = [asyncio.get_running_loop()]


def count_tasks() -> int:
    """How many tasks the serving loop has that are not over; 0 where none was noted. For any thread."""
    return sum(len(asyncio.all_tasks(each)) for each in _loops())


# How many file descriptors the process may open, and how many of them its callers may have.

MAX_DESCRIPTORS = 32_768
RESERVED_DESCRIPTORS = 128
"""For databases, files, Redis and health checks."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit as far as the hard one and `MAX_DESCRIPTORS` allow; return what it is now.

    Many systems start a process with 1,024, which a few callers with idle connections use up.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return descriptor_limit()


def descriptor_limit() -> int:
    """Return how many descriptors this process may open; never more than are used."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, MAX_DESCRIPTORS)


def max_connections(descriptors: int) -> int:
    """Return how many callers may be connected, each of whose calls may need a connection to a provider."""
    return max((descriptors - RESERVED_DESCRIPTORS) // 2, 1)


def find_descriptor_shortage() -> str:
    """Return what is wrong with this process's limit in a sentence; empty where callers have room for all requests."""
    limit = descriptor_limit()
    wanted = settings.MAX_CALLS + settings.MAX_REQUESTS
    if max_connections(limit) >= wanted:
        return ""
    return (
        f"A process may open {limit} files, so callers may have {max_connections(limit)} connections, fewer than the "
        f"{wanted} requests that the settings allow. Raise the hard limit, for example with LimitNOFILE=65536 in the "
        "unit (docs/limits.md)."
    )
