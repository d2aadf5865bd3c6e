"""Tune garbage collection and memory of a serving process, and manage its file descriptors."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import resource
from contextlib import suppress

from django.conf import settings

from capabilities.runtime import owned

GENERATIONS = (10_000, 20, 50)
"""Thresholds of the garbage collector; Python's defaults are meant for scripts."""


M_ARENA_MAX = -8
"""Option number in malloc.h: the maximum number of memory arenas."""


def settle() -> None:
    """Freeze loaded objects for the garbage collector, and limit the C library to two memory arenas.

    Called once all modules are loaded. Threads started later share one arena next to the event loop's, so memory freed
    by one serves the next. With a single arena, the log's writer and the loop would wait for each other.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GENERATIONS)
    with suppress(OSError, AttributeError):  # other C libraries have no such option
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


_loops = owned(list[asyncio.AbstractEventLoop])


def note_loop() -> None:
    """Remember the running loop as the serving one."""
    _loops()[:] = [asyncio.get_running_loop()]


def count_tasks() -> int:
    """Return the number of unfinished tasks of the serving loop; thread-safe."""
    return sum(len(asyncio.all_tasks(each)) for each in _loops())


# File descriptors that the process may open, and the part of them that its callers may use.

MAX_DESCRIPTORS = 32_768
RESERVED_DESCRIPTORS = 128
"""Descriptors for databases, files, Redis and health checks."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit as far as the hard one and `MAX_DESCRIPTORS` allow, and return it.

    Many systems start a process with 1,024, which a few callers with idle connections use up.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return descriptor_limit()


def descriptor_limit() -> int:
    """Return how many descriptors this process may open, at most `MAX_DESCRIPTORS`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, MAX_DESCRIPTORS)


def max_connections(descriptors: int) -> int:
    """Return how many callers may connect; the call of each may need a connection to a provider, too."""
    return max((descriptors - RESERVED_DESCRIPTORS) // 2, 1)


def find_descriptor_shortage() -> str:
    """Return a message if the limit is too low for all requests that the settings allow; else empty."""
    limit = descriptor_limit()
    wanted = settings.MAX_CALLS + settings.MAX_REQUESTS
    if max_connections(limit) >= wanted:
        return ""
    return (
        f"A process may open {limit} files, so callers may have {max_connections(limit)} connections, fewer than the "
        f"{wanted} requests that the settings allow. Raise the hard limit, for example with LimitNOFILE=65536 in the "
        "unit (docs/limits.md)."
    )
