"""Whether the databases take writes: what readiness, metrics and alerts ask."""

from __future__ import annotations

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.router import LOGS
from routing_admin.platform.databases.unavailable import DatabaseFault, fault_of

MODELS = {DEFAULT_DB_ALIAS: "Installation", LOGS: "RequestLog"}
"""What each database has that the server cannot do without."""
LOCK_SECONDS = 0.1


def check_writable() -> None:
    """Insert no row into each database, which takes all that an insertion takes but room on its disk.

    A database that another one locks takes writes. Raises `DatabaseError` or `InterfaceError` for what is an outage;
    `fault_of` says which.
    """
    for alias, name in MODELS.items():
        meta = apps.get_model("routing_admin", name)._meta
        columns = ", ".join(connections[alias].ops.quote_name(str(field.column)) for field in meta.concrete_fields)
        try:
            connections[alias].ensure_connection()  # a busy pool may take as long as the caller waits
            with lock_timeout(LOCK_SECONDS), connections[alias].cursor() as cursor:
                sql = f"INSERT INTO {meta.db_table} ({columns}) SELECT {columns} FROM {meta.db_table} WHERE 1 = 0"  # noqa: S608
                cursor.execute(sql)
        except DatabaseError as error:
            if fault_of(error) is not DatabaseFault.LOCKED:
                raise
