"""A database as one SQLite file, as it was at one moment: nobody who writes meanwhile is kept waiting."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, connections

from routing_admin.core.audit import AuditHead
from routing_admin.platform.databases.progress import watched
from routing_admin.platform.databases.router import LOGS
from routing_admin.platform.databases.sqlite.base import make_private

FILES: Mapping[str, str] = {DEFAULT_DB_ALIAS: "routing_admin.sqlite3", LOGS: "logs.sqlite3"}
"""What each database is called in a backup."""
MB = 1_000_000
BESIDE = ("", "-wal", "-shm", "-journal")
"""How the names of SQLite's files go on."""


class DatabaseInUseError(Exception):
    """Somebody has the database open that is to be replaced."""


def are_files() -> bool:
    """Whether the installation's databases are SQLite files, and no server's."""
    return all(connections[alias].vendor == "sqlite" for alias in FILES)


def copy_database(alias: str, path: Path) -> None:
    """Copies a database into a new file of its owner's alone."""
    connection = connections[alias]
    connection.ensure_connection()
    make_private(str(path))
    size = file_of(alias).stat().st_size // MB if file_of(alias).exists() else 0
    with (
        closing(sqlite3.connect(path)) as copy,
        watched(f"{FILES[alias]} copied, MB", size, lambda: path.stat().st_size // MB),
    ):
        connection.connection.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    sync(path)


def count_rows(path: Path) -> dict[str, int]:
    """How many rows each table of a copy has."""
    with closing(open_copy(path)) as copy:
        tables = [name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        names = [name for name in tables if not name.startswith("sqlite_")]
        return {name: copy.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0] for name in names}  # noqa: S608


def open_copy(path: Path) -> sqlite3.Connection:
    """A copy, only to be read."""
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def list_artifacts(path: Path) -> dict[str, int]:
    """The hash and the size of every artifact's bytes that a copy speaks of."""
    with closing(open_copy(path)) as copy:
        return dict(copy.execute("SELECT DISTINCT sha256, size FROM artifacts_artifact").fetchall())


def find_head(path: Path) -> AuditHead | None:
    """Where the audit log of a copy ends; None for a copy older than the chain."""
    with closing(open_copy(path)) as copy, suppress(sqlite3.OperationalError):
        row = copy.execute(
            "SELECT number, sha256 FROM routing_admin_auditevent ORDER BY number DESC LIMIT 1"
        ).fetchone()
        return AuditHead(*row) if row else None
    return None


def file_of(alias: str) -> Path:
    """Where this installation's SQLite file is."""
    return Path(str(connections[alias].settings_dict["NAME"]))


def measure_files() -> int:
    """How many bytes this installation's SQLite files have."""
    paths = [Path(f"{file_of(alias)}{end}") for alias in FILES for end in BESIDE]
    return sum(path.stat().st_size for path in paths if path.exists())


def close_for_good(path: Path) -> None:
    """Folds a database's files into one. Raises `DatabaseInUseError` while anybody else has it open."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=1)) as database:
        try:
            mode = database.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        except sqlite3.OperationalError:
            mode = ""
    if mode != "delete":
        raise DatabaseInUseError


def put_in_place(copy: Path, path: Path) -> None:
    """Makes a copy the installation's own database; it is there whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    make_private(str(part))
    shutil.copyfile(copy, part)
    sync(part)
    os.replace(part, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Makes sure that a file, or what a directory holds, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_newest_revision(path: Path) -> tuple[int, str] | None:
    """The newest revision's number and its configuration as JSON text in a copy; None before the first."""
    with closing(open_copy(path)) as copy:
        row = copy.execute(
            "SELECT number, snapshot FROM routing_admin_revision ORDER BY number DESC LIMIT 1"
        ).fetchone()
        return (row[0], row[1]) if row else None
    return None
