"""Whether the databases take writes: what readiness, metrics and alerts ask."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

from routing_admin.databases.away import DatabaseFault, fault_of
from routing_admin.databases.router import LOGS
from routing_admin.databases.waiting import waiting_at_most

TABLES = {DEFAULT_DB_ALIAS: "routing_admin_installation", LOGS: "routing_admin_requestlog"}
"""A table of each database that the server cannot do without."""

LOCK_SECONDS = 0.1


def check_writable() -> None:
    """Change no row of each database, for which it needs all that a change needs but room on its disk.

    A database that another one locks takes writes. Raises `DatabaseError` or `InterfaceError` for what is an outage;
    `fault_of` says which.
    """
    for alias, table in TABLES.items():
        try:
            connections[alias].ensure_connection()  # a busy pool may take as long as the caller waits
            with waiting_at_most(LOCK_SECONDS), connections[alias].cursor() as cursor:
                cursor.execute(f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0")  # noqa: S608  # names above
        except DatabaseError as error:
            if fault_of(error) is not DatabaseFault.LOCKED:
                raise
