"""Read and write rows by each engine's fastest method: plain statements in SQLite, COPY in PostgreSQL.

A row that has been read is a tuple of values as SQLite stores them: times are text in UTC, JSON is text, and booleans
are 0 or 1. Model instances would take ten times as long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from django.db import connections, transaction

from routing_admin.console.backups.data_transfer.lines import Row, escape_json, format_lines
from routing_admin.console.backups.data_transfer.tables import Table, list_columns
from routing_admin.platform.databases.progress import WorkProgress
from routing_admin.platform.databases.router import POSTGRESQL

BATCH_ROWS = 5000
UTC_TIME = "replace(to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), '.000000', '')"
FROM_POSTGRESQL = {
    "DateTimeField": (UTC_TIME, "text"),
    "BooleanField": ("{}::int4", "int4"),
    "FloatField": ("{}::float8", "float8"),
    "BinaryField": ("{}", "bytea"),
    **dict.fromkeys(("CharField", "TextField", "JSONField", "DateField"), ("{}::text", "text")),
}
"""For each kind of column, the SQL expression that reads it and the resulting type. All other kinds are read as
integers.
"""
INTEGER = ("{}::int8", "int8")


class Kinds:
    """A table's columns: their kinds and names, and the positions of the primary key and of the JSON columns."""

    def __init__(self, table: Table) -> None:
        self.table = table._meta.db_table
        fields = list_columns(table)
        self.kinds = [_column_kind(field) for field in fields]
        self.columns = [str(field.column) for field in fields]
        self.names = [f'"{column}"' for column in self.columns]
        self.key = next(index for index, field in enumerate(fields) if field.primary_key)
        self.json = [index for index, kind in enumerate(self.kinds) if kind == "JSONField"]

    def order(self, vendor: str) -> str:
        """Return an ORDER BY expression for the primary key that gives the same order on both engines.

        Text is sorted bytewise.
        """
        is_text = FROM_POSTGRESQL.get(self.kinds[self.key], INTEGER)[1] == "text"
        return self.names[self.key] + (' COLLATE "C"' if is_text and vendor == POSTGRESQL else "")


def _column_kind(field: Any) -> str:
    # A foreign key column has the kind of the column it refers to.
    while field.remote_field:
        field = field.target_field
    return str(field.get_internal_type())


class TextDigest:
    """The line count, byte count and SHA-256 of a text that is added in chunks."""

    def __init__(self) -> None:
        self.lines = self.size = 0
        self.hash = hashlib.sha256()

    def add(self, text: bytes) -> int:
        """Add a chunk of text and return the number of line breaks in it."""
        lines = text.count(b"\n")
        self.lines, self.size = self.lines + lines, self.size + len(text)
        self.hash.update(text)
        return lines

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextDigest) and self.hash.digest() == other.hash.digest()

    __hash__ = None  # type: ignore[assignment]  # A mutable buffer is accepted, too.


def read_batches(table: Table, alias: str, after: Any = None) -> Iterator[Sequence[Row]]:
    """Yield rows in batches, ordered by primary key: all rows, or those whose key is greater than `after`."""
    kinds, vendor = Kinds(table), connections[alias].vendor
    read_rows, key = _read_postgresql if vendor == POSTGRESQL else _read_sqlite, kinds.order(vendor)
    clauses = f' FROM "{kinds.table}"' + (f" WHERE {key} > %s" if after is not None else "") + f" ORDER BY {key}"
    yield from read_rows(kinds, alias, clauses, [after] if after is not None else [])


def _read_sqlite(kinds: Kinds, alias: str, clauses: str, values: list[Any]) -> Iterator[Sequence[Row]]:
    with connections[alias].cursor() as cursor:
        # The unary plus makes each column an expression without a declared type, so that SQLite converts no values.
        columns = ", ".join(f"+{name}" for name in kinds.names)
        cursor.execute(f"SELECT {columns}{clauses}", values)
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield rows


