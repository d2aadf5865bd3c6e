"""Tables as they are carried: every row of every model, as it is, and a digest that is the same on every engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import islice
from typing import Any

from django.apps import apps
from django.apps.registry import Apps
from django.db import connections, router
from django.db.models import Field, Model
from django.db.models.sql import InsertQuery

from capabilities.core.storable import settle, storable_text

BATCH = 500
"""Rows that are carried at a time, each batch in a transaction of its own."""

Table = type[Model]


@dataclass(frozen=True, slots=True)
class TableDigest:
    """How many rows a table has, and the sum of their hashes: the same in whatever order they are read."""

    count: int
    sum: int


def list_tables(registry: Apps = apps) -> list[Table]:
    """Every table, those first that others refer to. Raises `LookupError` where they do so in a circle."""
    waiting = [each for each in registry.get_models(include_auto_created=True) if each._meta.managed]
    ordered: list[Table] = []
    while waiting:
        ready = [each for each in waiting if not references_of(each) & set(waiting) - {each}]
        if not ready:
            raise LookupError("Tables refer to one another in a circle.")
        ordered += ready
        waiting = [each for each in waiting if each not in ready]
    return ordered


def references_of(table: Table) -> set[Table]:
    """The tables that this one refers to."""
    return {each.related_model for each in table._meta.local_fields if isinstance(each.related_model, type)}


def alias_of(table: Table) -> str:
    """The database of the installation that has the table."""
    return router.db_for_read(table)


def read_batches(table: Table, alias: str, after: Any = None) -> Iterator[list[Model]]:
    """The rows behind a primary key, in its order, some at a time: asked for once, since not every key is indexed."""
    rows = table._base_manager.using(alias).order_by("pk")
    stream = (rows if after is None else rows.filter(pk__gt=after)).iterator(chunk_size=BATCH)
    while some := list(islice(stream, BATCH)):
        yield some


def write_rows(table: Table, alias: str, rows: list[Model]) -> None:
    """Inserts rows as they are: no field is set anew, nothing is told of it."""
    fields = columns_of(table)
    most = connections[alias].ops.bulk_batch_size(fields, rows) or len(rows)
    for start in range(0, len(rows), most):
        query = InsertQuery(table)
        query.insert_values(fields, rows[start : start + most], raw=True)
        query.get_compiler(using=alias).execute_sql()


def columns_of(table: Table) -> list[Field[Any, Any]]:
    """The fields that a row is made of."""
    return [each for each in table._meta.local_concrete_fields if not getattr(each, "generated", False)]


def digest_table(table: Table, alias: str) -> TableDigest:
    """The digest of all rows as they are now."""
    names = [each.attname for each in columns_of(table)]
    count = total = 0
    for rows in read_batches(table, alias):
        for row in rows:
            words = json.dumps([to_plain(getattr(row, name)) for name in names], sort_keys=True)
            total += int.from_bytes(hashlib.sha256(words.encode()).digest(), "big")
        count += len(rows)
    return TableDigest(count, total % 2**256)


def to_plain(value: Any) -> Any:
    """A value of a row in one form, whichever engine gave it: what PostgreSQL cannot keep of a text counts as changed
    already, and 1.0 in JSON is 1."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else settle(value)
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {storable_text(str(key)): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return storable_text(str(value))
