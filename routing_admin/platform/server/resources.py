"""Tune a serving process's garbage collection, memory and thread switching, and manage its file descriptors."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.conf import settings

from capabilities.runtime import owned
from routing_admin.platform.garbage import collect_rarely

M_ARENA_MAX = -8
"""Option number from glibc's malloc.h for the maximum number of memory arenas."""


def settle() -> None:
    """Exempt all loaded objects from garbage collection, and limit the C library to two memory arenas.

    Call this once all modules are loaded. Threads that start later share the second arena, so memory that one thread
    frees is used by the next. With a single arena, the request log's writer and the event loop would wait for each
    other.
    """
    gc.collect()
    gc.freeze()
    collect_rarely()  # Repeat this for worker processes, which do not start through the main program.
    with suppress(OSError, AttributeError):  # Only glibc has this option.
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


_loops = owned(list[asyncio.AbstractEventLoop])


def note_loop() -> None:
    """Remember the running event loop as a loop that serves requests."""
    _loops()[:] = [asyncio.get_running_loop()]


def count_tasks() -> int:
    """Return the number of unfinished tasks of the serving event loop; thread-safe."""
    return sum(len(asyncio.all_tasks(loop)) for loop in _loops())


# The next functions set how long a computing thread keeps the GIL while other threads wait for it.

SHORT_SWITCH_SECONDS = 0.001
"""Thread switch interval in seconds while threads compute pages, files or large bodies.

A small call releases the GIL about ten times, and may wait this long each time to get it back. At other times Python's
default of 5 ms applies: with short intervals, the request log's writer and the event loop take turns more often, which
costs 15 % of a small call's CPU time under load.
"""


class _ShortSwitches:
    """Counts the threads with long computations; while there are any, the short switch interval applies."""

    def __init__(self) -> None:
        self._count, self._usual, self._lock = 0, sys.getswitchinterval(), threading.Lock()

    def change(self, by: int) -> None:
        with self._lock:
            self._count += by
            sys.setswitchinterval(SHORT_SWITCH_SECONDS if self._count else self._usual)


_short_switches = owned(_ShortSwitches)


@contextmanager
def short_switches() -> Iterator[None]:
    """Let threads take short turns during this block, which contains a long computation."""
    switches = _short_switches()
    switches.change(1)
    try:
        yield
    finally:
        switches.change(-1)


MAX_DESCRIPTORS = 32_768
RESERVED_DESCRIPTORS = 128
"""Number of descriptors reserved for databases, files, Redis and health checks."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit on descriptors as far as the hard limit and `MAX_DESCRIPTORS` allow, and return it.

    Many systems start processes with a limit of 1,024, which a few callers with idle connections can use up.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return descriptor_limit()


def descriptor_limit() -> int:
    """Return how many file descriptors this process may open, at most `MAX_DESCRIPTORS`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, MAX_DESCRIPTORS)


def max_connections(descriptors: int) -> int:
    """Return how many callers may connect, given that each call may also need a connection to a provider."""
    return max((descriptors - RESERVED_DESCRIPTORS) // 2, 1)


def find_descriptor_shortage() -> str:
    """Return a message if the limit on descriptors is too low for the requests that the settings allow, else ""."""
    limit = descriptor_limit()
    needed = settings.MAX_CALLS + settings.MAX_REQUESTS
    if max_connections(limit) >= needed:
        return ""
    return (
        f"A process may open {limit} files, so callers may have {max_connections(limit)} connections, fewer than the "
        f"{needed} requests that the settings allow. Raise the hard limit, for example with LimitNOFILE=65536 in the "
        "unit (docs/limits.md)."
    )