def _read_postgresql(kinds: Kinds, alias: str, clauses: str, values: list[Any]) -> Iterator[Sequence[Row]]:
    connection = connections[alias]
    statement = f"COPY (SELECT {_select_expressions(kinds)}{clauses}) TO STDOUT (FORMAT BINARY)"
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement, values or None) as copy:
        copy.set_types([FROM_POSTGRESQL.get(kind, INTEGER)[1] for kind in kinds.kinds])
        stream = copy.rows()
        while rows := list(islice(stream, BATCH_ROWS)):
            yield [escape_json(row, kinds.json) for row in rows] if kinds.json else rows


def _select_expressions(kinds: Kinds) -> str:
    forms = (FROM_POSTGRESQL.get(kind, INTEGER)[0] for kind in kinds.kinds)
    return ", ".join(form.format(name) for form, name in zip(forms, kinds.names, strict=True))


def copy_text(table: Table, alias: str) -> Iterator[bytes]:
    """Yield a PostgreSQL table in COPY's text format, ordered by its primary key."""
    kinds, connection = Kinds(table), connections[alias]
    clauses = f'FROM "{kinds.table}" ORDER BY {kinds.order(POSTGRESQL)}'
    statement = f"COPY (SELECT {_select_expressions(kinds)} {clauses}) TO STDOUT"
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        lines = (bytes(line) for line in copy)
        while batch := list(islice(lines, BATCH_ROWS)):
            yield b"".join(batch)


@contextmanager
def open_copy_writer(table: str, alias: str, names: Sequence[str]) -> Iterator[Callable[[bytes], None]]:
    """Yield a function that inserts lines in COPY's text format into these columns of a PostgreSQL table."""
    connection, columns = connections[alias], ", ".join(f'"{name}"' for name in names)
    statement = f'COPY "{table}" ({columns}) FROM STDIN'
    with (
        transaction.atomic(using=alias),
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        yield copy.write


@contextmanager
def _open_row_writer(kinds: Kinds, alias: str) -> Iterator[Callable[[Sequence[Row], bytes], object]]:
    connection = connections[alias]
    if connection.vendor == POSTGRESQL:
        with open_copy_writer(kinds.table, alias, kinds.columns) as write:
            yield lambda _, lines: write(lines)
        return
    names, marks = ", ".join(kinds.names), ", ".join("?" * len(kinds.names))
    statement = f'INSERT INTO "{kinds.table}" ({names}) VALUES ({marks})'  # noqa: S608  # our models' own names
    with transaction.atomic(using=alias), connection.wrap_database_errors:
        yield lambda rows, _: connection.connection.executemany(statement, rows)


def write_batches(
    table: Table, alias: str, batches: Iterable[Sequence[Row]], digest: TextDigest, counter: WorkProgress
) -> Any:
    """Insert rows in one transaction. Return the last row's primary key, or None if there are no rows."""
    kinds, last_key = Kinds(table), None
    with _open_row_writer(kinds, alias) as insert:
        for rows in batches:
            lines = format_lines(kinds.kinds, rows)
            insert(rows, lines)
            counter.advance(digest.add(lines))
            last_key = rows[-1][kinds.key]
    return last_key


def digest_table(table: Table, alias: str, counter: WorkProgress | None = None) -> TextDigest:
    """Return the digest of a table's rows, which is the same on every engine."""
    digest, kinds = TextDigest(), Kinds(table).kinds
    for rows in read_batches(table, alias):
        lines = digest.add(format_lines(kinds, rows))
        if counter:
            counter.advance(lines)
    return digest


def digest_text(table: Table, alias: str, counter: WorkProgress) -> TextDigest:
    """Return the digest of the text that PostgreSQL itself writes, in a third of the time that `digest_table` takes."""
    digest = TextDigest()
    for text in copy_text(table, alias):
        counter.advance(digest.add(text))
    return digest
