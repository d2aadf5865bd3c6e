"""A database that somebody else has locked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def locked(file: object, how: str = "EXCLUSIVE") -> Iterator[None]:
    """The database file, while another process is in the middle of a write."""
    other = sqlite3.connect(str(file), isolation_level=None)
    other.execute(f"BEGIN {how}")
    try:
        yield
    finally:
        other.rollback()
        other.close()
