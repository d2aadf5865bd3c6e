"""Restrict the extraction process before a parser is imported or any input is read."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 20
YIELD_SECONDS, NICENESS = 1.0, 5
"""Seconds of processor time after which the process lowers its priority, and the amount by which its nice value
increases."""
LIMITS = (
    ("RLIMIT_AS", MEMORY_BYTES, MEMORY_BYTES),
    ("RLIMIT_CORE", 0, 0),
    ("RLIMIT_FSIZE", 0, 0),
    ("RLIMIT_NOFILE", 64, 64),
    ("RLIMIT_CPU", CPU_SECONDS, CPU_SECONDS + 1),  # The hard limit sends SIGKILL, so no reason can be reported.
)
FORBIDDEN = (
    *("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "shutil.", "ctypes."),
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.putenv"),
)
"""Prefixes of Python audit events that are forbidden because they use the network, other programs or ctypes, or change
files."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


BUFFERS = ("ctypes.cdata", "ctypes.addressof", "ctypes.string_at", "ctypes.create_", "ctypes.get_", "ctypes.set_")
"""Prefixes of ctypes audit events that are allowed for a loaded library. It may exchange memory, but not load
libraries."""


def confine() -> None:
    """Limit memory, processor time, files and output size, and forbid network access, other programs and writing."""
    limit()
    refuse()


def limit(quick_seconds: float = 0, *, yields_at_once: bool = False) -> None:
    """Limit memory, processor time, files and output size. After `quick_seconds` of processor time, exit by SIGPROF.

    With `yields_at_once`, lower the priority immediately. If neither is given, lower it after `YIELD_SECONDS`.
    """
    for name, soft, hard in LIMITS:
        # macOS cannot limit the address space, and other systems may already have lower limits.
        with suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (soft, hard))
    if yields_at_once:
        os.nice(NICENESS)
        return
    if not quick_seconds:
        signal.signal(signal.SIGPROF, lambda *_: os.nice(NICENESS))
    signal.setitimer(signal.ITIMER_PROF, quick_seconds or YIELD_SECONDS)


def refuse(*, uses_ctypes: bool = False) -> None:
    """Forbid network access, other programs and writing. `uses_ctypes` allows a loaded library to exchange memory."""
    allowed = BUFFERS if uses_ctypes else ()

    def check(event: str, args: tuple[object, ...]) -> None:
        writing = event == "open" and isinstance(args[2], int) and args[2] & _WRITING
        if writing or (event.startswith(FORBIDDEN) and not (allowed and event.startswith(allowed))):
            raise PermissionError(f"{event} is not allowed in the extraction process")

    sys.addaudithook(check)
