"""Rows on their way: some at a time with a mark of how far it is, then hashed on both sides."""

from __future__ import annotations

from itertools import chain, islice

from django.db import transaction

from routing_admin.console.backups.data_transfer.rows import DifferenceError, compare
from routing_admin.console.backups.data_transfer.streams import TextDigest, digest_table, read_batches, write_batches
from routing_admin.console.backups.data_transfer.tables import Table, alias_of, references_of
from routing_admin.console.backups.data_transfer.target import ALIASES, Destination, MoveError
from routing_admin.platform.databases.progress import WorkProgress

BATCHES = 10
"""Batches of a transaction: the database takes one while the next is rendered."""


def copy_rows(target: Destination, table: Table, counter: WorkProgress) -> TextDigest | None:
    """Carry the rows that are not there yet; return the digest of all if none was. Rows that refer to one another in
    their own table come in one transaction, whose end looks at references.
    """
    to, digest = ALIASES[alias_of(table)], TextDigest()
    mark = target.read_mark(to, table._meta.db_table)
    batches = read_batches(table, alias_of(table), mark)
    at_once = None if table in references_of(table) else BATCHES - 1
    for first in batches:
        with transaction.atomic(using=to):
            last = write_batches(table, to, chain([first], islice(batches, at_once)), digest, counter)
            target.write_mark(to, table._meta.db_table, last)
    return digest if mark is None else None


def verify_rows(table: Table, digest: TextDigest | None, counter: WorkProgress) -> int:
    """Return how many rows a table has on both sides. Raise `MoveError` if they are not the same."""
    here = digest_table(table, alias_of(table), counter) if digest is None else digest
    try:
        return compare(table, here, ALIASES[alias_of(table)], counter)
    except DifferenceError as difference:
        raise MoveError(f"{difference} Empty the target and start again.") from None
