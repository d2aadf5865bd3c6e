"""Which processes of this data directory ended without shutting down? Each holds a file locked while it serves."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import gc
import logging
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from django.conf import settings
from uvicorn.supervisors import Multiprocess

from capabilities.runtime import owned

# Locks of files and folders, which the system gives back when the process that holds one ends, however it ends.


def try_lock(handle: int) -> bool:
    """Lock an open file or folder until it is closed; False where another process holds it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def hold_unless_locked(path: Path) -> Iterator[bool]:
    """Hold a file or folder for the block; False where it is gone, or another process holds it."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        yield try_lock(handle)
    finally:
        os.close(handle)


log = logging.getLogger(__name__)


class ProcessMark:
    """The file of this process: removed when it is asked to end, and found unlocked by others where it never was."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._handle = -1

    def place(self) -> None:
        """Make the file and lock it; a disk that takes none costs a line of the log."""
        folder = Path(settings.DATA_DIR) / "processes"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            name = f"{os.getpid()}-{os.urandom(4).hex()}"
            self._handle = os.open(folder / f".{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            self._path = (folder / f".{name}").rename(folder / name)  # others look at it once it is locked
        except OSError as error:
            log.warning("a crash of this process will not be noticed: %s", error)

    def remove(self) -> None:
        """Remove the file: what ends this process from here on is no crash."""
        path, self._path = self._path, None
        if path is not None:
            path.unlink(missing_ok=True)
            os.close(self._handle)

    def count_crashes(self) -> int:
        """How many processes have crashed since anyone asked; each is counted once."""
        folder = Path(settings.DATA_DIR) / "processes"
        return sum(_is_left_behind(path) for path in folder.glob("[0-9]*") if path != self._path)


def _is_left_behind(path: Path) -> bool:
    with suppress(OSError), hold_unless_locked(path) as is_free:
        if is_free:  # else its process lives, or another one was as quick
            path.unlink()
            return True
    return False


process_mark = owned(ProcessMark)


# How a serving process holds its memory: what stays is not looked through again and again.

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


# Several serving processes that share one socket, and end together.


class Workers(Multiprocess):
    """uvicorn's, which lets go of the socket when the processes are told to end: who comes then is refused at once.

    Held on, it would go on listening for as long as the last answer takes, and nobody would take what it lets in.
    """

    def terminate_all(self) -> None:
        """Tells every process to end, which closes its own share of the socket."""
        for each in self.sockets:
            each.close()
        super().terminate_all()


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


# Ids that name and guard nothing: unlike any other, and made without asking the system each time.
#
# `secrets` lets go of the interpreter for each id, and another thread then has it for a while. What must not be
# guessed (keys, tokens) still comes from `secrets`.
#
# An id begins with its second: those that follow one another lie beside one another in the indexes of the log, which
# halves what logging a request costs.

_random = Random()  # noqa: S311  # seeded by the system; ids are no secrets
os.register_at_fork(after_in_child=_random.seed)


def new_id(prefix: str, now: float | None = None) -> str:
    """The prefix and 24 hexadecimal digits: eight for the second it is made in, sixteen at random."""
    return f"{prefix}{int(time.time() if now is None else now):08x}{_random.getrandbits(64):016x}"
