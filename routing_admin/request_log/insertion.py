"""Insert log entries with a few prepared statements per table, because the ORM would take several times as long.

The rows contain the same values that the ORM would write.
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

from capabilities.core.storable import make_json_storable, write_json
from routing_admin.core.fallback.endings import request_ending
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.platform.databases.router import LOGS, POSTGRESQL
from routing_admin.request_log.costs import cost_columns
from routing_admin.request_log.entries import Entry, attempt_columns, bare_entry, in_chunks, request_columns
from routing_admin.request_log.usage_sums import add_usage

log = logging.getLogger("routing_admin.request_log.insertion")

Columns = Mapping[str, Any]
Row = tuple[Columns, Sequence[Columns]]
"""The columns of a request, and the columns of each of its attempts."""
Rows = Sequence[Row]


def write(entries: Iterable[Entry]) -> None:
    """Write entries in one transaction.

    If an entry's id is already in the log, a random suffix is appended to the id, so nothing is overwritten. If a
    database error is raised, no entry has been written.
    """
    write_rows(build_rows(entries))


def build_rows(entries: Iterable[Entry]) -> Rows:
    """Convert log entries to rows.

    If a provider's values cannot be converted, the row contains only the gateway's own values.
    """
    return [_build_row(entry) for entry in entries]


def _build_row(entry: Entry) -> Row:
    try:
        return _build_columns(entry)
    except Exception:
        log.exception("request %s is logged without what its provider said", entry.facts.id)
        return _build_columns(bare_entry(entry))


def _build_columns(entry: Entry) -> Row:
    cost, costs = cost_columns(entry)
    attempts = [{**row, **spent} for row, spent in zip(attempt_columns(entry), costs, strict=True)]
    return {**request_columns(entry), **cost}, attempts


def write_rows(rows: Rows) -> None:
    """Write rows to the log in one transaction, like `write`."""
    if connections[LOGS].vendor == POSTGRESQL:
        rows = _unlike_other_days(rows)
    try:
        with transaction.atomic(using=LOGS):
            _insert_rows(rows)
    except IntegrityError:
        # Ids are rarely taken, so first try to insert the rows without a check.
        with transaction.atomic(using=LOGS):
            _insert_rows(_under_free_ids(rows))


GENERATED_ID = re.compile(r"req_[0-9a-f]{24}")
"""Pattern of request ids that this program generated. Unlike ids that callers choose, these are unique."""


def _unlike_other_days(rows: Rows) -> Rows:
    # Each day has its own table, so the primary key does not keep ids unique across days.
    chosen = [request["id"] for request, _ in rows if not GENERATED_ID.fullmatch(request["id"])]
    taken = chosen and RequestLog.objects.using(LOGS).filter(pk__in=chosen).exists()
    return _under_free_ids(rows) if taken else rows


def write_missing(rows: Rows) -> None:
    """Write rows, but skip rows that are already in the log."""
    with transaction.atomic(using=LOGS):
        existing_ids = _stored_ids(rows)
        write_rows([complete(row) for row in rows if (row[0]["id"], str(row[0]["started_at"])) not in existing_ids])


def complete(row: Row) -> Row:
    """Return the row with defaults for missing columns: an earlier version of the program may have spooled the row."""
    request, attempts = row
    values = {**_defaults(RequestLog), **request, "ending": request_ending(request["outcome"]).value}
    return values, [{**_defaults(AttemptLog), **attempt} for attempt in attempts]


@cache
def _defaults(model: type[Model]) -> dict[str, Any]:
    return {field.attname: field.get_default() for field in _fields(model)}


def _stored_ids(rows: Rows) -> set[tuple[str, str]]:
    # Another request may have the same id, so compare the times as well.
    found = RequestLog.objects.using(LOGS).filter(pk__in=[request["id"] for request, _ in rows])
    return {(key, str(began)) for key, began in found.values_list("pk", "started_at")}


def _insert_rows(rows: Rows) -> None:
    _insert(RequestLog, [request for request, _ in rows])
    _insert(AttemptLog, [attempt for _, attempts in rows for attempt in attempts])
    # Update the usage totals in the same transaction, so that each request is counted exactly once.
    add_usage(rows)


def _under_free_ids(rows: Rows) -> Rows:
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
"""Numbers of rows per statement: the largest that fits is used, and a last statement inserts the remaining rows.

While a statement runs, another thread may take the GIL, and the writer then has to wait for it. With one row per
statement, a busy process would write only a few hundred rows per second.
"""


@cache
def _fields(model: type[Model]) -> Sequence[Field[Any, Any]]:
    # Omit the automatic primary key, which the database fills in.
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
    quote = connections[LOGS].ops.quote_name
    row = f"({', '.join(['%s'] * len(names))})"
    target = f"{quote(model._meta.db_table)} ({', '.join(map(quote, names))})"
    return f"INSERT INTO {target} VALUES {', '.join([row] * rows)}"  # noqa: S608  # our models' own names


def _columns(connection: Any, model: type[Model], rows: Sequence[Columns]) -> dict[str, list[Any]]:
    # Omit columns that are empty in all rows; the database sets them to NULL. Most rows fill only two thirds of their
    # columns, and each value that is passed to the driver costs time.
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
    if connection.vendor != POSTGRESQL:
        return SQLITE_ADAPTERS
    return {JSONField: json_text, DateTimeField: connection.ops.adapt_datetimefield_value}


def _utc_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(" ")[: -len("+00:00")]


def json_text(value: Any) -> str:
    """Return a value as JSON; values with lone surrogates or huge integers require Python's own JSON module."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        return write_json(value)
    return make_json_storable(text) if "\\u" in text else text


SQLITE_ADAPTERS: Mapping[type, Callable[[Any], Any]] = {
    JSONField: json_text,
    DateTimeField: _utc_text,
    BooleanField: int,
}
"""Functions that convert values for SQLite. Its driver accepts booleans, but looks up an adapter for each of them."""
