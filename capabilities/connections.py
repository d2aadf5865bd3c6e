"""Release database connections while a thread waits for something other than the database."""

from __future__ import annotations

from django.db import connections


def release_connections() -> None:
    """Return this thread's pooled connections to their pool, except those in a transaction.

    The next query takes a connection from the pool again.
    """
    for connection in connections.all(initialized_only=True):
        if getattr(connection, "pool", None) is not None and not connection.in_atomic_block:
            connection.close()
