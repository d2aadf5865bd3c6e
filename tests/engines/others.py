"""A second connection to a database of the tests, on SQLite or PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections

from routing_admin.platform.databases.router import LOG_MODELS
from tests.engines.databases import database_of, is_postgresql

MAIN, LOG = "routing_admin.sqlite3", "logs.sqlite3"
"""Names of an installation's SQLite files; on PostgreSQL they stand for the tables in them."""
TABLES = (
    "SELECT relname FROM pg_class JOIN pg_namespace space ON space.oid = relnamespace"
    " WHERE nspname = 'public' AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname"
)


@contextmanager
def other_connection(place: Path | str = "default") -> Iterator[Any]:
    """Yield an autocommit connection to a served installation's database or to an alias of this process."""
    if not is_postgresql():
        file = place if isinstance(place, Path) else connections[place].settings_dict["NAME"]
        connection: Any = sqlite3.connect(str(file), isolation_level=None, timeout=10)
    elif isinstance(place, Path):
        connection = psycopg.connect(database_of(place.parent)["DATABASE_URL"], autocommit=True)
    else:
        known = connections[place].get_connection_params()
        plain = {name: value for name, value in known.items() if name not in ("context", "cursor_factory")}
        connection = psycopg.connect(**plain, autocommit=True)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def locked(place: Path | str = "default", how: str = "EXCLUSIVE") -> Iterator[None]:
    """Keep the database locked by a write transaction of another connection; `how` is for SQLite."""
    with other_connection(place) as other:
        if is_postgresql():
            other.execute(f"BEGIN; LOCK TABLE {', '.join(_tables(other, place))} IN EXCLUSIVE MODE")
        else:
            other.execute(f"BEGIN {how}")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


def _tables(other: Any, place: Path | str) -> list[str]:
    logged = place == "logs" or (isinstance(place, Path) and place.name == LOG)
    names = [name for (name,) in other.execute(TABLES).fetchall()]
    return [name for name in names if (name.removeprefix("routing_admin_") in LOG_MODELS) == logged]
