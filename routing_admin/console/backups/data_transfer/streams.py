"""Rows read from and written to either engine at its own speed: SQLite's plain statements, PostgreSQL's COPY.

On the way a row is a tuple of what SQLite stores: times in UTC and JSON are text, truth is 0 or 1. Model instances
would take ten times as long.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from django.db import DataError, connections, transaction

from capabilities.core.storable import settle, settle_json, storable_text
from routing_admin.console.backups.data_transfer.tables import Table, columns_of
from routing_admin.platform.databases.progress import WorkProgress
from routing_admin.platform.databases.router import POSTGRESQL

BATCH = 5000
"""Rows that are carried at a time."""
Row = Sequence[Any]
MOMENT = "replace(to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), '.000000', '')"
FROM_POSTGRESQL = {
    "DateTimeField": (MOMENT, "text"),
    "BooleanField": ("{}::int4", "int4"),
    "FloatField": ("{}::float8", "float8"),
    "BinaryField": ("{}", "bytea"),
    **dict.fromkeys(("CharField", "TextField", "JSONField", "DateField"), ("{}::text", "text")),
}
"""How a kind of column is read, and as which type; every other is a whole number."""
WHOLE = ("{}::int8", "int8")


class Kinds:
    """A table's columns: their names, and the places of those whose values have several forms."""

    def __init__(self, table: Table) -> None:
        self.table = table._meta.db_table
        fields = columns_of(table)
        self.kinds = [_kind_of(each) for each in fields]
        self.names = [f'"{each.column}"' for each in fields]
        self.key = next(place for place, each in enumerate(fields) if each.primary_key)
        self.json, self.moments, self.floats = (
            [place for place, kind in enumerate(self.kinds) if kind == wanted]
            for wanted in ("JSONField", "DateTimeField", "FloatField")
        )


def _kind_of(field: Any) -> str:
    """Return what the column of a field is, of one that refers to another what that is."""
    while field.remote_field:
        field = field.target_field
    return str(field.get_internal_type())


def read_batches(table: Table, alias: str, after: Any = None, *, in_order: bool = True) -> Iterator[Sequence[Row]]:
    """Yield the rows behind a primary key, some at a time, in its order if asked for: not every key is indexed."""
    kinds = Kinds(table)
    read = _read_postgresql if connections[alias].vendor == POSTGRESQL else _read_sqlite
    key = kinds.names[kinds.key]
    rest = f' FROM "{kinds.table}"' + (f" WHERE {key} > %s" if after is not None else "")
    yield from read(kinds, alias, rest + (f" ORDER BY {key}" if in_order else ""), [after] if after is not None else [])


def _read_sqlite(kinds: Kinds, alias: str, rest: str, values: list[Any]) -> Iterator[Sequence[Row]]:
    with connections[alias].cursor() as cursor:
        columns = ", ".join(f"+{name}" for name in kinds.names)  # a sum has no type, so that nothing is converted
        cursor.execute(f"SELECT {columns}{rest}", values)
        while rows := cursor.fetchmany(BATCH):
            yield rows


def _read_postgresql(kinds: Kinds, alias: str, rest: str, values: list[Any]) -> Iterator[Sequence[Row]]:
    connection = connections[alias]
    statement = f"COPY (SELECT {_forms_of(kinds)}{rest}) TO STDOUT (FORMAT BINARY)"
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement, values or None) as copy:
        copy.set_types([FROM_POSTGRESQL.get(kind, WHOLE)[1] for kind in kinds.kinds])
        stream = copy.rows()
        while rows := list(islice(stream, BATCH)):
            yield [escape_json(row, kinds.json) for row in rows] if kinds.json else rows


def _forms_of(kinds: Kinds) -> str:
    forms = (FROM_POSTGRESQL.get(kind, WHOLE)[0] for kind in kinds.kinds)
    return ", ".join(form.format(name) for form, name in zip(forms, kinds.names, strict=True))


def copy_text(table: Table, alias: str) -> Iterator[bytes]:
    """Yield a table of PostgreSQL as lines of COPY's text, ordered by the bytes of its key."""
    kinds, connection = Kinds(table), connections[alias]
    key, kind = kinds.names[kinds.key], kinds.kinds[kinds.key]
    order = f'{key} COLLATE "C"' if FROM_POSTGRESQL.get(kind, WHOLE)[1] == "text" else key
    statement = f'COPY (SELECT {_forms_of(kinds)} FROM "{kinds.table}" ORDER BY {order}) TO STDOUT'  # noqa: S608
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        lines = (bytes(line) for line in copy)
        while some := list(islice(lines, BATCH)):
            yield b"".join(some)


