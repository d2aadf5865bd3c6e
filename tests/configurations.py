"""Configurations that were read from rows, kept by these rows: most tests begin with those of the demo."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache

from django.db import connection
from django.db.models import Model

from capabilities.models import Agent, AgentKey, Provider, ProviderKey, Service, ServiceCapability, StoredKey
from routing_admin.core.configuration.specs import Configuration
from routing_admin.models import Alias, Candidate, Installation, LabelBudget, Language, TaskRoute

WHOLE = (
    *(Provider, ProviderKey, StoredKey, Service, ServiceCapability, TaskRoute, Candidate, Alias, Agent, Language),
    LabelBudget,
)
MAX_KEPT = 64


def read_once(read: Callable[[], Configuration]) -> Callable[[], Configuration]:
    """Return a function that reads equal rows once.

    While queries are counted or intercepted, and on PostgreSQL, it always reads.
    """
    kept: dict[Hashable, Configuration] = {}

    def read_or_reuse() -> Configuration:
        if connection.vendor != "sqlite" or connection.force_debug_cursor or connection.execute_wrappers:
            return read()
        with connection.cursor() as cursor:
            rows = tuple(tuple(cursor.execute(query).fetchall()) for query in _queries())
        if rows not in kept:
            found = read()
            if len(kept) >= MAX_KEPT:
                kept.clear()
            kept[rows] = found
        return kept[rows]

    return read_or_reuse


@cache
def _queries() -> tuple[str, ...]:
    """Return the queries of all that a configuration is read from. The counter of changes is not part of it."""
    columns = [column for column in _columns(Installation) if column != "version"]
    keys = AgentKey._meta.db_table
    return (
        *(f'SELECT {", ".join(_columns(model))} FROM "{model._meta.db_table}"' for model in WHOLE),
        f'SELECT {", ".join(columns)} FROM "{Installation._meta.db_table}"',
        f"SELECT {', '.join(_columns(AgentKey))} FROM \"{keys}\" WHERE terms <> '{{}}' OR issued_terms <> '{{}}'",
    )


def _columns(model: type[Model]) -> list[str]:
    return [field.column for field in model._meta.concrete_fields]
