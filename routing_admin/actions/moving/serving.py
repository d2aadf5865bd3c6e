"""Whether somebody serves the installation that is to be carried away: what it wrote meanwhile would be lost."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from django.db import connections

PROGRAM = "routing_admin"
"""What our connections to PostgreSQL are called."""


def is_in_use() -> bool:
    """Whether another process holds a connection to one of the databases; ours are closed for the look."""
    connections.close_all()
    return any(_is_used(alias) for alias in ("default", "logs"))


def _is_used(alias: str) -> bool:
    connection = connections[alias]
    if connection.vendor == "sqlite":
        return _is_locked(Path(connection.settings_dict["NAME"]))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s "
            "AND pid <> pg_backend_pid()",
            [PROGRAM],
        )
        (others,) = cursor.fetchone()
    connection.close()
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
