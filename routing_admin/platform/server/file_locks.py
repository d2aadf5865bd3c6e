"""Locks on files and folders, which the operating system releases when the process ends for whatever reason."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def try_lock(handle: int) -> bool:
    """Lock an open file or folder until it is closed; return False if another process holds it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def hold_unless_locked(path: Path) -> Iterator[bool]:
    """Lock a file or folder during the block; yield False if it does not exist or another process holds the lock."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        yield try_lock(handle)
    finally:
        os.close(handle)
