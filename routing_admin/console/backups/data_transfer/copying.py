"""Copy the rows of a table in resumable batches, then compare both sides by hash."""

from __future__ import annotations

from itertools import chain, islice

from django.db import transaction

from routing_admin.console.backups.data_transfer.rows import DifferenceError, compare
from routing_admin.console.backups.data_transfer.streams import TextDigest, digest_table, read_batches, write_batches
from routing_admin.console.backups.data_transfer.tables import Table, alias_of, references_of
from routing_admin.console.backups.data_transfer.target import ALIASES, Destination, MoveError
from routing_admin.platform.databases.progress import WorkProgress

# Batches per transaction. The target inserts a batch while the next batch is rendered.
BATCHES = 10


def copy_rows(target: Destination, table: Table, counter: WorkProgress) -> TextDigest | None:
    """Copy the rows that the target lacks. Return their digest, or None if an earlier run had copied some of them."""
    target_alias, digest = ALIASES[alias_of(table)], TextDigest()
    mark = target.read_mark(target_alias, table._meta.db_table)
    batches = read_batches(table, alias_of(table), mark)
    # Foreign keys are checked when a transaction ends, so a table that refers to itself is copied in one transaction.
    at_once = None if table in references_of(table) else BATCHES - 1
    for batch in batches:
        with transaction.atomic(using=target_alias):
            last = write_batches(table, target_alias, chain([batch], islice(batches, at_once)), digest, counter)
            # The mark is written in the same transaction as the rows, so an interrupted copy resumes at the right row.
            target.write_mark(target_alias, table._meta.db_table, last)
    return digest if mark is None else None


def verify_rows(table: Table, digest: TextDigest | None, counter: WorkProgress) -> int:
    """Compare the table on both sides and return its number of rows. Raise `MoveError` if the rows differ."""
    # A resumed copy read only part of the rows, so the source is read again.
    source_digest = digest_table(table, alias_of(table), counter) if digest is None else digest
    try:
        return compare(table, source_digest, ALIASES[alias_of(table)], counter)
    except DifferenceError as error:
        raise MoveError(f"{error} Empty the target and start again.") from None
