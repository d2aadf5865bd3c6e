"""Route the request log to a database of its own, whose writes do not wait for an fsync.

On PostgreSQL one database contains everything, but the request log has separate connections and transactions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from django.db import (
    DEFAULT_DB_ALIAS,
    connections,
    transaction,
)
from django.db.models import Model

from capabilities.connections import release_connections
from routing_admin.platform.databases.sqlite.base import DatabaseWrapper

LOGS = "logs"
POSTGRESQL = "postgresql"
WRITERS_LOCK = 0x726F757465
"""Key of the PostgreSQL advisory lock that serialises changes to the configuration."""
CONNECTION_SECONDS = 5.0
"""Maximum age in seconds of connections in long-lived threads, so that the threads notice a restored database."""
LOG_MODELS = frozenset(
    {
        "requestlog",
        "attemptlog",
        "idempotencyrecord",
        "usagesum",
        "usagerollup",
        "limitwindow",
        "limitshare",
        "filedescription",
        "missedcall",  # The name of the model `RejectedCall` before migration 0040.
        "rejectedcall",
        "learnedrefusal",
        "keptanswer",
    }
)


class LogsRouter:
    """Route the request log to `logs` and everything else to `default`; no relation may connect the two databases."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return LOGS if model._meta.model_name in LOG_MODELS else None

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        return self.db_for_read(model)

    def allow_relation(self, first: Model, second: Model, **hints: Any) -> bool | None:
        return (first._meta.model_name in LOG_MODELS) == (second._meta.model_name in LOG_MODELS)

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **hints: Any) -> bool | None:
        # On PostgreSQL both aliases are the same database.
        if connections[db].vendor == POSTGRESQL:
            return db == DEFAULT_DB_ALIAS
        return (model_name in LOG_MODELS) == (db == LOGS)


_thread = threading.local()


def renew_connections() -> None:
    """Close this thread's database connections if they are old; the next query opens new connections."""
    now = time.monotonic()
    if now - getattr(_thread, "renewed", 0.0) > CONNECTION_SECONDS:
        _thread.renewed = now
        for connection in connections.all(initialized_only=True):
            # Closing the connection would discard the work of its open transaction.
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()


@contextmanager
def borrowed_connections() -> Iterator[None]:
    """Renew old connections before the block, for long-lived threads, and return pooled connections after it."""
    renew_connections()
    try:
        yield
    finally:
        release_connections()


@contextmanager
def one_at_a_time(lock: int) -> Iterator[None]:
    """Open a transaction in the main database that overlaps with no other transaction under the same lock key.

    SQLite serialises writing transactions itself. On PostgreSQL they wait for the advisory lock with this key.
    """
    with transaction.atomic():
        connection = connections[DEFAULT_DB_ALIAS]
        if connection.vendor == POSTGRESQL:
            connection.cursor().execute(f"SELECT pg_advisory_xact_lock({lock})")
        yield


def one_writer() -> AbstractContextManager[None]:
    """Return a context manager for a transaction that changes the configuration; these transactions are serialised."""
    return one_at_a_time(WRITERS_LOCK)


def close_pools() -> None:
    for alias in connections:
        if getattr(connections[alias], "pool", None) is not None:
            connections[alias].close_pool()  # type: ignore[attr-defined]  # an engine with a pool has it


def drop_connections() -> None:
    """Close this thread's connections, except those in a transaction; the next query opens new connections."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


@contextmanager
def one_moment(alias: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Let all queries in the block see one consistent snapshot of a database, without blocking writers.

    If a transaction is already open, it is used unchanged.
    """
    connection = connections[alias]
    if connection.in_atomic_block:
        yield
        return
    with connection.deferred() if isinstance(connection, DatabaseWrapper) else nullcontext(), transaction.atomic(alias):
        # By default each statement would see a snapshot of its own.
        if connection.vendor == POSTGRESQL:
            connection.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
