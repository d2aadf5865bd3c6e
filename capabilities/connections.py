"""Database connections of the running thread, for whatever waits for something else than the database."""

from __future__ import annotations

from django.db import connections


def release_connections() -> None:
    """Give this thread's connections back to their pool, where they are from one: others may wait for them.

    The next query takes one again. One in a transaction stays.
    """
    for connection in connections.all(initialized_only=True):
        if getattr(connection, "pool", None) is not None and not connection.in_atomic_block:
            connection.close()
