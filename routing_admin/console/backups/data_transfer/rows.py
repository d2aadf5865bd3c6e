"""Rows of a database put in place of those of another: taken away, inserted as they are, counted and hashed.

Where tables of a database are, is told by the alias that the installation has them under.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from django.core.management.color import no_style
from django.db import connections, transaction

from routing_admin.console.backups.data_transfer.streams import (
    TextDigest,
    digest_table,
    digest_text,
    read_batches,
    write_batches,
)
from routing_admin.console.backups.data_transfer.tables import Table, alias_of
from routing_admin.platform.databases.append_only import refuse_changes, statements_to_allow
from routing_admin.platform.databases.progress import WorkProgress, progress_of
from routing_admin.platform.databases.router import LOGS, POSTGRESQL

Places = Mapping[str, str]
"""The alias of a database by the one that the installation has the same tables under."""


class DifferenceError(Exception):
    """A table that is not the same on both sides; the sentence says which."""


def empty_tables(tables: list[Table], places: Places) -> None:
    """Takes every row away, lines of the audit log, too, which are append-only again behind it."""
    main = places["default"]
    with transaction.atomic(using=main):
        for statement in statements_to_allow(connections[main].vendor):
            _execute(main, statement)
        for table in reversed(tables):
            _execute(places[alias_of(table)], f'DELETE FROM "{table._meta.db_table}"')  # noqa: S608
        refuse_changes(main)


def number_anew(tables: list[Table], places: Places) -> None:
    """Sets what numbers new rows behind those that are there."""
    for alias in dict.fromkeys(places.values()):
        own = [each for each in tables if places[alias_of(each)] == alias]
        for statement in connections[alias].ops.sequence_reset_sql(no_style(), own):
            _execute(alias, statement)


def count_all(tables: list[Table], places: Places) -> int:
    """Return how many rows these tables have."""
    return sum(each._base_manager.using(places[alias_of(each)]).count() for each in tables)


def carry_rows(tables: list[Table], here: Places, there: Places) -> None:
    """Insert every row, and read all of them again. Raise `DifferenceError`."""
    with progress_of("Rows copied and verified", 2 * count_all(tables, here)) as counter:
        digests = []
        for table in tables:
            digest = TextDigest()
            write_batches(table, there[alias_of(table)], read_batches(table, here[alias_of(table)]), digest, counter)
            digests.append(digest)
        for table, digest in zip(tables, digests, strict=True):
            compare(table, digest, there[alias_of(table)], counter)


def compare(table: Table, here: TextDigest, alias: str, counter: WorkProgress) -> int:
    """Return how many rows a table has, those of this digest. Raise `DifferenceError` if it has others."""
    is_postgresql = connections[alias].vendor == POSTGRESQL
    there = digest_text(table, alias, counter) if is_postgresql else digest_table(table, alias, counter)
    if here != there and is_postgresql:
        there = digest_table(table, alias)
    if here != there:
        raise DifferenceError(f"{table._meta.db_table} differs. Rows here: {here.lines}, there: {there.lines}.")
    return here.lines


INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = %s",
    "postgresql": (
        "SELECT quote_ident(relname), replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') FROM pg_index"
        " JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = to_regclass(%s)"
        " AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)"
    ),
}
"""What lists a table's indexes, those aside that a constraint needs."""


Index = Sequence[str]
"""An index: its database, its name, and what makes it."""


def list_indexes(tables: list[Table], places: Places) -> list[Index]:
    """Return the indexes of the log's tables: they are made quicker once every row is there."""
    found: list[Index] = []
    for table in tables:
        alias = places[alias_of(table)]
        if alias_of(table) == LOGS:
            with connections[alias].cursor() as cursor:
                cursor.execute(INDEXES[connections[alias].vendor], [table._meta.db_table])
                found += [(alias, *row) for row in cursor.fetchall()]
    return found


def drop_indexes(indexes: Iterable[Index]) -> None:
    """Drop indexes that are there."""
    for alias, name, _ in indexes:
        _execute(alias, f"DROP INDEX IF EXISTS {name}")


def make_indexes(indexes: Sequence[Index]) -> None:
    """Make indexes that are not there."""
    for alias in {alias for alias, _, _ in indexes}:
        connections[alias].check_constraints()  # what waits for the end of the transaction is in their way
    with progress_of("Indexes", len(indexes)) as counter:
        for alias, _, statement in indexes:
            _execute(alias, re.sub(r"^CREATE (UNIQUE )?INDEX ", r"\g<0>IF NOT EXISTS ", statement))
            counter.advance()


def _execute(alias: str, statement: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
