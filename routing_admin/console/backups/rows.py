"""Copy PostgreSQL's rows into a backup and back. A backup made on either engine can be restored on either.

The main database becomes an SQLite file, and the request log becomes files in COPY's text format (`packed_rows`). Both
are read in one transaction, as a consistent snapshot, and then compared with the database by count and hash. Before
rows are restored, the existing tables are moved into another schema of the same database.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.apps import apps
from django.apps.registry import Apps
from django.conf import settings
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, ProgrammingError, connections, transaction
from django.utils import timezone

from routing_admin.console.backups import databases, packed_rows
from routing_admin.console.backups.data_transfer.rows import (
    AliasMap,
    DifferenceError,
    drop_indexes,
    empty_tables,
    list_indexes,
    make_indexes,
    reset_sequences,
    transfer_rows,
)
from routing_admin.console.backups.data_transfer.tables import Table, list_tables, table_alias
from routing_admin.console.backups.data_transfer.target import ALIASES, Destination, MoveError
from routing_admin.console.backups.manifest import BackupError, Manifest, SavedDatabase
from routing_admin.platform.databases.postgresql.partitions import make_days
from routing_admin.platform.databases.router import LOGS, POSTGRESQL, one_moment
from routing_admin.platform.databases.schema import (
    Migration,
    find_leaves,
    list_applied,
    list_applied_in_file,
    list_pending,
    load_migrations,
)

# Both aliases use one connection, so that both databases are read in a single transaction and thus as one snapshot. On
# PostgreSQL, both aliases refer to the same database.
SERVED_ALIASES: AliasMap = {DEFAULT_DB_ALIAS: DEFAULT_DB_ALIAS, LOGS: DEFAULT_DB_ALIAS}
FILE_NAMES: Mapping[str, str] = {DEFAULT_DB_ALIAS: "rows.sqlite3", LOGS: "rows-logs.sqlite3"}
"""Names of the temporary SQLite files. The second is derived from the first by the database settings."""


def save_rows(part: Path) -> dict[str, SavedDatabase]:
    """Write both databases into a backup. Raise `BackupError` if that fails."""
    registry: Apps = apps
    leaves: Sequence[Migration] = ()
    # If migrations are pending, the backup's tables must match the applied migrations, not the current models.
    if list_pending():
        leaves = find_leaves(applied_before := list_applied())
        registry = load_migrations(applied_before).project_state(list(leaves)).apps
    with _files_in(part) as files:
        files.make_tables(leaves)
        tables = list_tables(registry)
        empty_tables(tables, ALIASES)
        main_tables, logs = _split_logs(tables)
        with one_moment():
            transfer_rows(main_tables, SERVED_ALIASES, ALIASES)
            packed = packed_rows.save_tables(part, logs, DEFAULT_DB_ALIAS)
        reset_sequences(tables, ALIASES)
    for name in FILE_NAMES.values():
        databases.merge_files(part / name)
    path = part / databases.FILES[DEFAULT_DB_ALIAS]
    (part / FILE_NAMES[DEFAULT_DB_ALIAS]).rename(path)
    # The request log is in the packed files, so this database file is not needed.
    (part / FILE_NAMES[LOGS]).unlink()
    databases.sync(path)
    applied = [list(migration) for migration in list_applied_in_file(path)]
    return {
        DEFAULT_DB_ALIAS: SavedDatabase(
            file=path.name, engine=POSTGRESQL, migrations=applied, rows=databases.count_rows(path)
        ),
        LOGS: SavedDatabase(
            file=packed_rows.FOLDER,
            engine=POSTGRESQL,
            migrations=applied,
            rows=packed.rows,
            text_bytes=packed.text_bytes,
        ),
    }


def restore_rows(folder: Path, manifest: Manifest) -> None:
    """Replace all rows with those of a backup, in one transaction. Raise `BackupError` if that fails.

    The backup may have been made by an older version of the program.
    """
    call_command("migrate", verbosity=0, interactive=False)
    make_days(timezone.now())
    saved = manifest.databases[LOGS]
    # Packed rows can be inserted directly only if the backup has the same migrations as the current tables. Otherwise,
    # they are first migrated in an SQLite file.
    is_streamed = saved.is_packed and set(list_applied()) == {(app, name) for app, name in saved.migrations}
    with tempfile.TemporaryDirectory(prefix="restore-", dir=settings.DATA_DIR) as name:
        for alias, database in manifest.databases.items():
            if not (alias == LOGS and is_streamed):
                copy_file(folder, database, Path(name) / FILE_NAMES[alias])
        with _files_in(Path(name)) as files:
            files.make_tables()
            tables = list_tables()
            main_tables, logs = _split_logs(tables)
            with transaction.atomic():
                empty_tables(tables, SERVED_ALIASES)
                indexes = list_indexes(tables, SERVED_ALIASES)
                drop_indexes(indexes)
                transfer_rows(main_tables if is_streamed else tables, ALIASES, SERVED_ALIASES)
                if is_streamed:
                    packed_rows.restore_tables(folder / saved.file, logs, DEFAULT_DB_ALIAS, saved.row_count)
                make_indexes(indexes)
                reset_sequences(tables, SERVED_ALIASES)


def copy_file(folder: Path, saved: SavedDatabase, target: Path) -> None:
    """Write a backup's database to an SQLite file, with its original tables. Raise `BackupError` if that fails."""
    if not saved.is_packed:
        shutil.copyfile(folder / saved.file, target)
        return
    try:
        leaves = find_leaves((app, name) for app, name in saved.migrations)
        packed_rows.unpack(folder / saved.file, leaves, target, saved.row_count)
    except MoveError as error:
        raise BackupError(f"The rows could not be restored: {error}") from None


