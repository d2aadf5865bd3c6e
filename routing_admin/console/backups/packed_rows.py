"""The request log of a PostgreSQL backup: COPY's text output, with one compressed file per table.

Millions of rows are copied to and from the database as bytes, and parsed only if they are restored into SQLite or need
migrations. Values are written as SQLite stores them. The first line names the columns, so `zcat` and PostgreSQL's `COPY
… FROM … (HEADER)` can also read the files.
"""

from __future__ import annotations

import gzip
import io
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.conf import settings

from artifacts.core.store import BLOCK
from routing_admin.console.backups import databases
from routing_admin.console.backups.data_transfer.lines import parse_line
from routing_admin.console.backups.data_transfer.rows import DifferenceError
from routing_admin.console.backups.data_transfer.streams import (
    BATCH_ROWS,
    Kinds,
    TextDigest,
    copy_text,
    open_copy_writer,
)
from routing_admin.console.backups.data_transfer.tables import Table
from routing_admin.console.backups.data_transfer.target import Destination
from routing_admin.platform.databases.progress import WorkProgress, show_progress
from routing_admin.platform.databases.schema import Migration
from routing_admin.platform.databases.sqlite.base import make_private

FOLDER, END = "logs", ".copy.gz"
# Compression level 1 reduces the text to an eighth of its size, in a quarter of the time that the database takes to
# write the text.
COMPRESSION_LEVEL = 1
INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"


@dataclass(frozen=True, slots=True)
class PackedRows:
    """The number of rows of each table, and the uncompressed size of all tables' text."""

    rows: dict[str, int]
    text_bytes: int


def save_tables(part: Path, tables: Sequence[Table], alias: str) -> PackedRows:
    """Write the tables into a backup's folder and read them back to verify them.

    Raise `OSError`, or `DifferenceError` if the rows differ.
    """
    (part / FOLDER).mkdir(mode=0o700)
    rows, total = {}, 0
    with show_progress("Log rows copied", sum(table._base_manager.using(alias).count() for table in tables)) as counter:
        for table in tables:
            path = packed_path(part / FOLDER, table)
            written = TextDigest()
            make_private(str(path))
            with gzip.open(path, "wb", COMPRESSION_LEVEL) as packed, io.BufferedWriter(packed, BLOCK) as file:
                for text in _dump_table(table, alias, counter):
                    file.write(text)
                    written.add(text)
            databases.sync(path)
            if _digest_file(path) != written:
                raise DifferenceError(f"{path.name} differs from what the database sent.")
            rows[table._meta.db_table], total = written.lines - 1, total + written.size
    return PackedRows(rows, total)


def restore_tables(folder: Path, tables: Sequence[Table], alias: str, count: int) -> None:
    """Insert and verify a backup's rows. The backup must have the current migrations.

    Raise `DifferenceError` if the stored rows differ.
    """
    with show_progress("Log rows restored and verified", 2 * count) as counter:
        for table in tables:
            path, saved = packed_path(folder, table), TextDigest()
            with gzip.open(path, "rb") as file:
                header = file.readline()
                saved.add(header)
                with open_copy_writer(table._meta.db_table, alias, header.decode().rstrip("\n").split("\t")) as write:
                    while block := file.read(BLOCK):
                        write(block)
                        counter.advance(saved.add(block))
            stored = TextDigest()
            for text in _dump_table(table, alias, counter):
                stored.add(text)
            if stored != saved:
                raise DifferenceError(
                    f"{table._meta.db_table} differs. Rows here: {saved.lines - 1}, there: {stored.lines - 1}."
                )


def unpack(folder: Path, migrations: Sequence[Migration], target: Path, count: int) -> None:
    """Write the packed rows into a new SQLite file, migrated to `migrations`. Raise `MoveError` or `OSError`."""
    with tempfile.TemporaryDirectory(prefix="restore-", dir=settings.DATA_DIR) as name:
        path = Path(name) / "rows.sqlite3"
        files = Destination(f"sqlite:///{path}")
        files.open()
        try:
            files.make_tables(migrations)
        finally:
            files.close()
        logs = path.with_name("rows-logs.sqlite3")
        with closing(sqlite3.connect(logs, isolation_level=None)) as database:
            _fill(database, folder, count)
        databases.merge_files(logs)
        # The rows were written without waiting for the disk, so flush them now.
        databases.sync(logs)
        logs.rename(target)


def _fill(database: sqlite3.Connection, folder: Path, count: int) -> None:
    database.execute("PRAGMA synchronous = OFF")
    # Creating the indexes after the rows are inserted is faster.
    indexes = database.execute(INDEXES).fetchall()
    for name, _ in indexes:
        database.execute(f'DROP INDEX "{name}"')
    with show_progress("Log rows restored", count) as counter:
        for path in sorted(folder.glob(f"*{END}")):
            database.execute("BEGIN")
            _fill_table(database, path, counter)
            database.execute("COMMIT")
    with show_progress("Indexes", len(indexes)) as counter:
        for _, statement in indexes:
            database.execute(statement)
            counter.advance()


def _fill_table(database: sqlite3.Connection, path: Path, counter: WorkProgress) -> None:
    name = path.name.removesuffix(END)
    (statement,) = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", [name]).fetchone()
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        names = file.readline().rstrip("\n").split("\t")
        types = {row[1]: row[2] for row in database.execute(f'PRAGMA table_info("{name}")')}
        blob_columns = [index for index, column in enumerate(names) if types[column].upper() == "BLOB"]
        # For a JSON column in SQLite, Django declares a text column with this CHECK constraint.
        json_columns = [index for index, column in enumerate(names) if f'JSON_VALID("{column}")' in statement]
        database.execute(f'DELETE FROM "{name}"')  # noqa: S608  # the tables' own names, here and below
        columns, marks = ", ".join(f'"{column}"' for column in names), ", ".join("?" * len(names))
        while lines := list(islice(file, BATCH_ROWS)):
            rows = (parse_line(line, blob_columns, json_columns) for line in lines)
            database.executemany(f'INSERT INTO "{name}" ({columns}) VALUES ({marks})', rows)  # noqa: S608
            counter.advance(len(lines))


def packed_path(folder: Path, table: Table) -> Path:
    return folder / f"{table._meta.db_table}{END}"


def _dump_table(table: Table, alias: str, counter: WorkProgress) -> Iterator[bytes]:
    yield "\t".join(Kinds(table).columns).encode() + b"\n"
    for text in copy_text(table, alias):
        counter.advance(text.count(b"\n"))
        yield text


def _digest_file(path: Path) -> TextDigest:
    digest = TextDigest()
    with gzip.open(path, "rb") as file:
        while block := file.read(BLOCK):
            digest.add(block)
    return digest
