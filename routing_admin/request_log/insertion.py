"""Entries become rows: one prepared statement for each of the two tables, as the ORM would cost several times as much.

What stands in a row is what the ORM would have written.
"""

from __future__ import annotations

import json
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

from routing_admin.databases.router import LOGS
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.entries import Entry, attempt_columns, request_columns

Columns = Mapping[str, Any]
Rows = Sequence[tuple[Columns, Sequence[Columns]]]
"""Requests, each with its attempts."""


def write(entries: Iterable[Entry]) -> None:
    """Writes entries in one transaction; an id that is taken gets a mark of its own, so that nothing is overwritten.

    Raises what the database raises; then none of them is written.
    """
    rows = [(request_columns(entry), attempt_columns(entry)) for entry in entries]
    try:
        with transaction.atomic(using=LOGS):
            _insert_rows(rows)
    except IntegrityError:  # rarely is an id taken: nobody looks before
        with transaction.atomic(using=LOGS):
            _insert_rows(_under_free_ids(rows))


def _insert_rows(rows: Rows) -> None:
    _insert(RequestLog, [request for request, _ in rows])
    _insert(AttemptLog, [attempt for _, attempts in rows for attempt in attempts])


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


@dataclass(frozen=True, slots=True)
class Insertion:
    """How rows of a table are inserted: the statement, the values it wants of a row, and which are no plain ones."""

    statement: str
    values: Callable[[Columns], tuple[Any, ...]]
    json_places: tuple[int, ...]
    time_places: tuple[int, ...]


@cache
def _insertion(model: type[Model]) -> Insertion:
    """The same for every row of a model; a key that counts itself is left to the database."""
    fields = [field for field in model._meta.concrete_fields if field is not model._meta.auto_field]
    quote = connections[LOGS].ops.quote_name
    names, places = ", ".join(quote(str(field.column)) for field in fields), ", ".join(["%s"] * len(fields))
    table = quote(model._meta.db_table)
    return Insertion(
        f"INSERT INTO {table} ({names}) VALUES ({places})",  # noqa: S608  # names of our own models, quoted
        itemgetter(*(field.attname for field in fields)),
        _places(fields, JSONField),
        _places(fields, DateTimeField),
    )


def _places(fields: Iterable[Field[Any, Any]], kind: type[Field[Any, Any]]) -> tuple[int, ...]:
    return tuple(at for at, field in enumerate(fields) if isinstance(field, kind))


def _insert(model: type[Model], rows: Iterable[Columns]) -> None:
    connection, insertion = connections[LOGS], _insertion(model)
    adapt_time, parameters = _time_adapter(connection), []
    for columns in rows:
        values = list(insertion.values(columns))
        for at in insertion.json_places:
            if values[at] is not None:
                values[at] = json_text(values[at])
        for at in insertion.time_places:
            values[at] = adapt_time(values[at])
        parameters.append(values)
    if parameters:
        with connection.cursor() as cursor:
            cursor.executemany(insertion.statement, parameters)


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
