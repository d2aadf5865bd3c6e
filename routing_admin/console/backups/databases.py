"""Copy a database into a single SQLite file as a consistent snapshot, without blocking writers."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, connections

from routing_admin.core.audit import AuditHead
from routing_admin.platform.databases.progress import watch_progress
from routing_admin.platform.databases.router import LOGS
from routing_admin.platform.databases.sqlite.base import make_private

FILES: Mapping[str, str] = {DEFAULT_DB_ALIAS: "routing_admin.sqlite3", LOGS: "logs.sqlite3"}
"""File names of the databases in a backup."""
MB = 1_000_000
FILE_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Suffixes of the files that belong to an SQLite database."""


class DatabaseInUseError(Exception):
    """The database to be replaced is open in another process."""


def uses_sqlite() -> bool:
    return all(connections[alias].vendor == "sqlite" for alias in FILES)


def copy_database(alias: str, path: Path) -> None:
    """Copy a database into a new file that only its owner can read."""
    connection = connections[alias]
    connection.ensure_connection()
    make_private(str(path))
    size = database_path(alias).stat().st_size // MB if database_path(alias).exists() else 0
    with (
        closing(sqlite3.connect(path)) as copy,
        watch_progress(f"{FILES[alias]} copied, MB", size, lambda: path.stat().st_size // MB),
    ):
        # SQLite's online backup copies a consistent snapshot and does not block writers.
        connection.connection.backup(copy)
        # The copy must be a single file, without a WAL file.
        copy.execute("PRAGMA journal_mode = DELETE")
    sync(path)


def count_rows(path: Path) -> dict[str, int]:
    with closing(open_copy(path)) as copy:
        tables = [name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        names = [name for name in tables if not name.startswith("sqlite_")]
        return {name: copy.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0] for name in names}  # noqa: S608


def open_copy(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def list_artifacts(path: Path) -> dict[str, int]:
    """Return the size of each artifact in a copied database, by hash."""
    with closing(open_copy(path)) as copy:
        return dict(copy.execute("SELECT DISTINCT sha256, size FROM artifacts_artifact").fetchall())


def find_head(path: Path) -> AuditHead | None:
    """Return the last audit entry in a copied database, or None if the copy is older than the log's hash chain."""
    with closing(open_copy(path)) as copy, suppress(sqlite3.OperationalError):
        row = copy.execute(
            "SELECT number, sha256 FROM routing_admin_auditevent ORDER BY number DESC LIMIT 1"
        ).fetchone()
        return AuditHead(*row) if row else None
    return None


def database_path(alias: str) -> Path:
    return Path(str(connections[alias].settings_dict["NAME"]))


def measure_files() -> int:
    paths = [Path(f"{database_path(alias)}{end}") for alias in FILES for end in FILE_SUFFIXES]
    return sum(path.stat().st_size for path in paths if path.exists())


def merge_files(path: Path) -> None:
    """Merge an SQLite database's files into one. Raise `DatabaseInUseError` if another process has it open."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=1)) as database:
        try:
            # Leaving WAL mode needs an exclusive lock, so this fails while the database is in use.
            mode = database.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        except sqlite3.OperationalError:
            mode = ""
    if mode != "delete":
        raise DatabaseInUseError


def replace_database(copy: Path, path: Path) -> None:
    """Atomically replace the installation's database with a copy."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    make_private(str(part))
    shutil.copyfile(copy, part)
    sync(part)
    os.replace(part, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or the entries of a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_newest_revision(path: Path) -> tuple[int, str] | None:
    """Return the number and JSON text of the newest revision in a copied database, or None if it has no revisions."""
    with closing(open_copy(path)) as copy:
        row = copy.execute(
            "SELECT number, snapshot FROM routing_admin_revision ORDER BY number DESC LIMIT 1"
        ).fetchone()
        return (row[0], row[1]) if row else None
    return None
