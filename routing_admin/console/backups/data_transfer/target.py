"""The target database of a move: create it, check that it is empty or claimed, fill it, and complete it.

During a move, a marker table in the target records which installation is being moved and how far each table has been
copied. Markers are written in the same transactions as the rows, so an interrupted move can resume. If a move was
interrupted before it copied any rows, the next run creates the tables again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections, transaction
from django.utils.connection import ConnectionDoesNotExist

from routing_admin.console.backups.data_transfer.rows import (
    drop_indexes,
    empty_tables,
    list_indexes,
    make_indexes,
    reset_sequences,
)
from routing_admin.console.backups.data_transfer.tables import Table, table_alias
from routing_admin.paths import BASE_DIR
from routing_admin.platform.databases.addresses import databases
from routing_admin.platform.databases.router import LOGS

ALIASES = {"default": "target", LOGS: "target_logs"}
"""Maps the installation's database aliases to those of the target."""
MARKER_TABLE = "move_marks"
SOURCE, INDEXES, READY, DONE = "source", "indexes", "ready", "done"
"""Names of the markers that record which installation is being moved, which indexes were dropped, whether the tables
are ready for rows, and whether all rows have been copied.
"""
DJANGO_TABLES = frozenset({"django_content_type", "auth_permission"})
"""Tables of Django itself, in which migrations insert rows."""


MIGRATE = """
import json, sys
import django
from django.core.management import call_command
django.setup()
from routing_admin.platform.databases.schema import migrate_until
aliases, until = json.loads(sys.argv[1])
for alias in aliases:
    if until:
        migrate_until(alias, [tuple(migration) for migration in until])
    else:
        call_command("migrate", database=alias, verbosity=0, interactive=False)
"""
"""A program to run in its own process, with the target as `DATABASE_URL`.

One process runs all steps, because starting a process per step would take as long as copying a million rows.
"""


class MoveError(Exception):
    """An installation cannot be moved. The message says why; the source is unchanged."""


class Destination:
    """The target databases at `url`, which are connected under separate aliases.

    The constructor raises `MoveError` if `url` is the installation's own database.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        for alias, database in databases(url, settings.DATA_DIR).items():
            database["OPTIONS"].pop("pool", None)
            connections.settings[ALIASES[alias]] = connections.configure_settings({"default": database})["default"]
        if _database_identity("default") == _database_identity("target"):
            raise MoveError("The target is the database this installation already uses.")
        self.source = hashlib.sha256(_database_identity("default").encode()).hexdigest()

    def open(self) -> None:
        """Connect to the databases. Raise `MoveError` if a database does not respond."""
        for alias in ALIASES.values():
            try:
                connections[alias].ensure_connection()
            except DatabaseError as error:
                raise MoveError(f"The target is not responding: {str(error).splitlines()[0]}") from None

    def close(self) -> None:
        for alias in ALIASES.values():
            try:
                connections[alias].close()
            except (ConnectionDoesNotExist, DatabaseError):
                continue
            del connections[alias]
            connections.settings.pop(alias, None)

    def check(self, tables: Iterable[Table]) -> bool:
        """Return whether a move of this installation into the target has already begun.

        Raise `MoveError` if the target contains any other rows.
        """
        if MARKER_TABLE in connections["target"].introspection.table_names():
            if self.read_marker("target", SOURCE) != self.source:
                raise MoveError("The target contains another interrupted move. Use an empty database.")
            return True
        for table in tables:
            alias, name = ALIASES[table_alias(table)], table._meta.db_table
            has_table = name in connections[alias].introspection.table_names()
            if has_table and name not in DJANGO_TABLES and table._base_manager.using(alias).exists():
                raise MoveError(f"The target is not empty: {name} has rows. Use an empty database.")
        return False

    def make_tables(self, migrations: Sequence[tuple[str, str]] = ()) -> None:
        """Create the tables with all migrations, or only up to the given ones. Raise `MoveError` if that fails."""
        # In PostgreSQL, both aliases refer to the same database, so migrate it only once.
        aliases = ("default", LOGS) if connections["target"].vendor == "sqlite" else ("default",)
        result = subprocess.run(  # noqa: S603 - our own interpreter and program, no shell
            [sys.executable, "-c", MIGRATE, json.dumps([aliases, list(migrations)])],
            cwd=BASE_DIR,
            env=os.environ | {"DATABASE_URL": self.url, "DJANGO_SETTINGS_MODULE": "routing_admin.settings"},
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            last_line = (result.stderr.strip().splitlines() or ["no word"])[-1]
            raise MoveError(f"The tables could not be created in the target: {last_line}")

    def claim(self) -> None:
        """Mark the target as claimed for moving this installation."""
        # `check` reads only the markers in the main database, so they are written last.
        for alias in reversed(ALIASES.values()):
            with transaction.atomic(using=alias):
                self.execute(
                    alias, f"CREATE TABLE IF NOT EXISTS {MARKER_TABLE} (name varchar(200) PRIMARY KEY, value text)"
                )
                self.write_marker(alias, SOURCE, self.source)

    def prepare(self, tables: list[Table]) -> None:
        """Create the tables and delete the rows that migrations inserted, unless an earlier run has done so.

        Raise `MoveError` if that fails.
        """
        if self.read_marker("target", READY):
            return
        self.make_tables()
        empty_tables(tables, ALIASES)
        # After an interruption, some indexes may already be missing, so only the first run stores the list.
        if self.read_marker("target", INDEXES) is None:
            self.write_marker("target", INDEXES, list_indexes(tables, ALIASES))
        drop_indexes(self.read_marker("target", INDEXES))
        self.write_marker("target", READY, True)

    @property
    def is_done(self) -> bool:
        """Return whether all rows have been copied and compared, so that only `finish` remains to be called."""
        return bool(self.read_marker("target", DONE))

    def finish(self, tables: list[Table]) -> None:
        """Create the indexes, reset the sequences, and drop the marker tables, that of the main database last."""
        self.write_marker("target", DONE, True)
        make_indexes(self.read_marker("target", INDEXES) or ())
        reset_sequences(tables, ALIASES)
        for alias in reversed(ALIASES.values()):
            self.execute(alias, f"DROP TABLE IF EXISTS {MARKER_TABLE}")

    def read_marker(self, alias: str, name: str) -> Any:
        with connections[alias].cursor() as cursor:
            cursor.execute(f"SELECT value FROM {MARKER_TABLE} WHERE name = %s", [name])  # noqa: S608
            row = cursor.fetchone()
        return json.loads(row[0]) if row else None

    def write_marker(self, alias: str, name: str, value: Any) -> None:
        """Set a marker within the current transaction."""
        self.execute(alias, f"DELETE FROM {MARKER_TABLE} WHERE name = %s", [name])  # noqa: S608
        self.execute(alias, f"INSERT INTO {MARKER_TABLE} (name, value) VALUES (%s, %s)", [name, json.dumps(value)])  # noqa: S608

    def execute(self, alias: str, statement: str, values: list[Any] | None = None) -> None:
        with connections[alias].cursor() as cursor:
            cursor.execute(statement, values)


def _database_identity(alias: str) -> str:
    settings = connections[alias].settings_dict
    return " ".join(str(settings[name]) for name in ("ENGINE", "NAME", "HOST", "PORT"))
