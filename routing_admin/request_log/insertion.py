"""Entries become rows: few prepared statements for each of the two tables, as the ORM would cost several times as much.

What stands in a row is what the ORM would have written.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import chain
from typing import Any

import orjson
from django.db import IntegrityError, connections, transaction
from django.db.models import BooleanField, DateTimeField, Field, JSONField, Model

from capabilities.core.storable import settle_json, write_json
from routing_admin.core.fallback.endings import ending_of
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.request_log.costs import cost_columns
from routing_admin.request_log.entries import Entry, attempt_columns, bare_entry, in_chunks, request_columns
from routing_admin.request_log.usage_sums import add_usage

log = logging.getLogger("routing_admin.request_log.insertion")

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
    """The entries as rows; one of which no row can be made has at least what we know of it ourselves."""
    return [_row_of(entry) for entry in entries]


def _row_of(entry: Entry) -> Row:
    try:
        return _columns_of(entry)
    except Exception:
        log.exception("request %s is logged without what its provider said", entry.facts.id)
        return _columns_of(bare_entry(entry))


def _columns_of(entry: Entry) -> Row:
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
        write_rows([complete(row) for row in rows if (row[0]["id"], str(row[0]["started_at"])) not in there])


def complete(row: Row) -> Row:
    """The row with what it does not say, as an earlier version did not know of it."""
    request, attempts = row
    whole = {**_defaults(RequestLog), **request, "ending": ending_of(request["outcome"]).value}
    return whole, [{**_defaults(AttemptLog), **each} for each in attempts]


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


@cache
def _fields(model: type[Model]) -> Sequence[Field[Any, Any]]:
    """The columns of a table but for a key that counts itself, which is left to the database."""
    return [field for field in model._meta.concrete_fields if field is not model._meta.auto_field]


def _insert(model: type[Model], rows: Sequence[Columns]) -> None:
    connection = connections[LOGS]
    with connection.cursor() as cursor:
        for chunk in in_chunks(rows, CHUNKS):
            columns = _columns(connection, model, chunk)
            parameters = list(chain.from_iterable(zip(*columns.values(), strict=True)))
            cursor.execute(_statement(model, tuple(columns), len(chunk)), parameters)


@lru_cache(maxsize=256)
def _statement(model: type[Model], names: tuple[str, ...], rows: int) -> str:
    """The statement that inserts so many rows with those columns."""
    quote = connections[LOGS].ops.quote_name
    row = f"({', '.join(['%s'] * len(names))})"
    into = f"{quote(model._meta.db_table)} ({', '.join(map(quote, names))})"
    return f"INSERT INTO {into} VALUES {', '.join([row] * rows)}"  # noqa: S608  # our models' own names


def _columns(connection: Any, model: type[Model], rows: Sequence[Columns]) -> dict[str, list[Any]]:
    """The values by column, as the database takes them; a column that no row fills is left out, and is NULL then.

    Most rows fill two thirds of their columns, and every value that is handed over costs its part.
    """
    adapters, columns = _adapters(connection), dict[str, list[Any]]()
    for field in _fields(model):
        values = [row[field.attname] for row in rows]
        empty = values.count(None)
        if empty == len(values):
            continue
        adapt = adapters.get(type(field))
        if adapt is not None:
            values = [None if value is None else adapt(value) for value in values] if empty else [*map(adapt, values)]
        columns[str(field.column)] = values
    return columns


def _adapters(connection: Any) -> Mapping[type, Callable[[Any], Any]]:
    """How the database takes values that are no plain ones, by the kind of their field."""
    if connection.vendor != POSTGRESQL:
        return SQLITE_ADAPTERS
    return {JSONField: json_text, DateTimeField: connection.ops.adapt_datetimefield_value}


def _utc_text(moment: datetime) -> str:
    """A moment as its column holds it, in UTC and without saying so."""
    return moment.astimezone(UTC).isoformat(" ")[: -len("+00:00")]


def json_text(value: Any) -> str:
    """A value as JSON, also where it holds what only Python's own module writes: half a surrogate, a huge number."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        return write_json(value)
    return settle_json(text) if "\\u" in text else text


SQLITE_ADAPTERS: Mapping[type, Callable[[Any], Any]] = {
    JSONField: json_text,
    DateTimeField: _utc_text,
    BooleanField: int,
}
"""Python's module for it takes a bool as it is, too, but searches for an adapter each time."""
