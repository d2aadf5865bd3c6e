"""Rows on their way: batch by batch with a mark of how far it is, then counted and hashed on both sides."""

from __future__ import annotations

from django.db import transaction

from routing_admin.console.backups.data_transfer.rows import DifferenceError, compare
from routing_admin.console.backups.data_transfer.streams import Kinds, digest_table, read_batches, write_rows
from routing_admin.console.backups.data_transfer.tables import Table, alias_of, references_of
from routing_admin.console.backups.data_transfer.target import ALIASES, Destination, MoveError
from routing_admin.platform.databases.progress import WorkProgress


def copy_rows(target: Destination, table: Table, counter: WorkProgress) -> None:
    """Carries the rows that are not there yet. Rows that refer to one another in their own table come in one
    transaction, whose end looks at references.
    """
    to = ALIASES[alias_of(table)]
    if table in references_of(table):
        with transaction.atomic(using=to):
            _copy_batches(target, table, to, counter)
    else:
        _copy_batches(target, table, to, counter)


def _copy_batches(target: Destination, table: Table, to: str, counter: WorkProgress) -> None:
    name, key = table._meta.db_table, Kinds(table).key
    for rows in read_batches(table, alias_of(table), target.read_mark(to, name)):
        with transaction.atomic(using=to):
            write_rows(table, to, rows)
            target.write_mark(to, name, rows[-1][key])
        counter.advance(len(rows))


def verify_rows(table: Table, counter: WorkProgress) -> int:
    """How many rows a table has on both sides. Raises `MoveError` where count or digest differ."""
    try:
        here = digest_table(table, alias_of(table), counter)
        return compare(table, here, digest_table(table, ALIASES[alias_of(table)], counter))
    except DifferenceError as difference:
        raise MoveError(
            f"{difference} Check if something wrote to the source meanwhile. Then empty the target and start again."
        ) from None
