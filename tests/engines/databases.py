"""If the tests run on PostgreSQL, each data directory of a served installation has its own database."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import psycopg

URL = "TESTS_DATABASE_URL"


def database_environment(directory: Path) -> dict[str, str]:
    """Return the environment variables for the directory's database, or none on SQLite.

    The database is created on first use.
    """
    if URL not in os.environ:
        return {}
    name = _database_name(directory)
    with psycopg.connect(os.environ[URL], autocommit=True) as connection:
        exists = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        if exists is None:
            connection.execute(f'CREATE DATABASE "{name}"')
    return {"DATABASE_URL": database_url(name)}


def database_url(name: str) -> str:
    if URL not in os.environ:
        return f"sqlite:///{name}"
    server, _, _ = os.environ[URL].rpartition("/")
    return f"{server}/{name}"


def copy_database(source: Path, target: Path) -> None:
    """Replace the target's database with a copy of the source's. Do nothing on SQLite.

    The source's database must have no open connections.
    """
    if URL in os.environ:
        drop_database(target)
        with psycopg.connect(os.environ[URL], autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{_database_name(target)}" TEMPLATE "{_database_name(source)}"')


def drop_database(directory: Path) -> None:
    if URL in os.environ:
        with psycopg.connect(os.environ[URL], autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{_database_name(directory)}" WITH (FORCE)')


def _database_name(directory: Path) -> str:
    return f"served_{hashlib.sha256(str(directory).encode()).hexdigest()[:16]}"


def is_postgresql() -> bool:
    return URL in os.environ
