"""Which rows live in which database: the request log has its own, so that its writes never wait for a fsync.

PostgreSQL holds both in one, whose request log is written by connections and in transactions of its own.
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
"""PostgreSQL's number of the lock that changes of the configuration queue for."""
CONNECTION_SECONDS = 5.0
"""How long a thread that outlives its requests keeps a connection: a restored database is found again."""
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
        "missedcall",  # the name of `RejectedCall` before migration 0040
        "rejectedcall",
        "learnedrefusal",
        "keptanswer",
    }
)


class LogsRouter:
    """Sends the request log to the `logs` database and everything else to `default`; nothing relates across."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        """The alias a model is read from."""
        return LOGS if model._meta.model_name in LOG_MODELS else None

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        """The alias a model is written to."""
        return self.db_for_read(model)

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool | None:
        """Relations stay inside one database."""
        return (one._meta.model_name in LOG_MODELS) == (other._meta.model_name in LOG_MODELS)

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **hints: Any) -> bool | None:
        """Log tables are made in `logs` alone, every other table in `default` alone; which is all of PostgreSQL's."""
        if connections[db].vendor == POSTGRESQL:
            return db == DEFAULT_DB_ALIAS
        return (model_name in LOG_MODELS) == (db == LOGS)


_thread = threading.local()


def renew_connections() -> None:
    """Lets this thread's database connections go when they are old; the next query opens others.

    One that is in a transaction stays: what was done in it would be lost.
    """
    now = time.monotonic()
    if now - getattr(_thread, "renewed", 0.0) > CONNECTION_SECONDS:
        _thread.renewed = now
        for connection in connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()


@contextmanager
def borrowed_connections() -> Iterator[None]:
    """For a thread that outlives its requests: old connections are renewed before, and a pool has its back after."""
    renew_connections()
    try:
        yield
    finally:
        release_connections()


@contextmanager
def one_at_a_time(lock: int) -> Iterator[None]:
    """A transaction of the main database that no other of this number overlaps: SQLite's queue as they begin to write.

    PostgreSQL's queue for the advisory lock of that number.
    """
    with transaction.atomic():
        connection = connections[DEFAULT_DB_ALIAS]
        if connection.vendor == POSTGRESQL:
            connection.cursor().execute(f"SELECT pg_advisory_xact_lock({lock})")
        yield


def one_writer() -> AbstractContextManager[None]:
    """A transaction in which the configuration is changed, one after the other."""
    return one_at_a_time(WRITERS_LOCK)


def close_pools() -> None:
    """Closes what the process's pools hold, at its end."""
    for alias in connections:
        if getattr(connections[alias], "pool", None) is not None:
            connections[alias].close_pool()  # type: ignore[attr-defined]  # an engine with a pool has it


def drop_connections() -> None:
    """Lets this thread's connections go, so that the next query opens others; one in a transaction stays."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


@contextmanager
def one_moment(alias: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Read a database as it was at one moment; no write waits meanwhile.

    Inside an open transaction nothing is added to it: that is one moment already.
    """
    connection = connections[alias]
    if connection.in_atomic_block:
        yield
        return
    with connection.deferred() if isinstance(connection, DatabaseWrapper) else nullcontext(), transaction.atomic(alias):
        if connection.vendor == POSTGRESQL:  # where each statement would otherwise see a moment of its own
            connection.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
