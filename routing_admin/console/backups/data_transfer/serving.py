"""Whether somebody serves the installation that is to be carried away: what it wrote meanwhile would be lost."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connections, transaction

from routing_admin.console.backups.data_transfer.tables import Table
from routing_admin.platform.databases.router import LOGS, POSTGRESQL

PROGRAM = "routing_admin"
"""What our connections to PostgreSQL are called."""
CLOSING_SECONDS = 2.0
"""How long PostgreSQL may still list the connections of a process that has just ended."""


def is_in_use() -> bool:
    """Whether another process holds a connection to one of the databases; ours are closed for the look."""
    connections.close_all()
    return any(_is_used(alias) for alias in ("default", LOGS))


@contextmanager
def kept_from_writers(tables: Iterable[Table]) -> Iterator[None]:
    """Let no other process write to the installation in the block. Raise `DatabaseError` if one does right now."""
    with transaction.atomic("default"), transaction.atomic(LOGS):  # on SQLite that is the lock
        if connections["default"].vendor == POSTGRESQL:
            names = ", ".join(f'"{each._meta.db_table}"' for each in tables)
            with connections["default"].cursor() as cursor:
                cursor.execute(f"LOCK TABLE {names} IN SHARE MODE NOWAIT")
        yield


def _is_used(alias: str) -> bool:
    connection = connections[alias]
    if connection.vendor == "sqlite":
        return _is_locked(Path(connection.settings_dict["NAME"]))
    until = time.monotonic() + CLOSING_SECONDS
    with connection.cursor() as cursor:
        while (used := _has_others(cursor)) and time.monotonic() < until:
            time.sleep(0.05)
    connection.close()
    return used


def _has_others(cursor: Any) -> bool:
    cursor.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s "
        "AND pid <> pg_backend_pid()",
        [PROGRAM],
    )
    (others,) = cursor.fetchone()
    return bool(others)


def _is_locked(path: Path) -> bool:
    """Whether another process has the file open: it holds a share of its lock for as long as it does."""
    if not path.exists():
        return False
    alone = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=0.5, isolation_level=None)
    try:
        alone.execute("PRAGMA locking_mode=EXCLUSIVE")
        alone.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        return True
    finally:
        alone.close()
    return False
