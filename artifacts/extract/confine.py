"""Restrictions on the extraction process, applied before a parser is imported or a byte is read."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 20
YIELD_SECONDS, NICENESS = 1.0, 5
"""Processor seconds after which a reader lowers its priority, and by how much."""
LIMITS = (
    ("RLIMIT_AS", MEMORY_BYTES, MEMORY_BYTES),
    ("RLIMIT_CORE", 0, 0),
    ("RLIMIT_FSIZE", 0, 0),
    ("RLIMIT_NOFILE", 64, 64),
    ("RLIMIT_CPU", CPU_SECONDS, CPU_SECONDS + 1),  # the hard limit sends SIGKILL, which gives no reason
)
FORBIDDEN = (
    *("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "shutil.", "ctypes."),
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.putenv"),
)
"""Prefixes of audit events that are forbidden: no network, no other program, no change to a file."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


BUFFERS = ("ctypes.cdata", "ctypes.addressof", "ctypes.string_at", "ctypes.create_", "ctypes.get_", "ctypes.set_")
"""Prefixes of the ctypes events that a loaded library may cause: exchanging memory is allowed, loading anything is not.
"""


def confine() -> None:
    """Limit memory, processor time, files and output size, and forbid network, programs and writing."""
    limit()
    refuse()


def limit(quick_seconds: float = 0, *, yields_at_once: bool = False) -> None:
    """Limit memory, processor time, files and output size. After `quick_seconds`, end with SIGPROF.

    With `yields_at_once`, lower the priority now, otherwise after `YIELD_SECONDS`.
    """
    for name, soft, hard in LIMITS:
        with suppress(ValueError, OSError):  # macOS cannot limit address space, other systems may have lower limits
            resource.setrlimit(getattr(resource, name), (soft, hard))
    if yields_at_once:
        os.nice(NICENESS)
        return
    if not quick_seconds:
        signal.signal(signal.SIGPROF, lambda *_: os.nice(NICENESS))
    signal.setitimer(signal.ITIMER_PROF, quick_seconds or YIELD_SECONDS)


def refuse(*, uses_ctypes: bool = False) -> None:
    """Forbid network, programs and writing from now on. `uses_ctypes` lets a loaded library exchange memory."""
    allowed = BUFFERS if uses_ctypes else ()

    def check(event: str, args: tuple[object, ...]) -> None:
        writing = event == "open" and isinstance(args[2], int) and args[2] & _WRITING
        if writing or (event.startswith(FORBIDDEN) and not (allowed and event.startswith(allowed))):
            raise PermissionError(f"{event} is not allowed in the extraction process")

    sys.addaudithook(check)
