"""Rows that the log's database refuses, made so that it takes them: one bad value never costs the whole request."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, Field, FloatField, IntegerField, JSONField, Model

from capabilities.core.storable import storable_text
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log.insertion import Row, complete, json_text

MAX_COUNT, MAX_BIG = 2**31 - 1, 2**63 - 1
"""What PostgreSQL holds in a column of whole numbers, and in a big one."""


def repaired(row: Row) -> Row:
    """Return the row with every value in the range of its column; what fits none is the column's default."""
    request, attempts = complete(row)
    details = request["token_details"] or {}
    counts = {name: count for name, count in details.items() if isinstance(count, int) and 0 <= count <= MAX_COUNT}
    return _fit(RequestLog, {**request, "token_details": counts or None}), [_fit(AttemptLog, each) for each in attempts]


def _fit(model: type[Model], columns: Mapping[str, Any]) -> dict[str, Any]:
    fields = {field.attname: field for field in model._meta.concrete_fields}
    return {name: _fit_value(fields[name], value) for name, value in columns.items() if name in fields}


def _fit_value(field: Field[Any, Any], value: Any) -> Any:
    if value is None:
        return None if field.null else field.get_default()
    kind = next((fit for kind, fit in FITTING.items() if isinstance(field, kind)), _fit_text)
    if isinstance(value, bool | datetime):
        return value
    try:
        return kind(field, value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return field.get_default()


def _fit_number(field: Field[Any, Any], value: Any) -> int:
    most = MAX_BIG if isinstance(field, BigIntegerField) else MAX_COUNT
    return max(-most if isinstance(field, BigIntegerField) else 0, min(int(value), most))


def _fit_float(field: Field[Any, Any], value: Any) -> Any:
    return float(value) if math.isfinite(value) else field.get_default()


def _fit_json(_field: Field[Any, Any], value: Any) -> Any:
    return json.loads(json_text(value))


def _fit_text(field: Field[Any, Any], value: Any) -> str:
    return storable_text(str(value))[: field.max_length]


FITTING: Mapping[type[Field[Any, Any]], Callable[[Field[Any, Any], Any], Any]] = {
    IntegerField: _fit_number,
    FloatField: _fit_float,
    JSONField: _fit_json,
}