def take_text(table: Table, alias: str, names: Sequence[str], blocks: Iterable[bytes]) -> None:
    """Insert lines of COPY's text, which give these columns, into a table of PostgreSQL."""
    connection, columns = connections[alias], ", ".join(f'"{name}"' for name in names)
    statement = f'COPY "{table._meta.db_table}" ({columns}) FROM STDIN'
    with (
        transaction.atomic(using=alias),
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        for block in blocks:
            copy.write(block)


def escape_json(row: Row, places: list[int]) -> Row:
    """Return the row with JSON as Django writes it into SQLite: in ASCII."""
    if all((row[place] or "").isascii() for place in places):
        return row
    return [
        json.dumps(json.loads(value)) if place in places and value is not None else value
        for place, value in enumerate(row)
    ]


def write_rows(table: Table, alias: str, rows: Sequence[Row]) -> None:
    """Insert rows as they are, in a transaction of their own or the one that is open."""
    kinds, connection = Kinds(table), connections[alias]
    if connection.vendor != POSTGRESQL:
        marks, names = ", ".join("?" * len(kinds.names)), ", ".join(kinds.names)
        statement = f'INSERT INTO "{kinds.table}" ({names}) VALUES ({marks})'  # noqa: S608  # our models' own names
        connection.ensure_connection()
        with transaction.atomic(using=alias), connection.wrap_database_errors:
            connection.connection.executemany(statement, rows)
        return
    try:
        _copy_in(kinds, alias, rows)
    except DataError:  # of an older version, which let SQLite keep what PostgreSQL cannot
        _copy_in(kinds, alias, (_settled(row, kinds) for row in rows))


def _copy_in(kinds: Kinds, alias: str, rows: Iterable[Row]) -> None:
    from psycopg.types.string import StrDumperUnknown  # the driver: no part of a start on SQLite

    connection = connections[alias]
    with transaction.atomic(using=alias), connection.wrap_database_errors, connection.cursor() as cursor:
        cursor.adapters.register_dumper(str, StrDumperUnknown)
        with cursor.copy(f'COPY "{kinds.table}" ({", ".join(kinds.names)}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)


def _settled(row: Row, kinds: Kinds) -> Row:
    """Return the row with the nearest text and JSON that every engine can keep."""
    texts = [storable_text(value) if isinstance(value, str) else value for value in row]
    for place in kinds.json:
        texts[place] = texts[place] and settle_json(texts[place])
    return texts


@dataclass(slots=True)
class TableDigest:
    """How many rows a table has, and the sum of their hashes: the same in whatever order they are read."""

    count: int = 0
    sum: int = 0

    def add(self, kinds: Kinds, rows: Sequence[Row]) -> None:
        """Add rows, each in one form whichever engine gave it: what cannot be kept of a text counts as changed."""
        self.count += len(rows)
        total = self.sum
        for row in rows:
            plain = list(row)
            for place in kinds.json:
                plain[place] = plain[place] and _canonical_json(plain[place])
            for place in kinds.moments:
                if plain[place] and "." in plain[place]:
                    plain[place] = plain[place].rstrip("0").rstrip(".")
            for place in kinds.floats:
                plain[place] = plain[place] if plain[place] is None else plain[place] + 0.0  # -0.0 as well
            words = repr(plain)
            if "\\x00" in words or "\\ud" in words:
                words = repr([storable_text(value) if isinstance(value, str) else value for value in plain])
            total += int.from_bytes(hashlib.sha256(words.encode()).digest(), "big")
        self.sum = total % 2**256


def digest_table(table: Table, alias: str, counter: WorkProgress | None = None) -> TableDigest:
    """Return the digest of all rows as they are now."""
    digest, kinds = TableDigest(), Kinds(table)
    for rows in read_batches(table, alias, in_order=False):
        digest.add(kinds, rows)
        if counter:
            counter.advance(len(rows))
    return digest


@lru_cache(maxsize=4096)
def _canonical_json(text: str) -> str:
    """Return JSON in one form: 1.0 is 1 there, and keys are in order."""
    return json.dumps(_plain_json(settle(json.loads(text))), sort_keys=True)


def _plain_json(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain_json(each) for key, each in value.items()}
    return [_plain_json(each) for each in value] if isinstance(value, list) else value
