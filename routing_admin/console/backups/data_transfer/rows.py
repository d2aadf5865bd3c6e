"""Replace one database's rows with another's: delete, insert unchanged, then compare counts and hashes.

Each table is in one of the installation's two databases; Django's database router decides in which.
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
from routing_admin.console.backups.data_transfer.tables import Table, table_alias
from routing_admin.platform.databases.append_only import refuse_changes, statements_to_allow
from routing_admin.platform.databases.progress import WorkProgress, show_progress
from routing_admin.platform.databases.router import LOGS, POSTGRESQL

AliasMap = Mapping[str, str]
"""Maps each of the installation's database aliases to the alias to use instead."""


class DifferenceError(Exception):
    """A table in the target differs from the source. The message names the table."""


def empty_tables(tables: list[Table], aliases: AliasMap) -> None:
    """Delete all rows. The append-only audit log is made writable first, and append-only again afterwards."""
    main = aliases["default"]
    with transaction.atomic(using=main):
        for statement in statements_to_allow(connections[main].vendor):
            _execute(main, statement)
        # Each table is listed after the tables that it refers to, so delete in reverse order.
        for table in reversed(tables):
            _execute(aliases[table_alias(table)], f'DELETE FROM "{table._meta.db_table}"')  # noqa: S608
        refuse_changes(main)


def reset_sequences(tables: list[Table], aliases: AliasMap) -> None:
    for alias in dict.fromkeys(aliases.values()):
        own_tables = [table for table in tables if aliases[table_alias(table)] == alias]
        for statement in connections[alias].ops.sequence_reset_sql(no_style(), own_tables):
            _execute(alias, statement)


def count_all(tables: list[Table], aliases: AliasMap) -> int:
    return sum(table._base_manager.using(aliases[table_alias(table)]).count() for table in tables)


def transfer_rows(tables: list[Table], source: AliasMap, target: AliasMap) -> None:
    """Copy and verify all rows. Raise `DifferenceError` if a table differs afterwards."""
    with show_progress("Rows copied and verified", 2 * count_all(tables, source)) as counter:
        digests = []
        for table in tables:
            digest = TextDigest()
            write_batches(
                table, target[table_alias(table)], read_batches(table, source[table_alias(table)]), digest, counter
            )
            digests.append(digest)
        for table, digest in zip(tables, digests, strict=True):
            compare(table, digest, target[table_alias(table)], counter)


def compare(table: Table, expected: TextDigest, alias: str, counter: WorkProgress) -> int:
    """Return a table's number of rows. Raise `DifferenceError` if the digest of its rows is not the expected one."""
    is_postgresql = connections[alias].vendor == POSTGRESQL
    stored = digest_text(table, alias, counter) if is_postgresql else digest_table(table, alias, counter)
    # Hashing the text that PostgreSQL itself writes is faster, but PostgreSQL writes numbers with an exponent
    # differently.
    if expected != stored and is_postgresql:
        stored = digest_table(table, alias)
    if expected != stored:
        raise DifferenceError(f"{table._meta.db_table} differs. Rows here: {expected.lines}, there: {stored.lines}.")
    return expected.lines


INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = %s",
    "postgresql": (
        "SELECT quote_ident(relname), replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') FROM pg_index"
        " JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = to_regclass(%s)"
        " AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)"
    ),
}
"""SQL statements that list a table's indexes, except those that belong to a constraint, by database engine."""


Index = Sequence[str]
"""An index: its database alias, its name, and the statement that creates it."""


def list_indexes(tables: list[Table], aliases: AliasMap) -> list[Index]:
    """Return the indexes of the request log. Inserting rows is faster if these are created afterwards."""
    indexes: list[Index] = []
    for table in tables:
        alias = aliases[table_alias(table)]
        if table_alias(table) == LOGS:
            with connections[alias].cursor() as cursor:
                cursor.execute(INDEXES[connections[alias].vendor], [table._meta.db_table])
                indexes += [(alias, *row) for row in cursor.fetchall()]
    return indexes


def drop_indexes(indexes: Iterable[Index]) -> None:
    for alias, name, _ in indexes:
        _execute(alias, f"DROP INDEX IF EXISTS {name}")


def make_indexes(indexes: Sequence[Index]) -> None:
    for alias in {alias for alias, _, _ in indexes}:
        connections[alias].check_constraints()  # Pending deferred constraint checks would make CREATE INDEX fail.
    with show_progress("Indexes", len(indexes)) as counter:
        for alias, _, statement in indexes:
            _execute(alias, re.sub(r"^CREATE (UNIQUE )?INDEX ", r"\g<0>IF NOT EXISTS ", statement))
            counter.advance()


def _execute(alias: str, statement: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
