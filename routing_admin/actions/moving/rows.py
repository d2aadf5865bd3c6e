"""Rows of a database put in place of those of another: taken away, inserted as they are, counted and hashed.

Where tables of a database are, is told by the alias that the installation has them under.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.core.management.color import no_style
from django.db import connections, transaction

from routing_admin.actions.moving.tables import Table, alias_of, digest_table
from routing_admin.databases.append_only import refuse_changes, statements_to_allow

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


def compare_rows(table: Table, here: str, there: str) -> int:
    """How many rows a table has in both databases. Raises `DifferenceError` where count or digest differ."""
    one, other = digest_table(table, here), digest_table(table, there)
    if one != other:
        raise DifferenceError(f"{table._meta.db_table} differs. Rows here: {one.count}, there: {other.count}.")
    return one.count


def _execute(alias: str, statement: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
