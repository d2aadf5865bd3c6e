"""Entries become rows: few prepared statements for each of the two tables, as the ORM would cost several times as much.

What stands in a row is what the ORM would have written.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from operator import itemgetter
from typing import Any

import orjson
from django.db import IntegrityError, connections, transaction
from django.db.models import DateTimeField, Field, JSONField, Model

from routing_admin.databases.postgresql.text import storable_json
from routing_admin.databases.router import LOGS, POSTGRESQL
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.chunks import in_chunks
from routing_admin.request_log.costs import cost_columns
from routing_admin.request_log.entries import Entry, attempt_columns, request_columns
from routing_admin.request_log.usage_sums import add_usage

Columns = Mapping[str, Any]
Row = tuple[Columns, Sequence[Columns]]
"""A request with its attempts."""
Rows = Sequence[Row]


def write(entries: Iterable[Entry]) -> None:
    """Writes entries in one transaction; an id that is taken gets a mark of its own, so that nothing is overwritten.

    Raises what the database raises; then none of them is written.
    """
    write_rows(rows_of(entries))


def rows_of(entries: Iterable[Entry]) -> Rows:
    """The entries as rows."""
    return [_row_of(entry) for entry in entries]


def _row_of(entry: Entry) -> Row:
    cost, costs = cost_columns(entry)
    attempts = [{**row, **spent} for row, spent in zip(attempt_columns(entry), costs, strict=True)]
    return {**request_columns(entry), **cost}, attempts


def write_rows(rows: Rows) -> None:
    """`write` for rows that are made already."""
    if connections[LOGS].vendor == POSTGRESQL:
        rows = _unlike_other_days(rows)
    try:
        with transaction.atomic(using=LOGS):
            _insert_rows(rows)
    except IntegrityError:  # rarely is an id taken: nobody looks before
        with transaction.atomic(using=LOGS):
            _insert_rows(_under_free_ids(rows))


OURS = re.compile(r"req_[0-9a-f]{24}")
"""Ids that callers did not choose, and that no two requests have."""


def _unlike_other_days(rows: Rows) -> Rows:
    """The rows under ids that no other day has: where each has its own table, none sees another's."""
    chosen = [request["id"] for request, _ in rows if not OURS.fullmatch(request["id"])]
    taken = chosen and RequestLog.objects.using(LOGS).filter(pk__in=chosen).exists()
    return _under_free_ids(rows) if taken else rows


def write_missing(rows: Rows) -> None:
    """The same for rows some of which may be there already: those are passed over."""
    with transaction.atomic(using=LOGS):
        there = _ids_there(rows)
        write_rows([_complete(row) for row in rows if (row[0]["id"], str(row[0]["started_at"])) not in there])


def _complete(row: Row) -> Row:
    """The row with what an earlier version did not know of."""
    request, attempts = row
    return {**_defaults(RequestLog), **request}, [{**_defaults(AttemptLog), **each} for each in attempts]


@cache
def _defaults(model: type[Model]) -> dict[str, Any]:
    return {field.attname: field.get_default() for field in _fields(model)}


def _ids_there(rows: Rows) -> set[tuple[str, str]]:
    """The requests among these that are in the table; an id alone may be another request's."""
    found = RequestLog.objects.using(LOGS).filter(pk__in=[request["id"] for request, _ in rows])
    return {(key, str(began)) for key, began in found.values_list("pk", "started_at")}


def _insert_rows(rows: Rows) -> None:
    _insert(RequestLog, [request for request, _ in rows])
    _insert(AttemptLog, [attempt for _, attempts in rows for attempt in attempts])
    add_usage(rows)


def _under_free_ids(rows: Rows) -> Rows:
    """The same rows, no two requests of which have one id, nor one that is in the table."""
    ids = [request["id"] for request, _ in rows]
    taken = set(RequestLog.objects.using(LOGS).filter(pk__in=ids).values_list("pk", flat=True))
    free = []
    for request, attempts in rows:
        key = request["id"]
        if key in taken:
            key = f"{key[:55]}~{secrets.token_hex(4)}"
        taken.add(key)
        free.append(({**request, "id": key}, [{**attempt, "request_id": key} for attempt in attempts]))
    return free


CHUNKS = (100, 20)
"""How many rows one statement writes; fewer go in one of their own.

While a statement runs the event loop has the interpreter, and who ends a statement waits until the loop lets go of it:
row by row a busy process would write a few hundred rows a second.
"""


@dataclass(frozen=True, slots=True)
class Insertion:
    """How rows of a table are inserted: the values that are wanted of a row, and which of them are no plain ones."""

    values: Callable[[Columns], tuple[Any, ...]]
    json_places: tuple[int, ...]
    time_places: tuple[int, ...]


@cache
def _insertion(model: type[Model]) -> Insertion:
    """The same for every row of a model."""
    fields = _fields(model)
    values = itemgetter(*(field.attname for field in fields))
    return Insertion(values, _places(fields, JSONField), _places(fields, DateTimeField))


@cache
def _statement(model: type[Model], rows: int) -> str:
    """The statement that inserts so many rows; a key that counts itself is left to the database."""
    fields, quote = _fields(model), connections[LOGS].ops.quote_name
    names, table = ", ".join(quote(str(field.column)) for field in fields), quote(model._meta.db_table)
    row = f"({', '.join(['%s'] * len(fields))})"
    return f"INSERT INTO {table} ({names}) VALUES {', '.join([row] * rows)}"  # noqa: S608  # our models' own names


def _fields(model: type[Model]) -> list[Field[Any, Any]]:
    return [field for field in model._meta.concrete_fields if field is not model._meta.auto_field]


def _places(fields: Iterable[Field[Any, Any]], kind: type[Field[Any, Any]]) -> tuple[int, ...]:
    return tuple(at for at, field in enumerate(fields) if isinstance(field, kind))


def _insert(model: type[Model], rows: Sequence[Columns]) -> None:
    connection, insertion = connections[LOGS], _insertion(model)
    with connection.cursor() as cursor:
        for chunk in in_chunks(rows, CHUNKS):
            cursor.execute(_statement(model, len(chunk)), _parameters(connection, insertion, chunk))


def _parameters(connection: Any, insertion: Insertion, rows: Iterable[Columns]) -> list[Any]:
    """The values of all rows, one after the other, as the database takes them."""
    adapt_time, parameters = _time_adapter(connection), list[Any]()
    write_json = json_text if connection.vendor == "sqlite" else _storable_json_text
    for columns in rows:
        values = list(insertion.values(columns))
        for at in insertion.json_places:
            if values[at] is not None:
                values[at] = write_json(values[at])
        for at in insertion.time_places:
            values[at] = adapt_time(values[at])
        parameters += values
    return parameters


def _storable_json_text(value: Any) -> str:
    return storable_json(json_text(value))


def _time_adapter(connection: Any) -> Callable[[datetime], Any]:
    """How the database takes a moment in UTC, as all of ours are; SQLite takes its text, without the zone."""
    if connection.vendor == "sqlite" and connection.timezone is UTC:
        return lambda moment: str(moment.astimezone(UTC))[: -len("+00:00")]
    adapt: Callable[[datetime], Any] = connection.ops.adapt_datetimefield_value
    return adapt


def json_text(value: Any) -> str:
    """A value as JSON, also where it holds what only Python's own module writes: half a surrogate, a huge number."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value)
