"""Django's PostgreSQL engine with lock timeouts, pools, reconnection, and text that PostgreSQL can store."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db.backends.postgresql import features, operations, psycopg_any
from django.db.backends.postgresql.base import DatabaseWrapper as DjangoWrapper
from psycopg import Connection, OperationalError, pq
from psycopg.adapt import AdaptersMap
from psycopg.types.json import Jsonb
from psycopg.types.string import StrDumperUnknown
from psycopg_pool import PoolTimeout

from capabilities.core.storable import storable_text, write_json
from capabilities.runtime import owned
from routing_admin.platform.databases.explaining import is_pooled
from routing_admin.platform.databases.lock_timeout import wait_seconds

DEFAULT_WAIT_SECONDS = 5.0
"""How long pages and commands wait for a lock or for a pooled connection, in seconds."""
REFUSED_WAIT_SECONDS = 1.0
"""How long pages and commands wait for a pooled connection while the server accepts no connections, in seconds."""
RECONNECT_SECONDS = 5.0
"""Maximum age in seconds of connections to a read-only server, which may be the old primary after a failover."""
READ_ONLY_STATES = ("default_transaction_read_only", "in_hot_standby")
"""Server parameters that are `on` if the server is read-only; it reports them to clients whenever they change."""
MIN_VERSION = (15,)
"""Oldest supported version of PostgreSQL."""


class TextDumper(StrDumperUnknown):
    """Dumps text without the characters that PostgreSQL cannot store."""

    def dump(self, obj: str) -> Any:
        return super().dump(storable_text(obj))


@cache
def _adapters(timezone: Any) -> AdaptersMap:
    adapters = AdaptersMap(psycopg_any.get_adapters_template(True, timezone))
    adapters.register_dumper(str, TextDumper)
    return adapters


@dataclass(slots=True)
class _Refused:
    """Holds the error of a pool's last attempt to connect, or None if the attempt succeeded."""

    error: OperationalError | None = None


_refused = owned(_Refused)


class PooledConnection(Connection[Any]):
    """Pooled connection that records connection errors, because the pool only reports that no connection is free."""

    made_at = 0.0

    @property
    def is_worth_replacing(self) -> bool:
        """Return whether the server is read-only, and the connection is old enough to try another server."""
        if all(self.info.parameter_status(name) != "on" for name in READ_ONLY_STATES):
            return False
        return time.monotonic() - self.made_at > RECONNECT_SECONDS

    @classmethod
    def connect(cls, conninfo: str = "", **options: Any) -> Any:
        try:
            connection = super().connect(conninfo, **options)
        except OperationalError as error:
            _refused().error = error
            raise
        _refused().error = None
        connection.made_at = time.monotonic()
        return connection


class DatabaseFeatures(features.DatabaseFeatures):
    minimum_database_version = MIN_VERSION


class DatabaseOperations(operations.DatabaseOperations):
    """Django's database operations, except that characters that PostgreSQL cannot store are removed from JSON."""

    def adapt_json_value(self, value: Any, encoder: Any) -> Any:
        return Jsonb(value, dumps=lambda document: write_json(document, encoder))


class DatabaseWrapper(DjangoWrapper):
    """Django's connection, with the lock and pool timeouts of the current context."""

    features_class = DatabaseFeatures
    ops_class = DatabaseOperations

    @property
    def pool(self) -> Any:
        # A management command has no pool, so that it fails immediately with the reason why it cannot connect.
        if not is_pooled():
            return None
        found = super().pool
        if found is not None:
            found.connection_class = PooledConnection
        return found

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "context": _adapters(self.timezone)}

    def get_new_connection(self, conn_params: Any) -> Any:
        pool = self.pool
        if pool is None:
            return super().get_new_connection(conn_params)
        self.isolation_level = psycopg_any.IsolationLevel.READ_COMMITTED
        pool.open()
        seconds = wait_seconds(DEFAULT_WAIT_SECONDS if _refused().error is None else REFUSED_WAIT_SECONDS)
        try:
            found = pool.getconn(timeout=seconds)
            # After a failover all pooled connections may lead to the old primary.
            if found.is_worth_replacing:
                pool.putconn(found)
                pool.drain()
                found = pool.getconn(timeout=seconds)
            return found
        except PoolTimeout as timeout:
            refusal = _refused().error
            if refusal is None:
                raise
            raise OperationalError(str(refusal)) from timeout

    def ensure_connection(self) -> None:
        # The server has closed the connection, and the caller has already received that error, so connect again.
        if self.connection is not None and self.connection.closed and not self.in_atomic_block:
            self.close()
        super().ensure_connection()

    def close_if_unusable_or_obsolete(self) -> None:
        # If the server closed the connection, Django would open a new one only to check whether it works.
        if self.connection is not None and self.connection.closed and not self.in_atomic_block:
            self.close()
        super().close_if_unusable_or_obsolete()

    def create_cursor(self, name: str | None = None) -> Any:
        # The minimum is 1, because 0 means no timeout.
        milliseconds = max(1, int(wait_seconds(DEFAULT_WAIT_SECONDS) * 1000))
        if getattr(self.connection, "lock_timeout", None) != milliseconds and self._takes_statements():
            self.connection.execute(f"SET lock_timeout = {milliseconds}")
            self.connection.lock_timeout = milliseconds
        return super().create_cursor(name)

    def _takes_statements(self) -> bool:
        # In a failed transaction, every further statement raises an error.
        return bool(self.connection.info.transaction_status != pq.TransactionStatus.INERROR)

    def _configure_connection(self, connection: Any) -> bool:
        super()._configure_connection(connection)  # type: ignore[misc]
        # Turn off JIT compilation: for short statements on many partitions it takes longer than running them.
        connection.execute("SET jit = off")
        return True

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]
        self._forget_wait()

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self._forget_wait()

    def _forget_wait(self) -> None:
        if self.connection is not None:
            # A rollback also reverts the SET, so the connection's timeout is unknown afterwards.
            self.connection.lock_timeout = None

    def _close(self) -> None:
        self._forget_wait()
        if getattr(self.connection, "_pool", None) is not None:
            super()._close()  # type: ignore[misc]
        elif self.connection is not None:
            with self.wrap_database_errors:
                self.connection.close()
