"""Detect running servers: anything that a server writes during a move would be lost."""

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

APPLICATION_NAME = "routing_admin"
"""The `application_name` of this program's PostgreSQL connections."""
# PostgreSQL may still list the connections of a process that has just ended, so wait this long for them to disappear.
CLOSING_SECONDS = 2.0


def is_in_use() -> bool:
    """Return whether another process is connected to a database, after closing this process's own connections."""
    connections.close_all()
    return any(_is_used(alias) for alias in ("default", LOGS))


@contextmanager
def exclude_writers(tables: Iterable[Table]) -> Iterator[None]:
    """Prevent writes by other processes within the block. Raise `DatabaseError` if another process is writing."""
    with transaction.atomic("default"), transaction.atomic(LOGS):  # On SQLite, this takes the write locks.
        if connections["default"].vendor == POSTGRESQL:
            names = ", ".join(f'"{table._meta.db_table}"' for table in tables)
            with connections["default"].cursor() as cursor:
                cursor.execute(f"LOCK TABLE {names} IN SHARE MODE NOWAIT")
        yield


def _is_used(alias: str) -> bool:
    connection = connections[alias]
    if connection.vendor == "sqlite":
        return _is_locked(Path(connection.settings_dict["NAME"]))
    deadline = time.monotonic() + CLOSING_SECONDS
    with connection.cursor() as cursor:
        while (is_used := _has_others(cursor)) and time.monotonic() < deadline:
            time.sleep(0.05)
    connection.close()
    return is_used


def _has_others(cursor: Any) -> bool:
    cursor.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s "
        "AND pid <> pg_backend_pid()",
        [APPLICATION_NAME],
    )
    (others,) = cursor.fetchone()
    return bool(others)


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    # Every process that has the file open holds a shared lock, so an exclusive lock fails if there is another process.
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=0.5, isolation_level=None)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        return True
    finally:
        connection.close()
    return False
