"""Rows on their way: batch by batch with a mark of how far it is, then counted and hashed on both sides."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

from routing_admin.actions.moving.rows import DifferenceError, compare_rows
from routing_admin.actions.moving.tables import Table, alias_of, read_batches, references_of, write_rows
from routing_admin.actions.moving.target import ALIASES, Destination, MoveError


def copy_rows(target: Destination, table: Table, tell: Callable[[int], None]) -> None:
    """Carries the rows that are not there yet; `tell` hears of each batch. Rows that refer to one another in their own
    table come in one transaction, whose end looks at references."""
    to = ALIASES[alias_of(table)]
    if table in references_of(table):
        with transaction.atomic(using=to):
            _copy_batches(target, table, to, tell)
    else:
        _copy_batches(target, table, to, tell)


def _copy_batches(target: Destination, table: Table, to: str, tell: Callable[[int], None]) -> None:
    name, count = table._meta.db_table, 0
    for rows in read_batches(table, alias_of(table), target.read_mark(to, name)):
        with transaction.atomic(using=to):
            write_rows(table, to, rows)
            target.write_mark(to, name, rows[-1].pk)
        count += len(rows)
        tell(count)


def verify_rows(table: Table) -> int:
    """How many rows a table has on both sides. Raises `MoveError` where count or digest differ."""
    try:
        return compare_rows(table, alias_of(table), ALIASES[alias_of(table)])
    except DifferenceError as difference:
        raise MoveError(
            f"{difference} Check if something wrote to the source meanwhile. Then empty the target and start again."
        ) from None
