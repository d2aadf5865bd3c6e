"""How are the few rows collected that one rare word of a search stands for?"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet

from routing_admin.platform.databases.router import LOGS, POSTGRESQL

RARE = 2000
"""Rows of one provider, model, surface or beginning of an id up to which they are collected first, not looked for."""


def list_few(rows: QuerySet[Any], column: str) -> set[str] | None:
    """That column of the rows, found along their own index; None where there are more than `RARE`."""
    connection, found = connections[LOGS], rows.order_by().values_list(column)
    if connection.vendor != POSTGRESQL:
        few = {name for (name,) in found[: RARE + 1]}
        return few if len(few) <= RARE else None
    try:
        sql, values = found.query.sql_with_params()
    except EmptyResultSet:
        return set()
    with connection.cursor() as cursor:  # planned as if all were wanted: else it reads whole tables for the first few
        cursor.execute(f"WITH few AS MATERIALIZED ({sql}) SELECT * FROM few LIMIT {RARE + 1}", values)  # noqa: S608
        few = {name for (name,) in cursor.fetchall()}
        return few if cursor.rowcount <= RARE else None