def _split_logs(tables: list[Table]) -> tuple[list[Table], list[Table]]:
    logs = [table for table in tables if table_alias(table) == LOGS]
    return [table for table in tables if table not in logs], logs


def has_rows() -> bool:
    connection = connections[DEFAULT_DB_ALIAS]
    existing = set(connection.introspection.table_names()) & {table._meta.db_table for table in list_tables()}
    with connection.cursor() as cursor:
        for name in sorted(existing):
            cursor.execute(f'SELECT EXISTS (SELECT 1 FROM "{name}")')  # noqa: S608
            if cursor.fetchone()[0]:
                return True
    return False


def measure_rows() -> int:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


@contextmanager
def set_schema_aside() -> Iterator[str | None]:
    """Move the existing tables into another schema, and back if the block fails. Yield a description of that schema.

    Empty tables are not moved, and None is yielded. Raise `BackupError` if the database user does not own the schema.
    """
    if not has_rows():
        yield None
        return
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        (current,) = cursor.fetchone()
    aside = f"before_restore_{timezone.now():%Y%m%d_%H%M%S_%f}"
    try:
        _execute(f"ALTER SCHEMA {current} RENAME TO {aside}", f"CREATE SCHEMA {current}")
    except ProgrammingError:
        raise BackupError(
            f"The database user cannot move the existing rows aside because it does not own the schema {current}. "
            "Make it the owner of the database, or set DATABASE_URL to an empty database."
        ) from None
    try:
        yield f"the schema {aside} of the database"
    except BaseException:
        connections.close_all()
        _execute(f"DROP SCHEMA {current} CASCADE", f"ALTER SCHEMA {aside} RENAME TO {current}")
        raise


def _execute(*statements: str) -> None:
    with transaction.atomic(), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def _files_in(folder: Path) -> Iterator[Destination]:
    files = Destination(f"sqlite:///{folder / FILE_NAMES[DEFAULT_DB_ALIAS]}")
    try:
        files.open()
        yield files
    except (MoveError, DifferenceError) as error:
        raise BackupError(f"The rows could not be copied: {error}") from None
    except DatabaseError as error:
        raise BackupError(f"The rows could not be copied. The database says: {str(error).splitlines()[0]}") from None
    finally:
        files.close()
