"""A second connection to a test database, on SQLite or PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections

from routing_admin.platform.databases.router import LOG_MODELS
from tests.engines.databases import database_environment, is_postgresql

MAIN, LOG = "routing_admin.sqlite3", "logs.sqlite3"
"""The names of an installation's SQLite files. On PostgreSQL, a name stands for the tables of that file."""
TABLES = (
    "SELECT relname FROM pg_class JOIN pg_namespace space ON space.oid = relnamespace"
    " WHERE nspname = 'public' AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname"
)


@contextmanager
def other_connection(database: Path | str = "default") -> Iterator[Any]:
    """Yield an autocommit connection to a served installation's database or to an alias of this process."""
    if not is_postgresql():
        file = database if isinstance(database, Path) else connections[database].settings_dict["NAME"]
        connection: Any = sqlite3.connect(str(file), isolation_level=None, timeout=10)
    elif isinstance(database, Path):
        connection = psycopg.connect(database_environment(database.parent)["DATABASE_URL"], autocommit=True)
    else:
        parameters = connections[database].get_connection_params()
        plain = {name: value for name, value in parameters.items() if name not in ("context", "cursor_factory")}
        connection = psycopg.connect(**plain, autocommit=True)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def locked(database: Path | str = "default", mode: str = "EXCLUSIVE") -> Iterator[None]:
    """Lock the database with a write transaction on another connection. `mode` is used only on SQLite."""
    with other_connection(database) as connection:
        if is_postgresql():
            connection.execute(f"BEGIN; LOCK TABLE {', '.join(_tables(connection, database))} IN EXCLUSIVE MODE")
        else:
            connection.execute(f"BEGIN {mode}")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")


def _tables(connection: Any, database: Path | str) -> list[str]:
    is_log = database == "logs" or (isinstance(database, Path) and database.name == LOG)
    names = [name for (name,) in connection.execute(TABLES).fetchall()]
    return [name for name in names if (name.removeprefix("routing_admin_") in LOG_MODELS) == is_log]
