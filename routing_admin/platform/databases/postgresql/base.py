"""The database engine of the settings: Django's own, but for waits, connections that were lost, pools, and text."""

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

USUAL_SECONDS = 5.0
"""How long a page or a command waits for a lock or a connection."""
REFUSED_SECONDS = 1.0
"""How long it waits for a connection while the server takes none."""
RECONNECT_SECONDS = 5.0
"""How long a pool keeps connections to a server that is read-only: after a failover, they lead to the old primary."""
READ_ONLY_SIGNS = ("default_transaction_read_only", "in_hot_standby")
"""Settings that the server reports unasked, at connection and when they change."""
OLDEST = (15,)
"""The oldest PostgreSQL that is served."""


class TextDumper(StrDumperUnknown):
    """Text without what the database cannot keep."""

    def dump(self, obj: str) -> Any:
        """Its bytes."""
        return super().dump(storable_text(obj))


@cache
def _adapters(timezone: Any) -> AdaptersMap:
    """Django's, with our text."""
    adapters = AdaptersMap(psycopg_any.get_adapters_template(True, timezone))
    adapters.register_dumper(str, TextDumper)
    return adapters


@dataclass(slots=True)
class _Refused:
    """Why the server took none of the pools' last connection; None while it takes them."""

    error: OperationalError | None = None


_refused = owned(_Refused)


class PooledConnection(Connection[Any]):
    """A connection of a pool, which itself says no more than that there is none."""

    made_at = 0.0

    @property
    def is_worth_replacing(self) -> bool:
        """Whether its server is read-only, and another may be found by now."""
        if all(self.info.parameter_status(name) != "on" for name in READ_ONLY_SIGNS):
            return False
        return time.monotonic() - self.made_at > RECONNECT_SECONDS

    @classmethod
    def connect(cls, conninfo: str = "", **more: Any) -> Any:
        """A new one. Raises `OperationalError` with what the server, or the way to it, has against it."""
        try:
            made = super().connect(conninfo, **more)
        except OperationalError as error:
            _refused().error = error
            raise
        _refused().error = None
        made.made_at = time.monotonic()
        return made


class DatabaseFeatures(features.DatabaseFeatures):
    """Django's, of the versions that are served."""

    minimum_database_version = OLDEST


class DatabaseOperations(operations.DatabaseOperations):
    """Django's, with JSON that can be kept."""

    def adapt_json_value(self, value: Any, encoder: Any) -> Any:
        """The value as a parameter of a statement."""
        return Jsonb(value, dumps=lambda each: write_json(each, encoder))


class DatabaseWrapper(DjangoWrapper):
    """A connection whose locks are waited for as long as its user of the moment may wait, and so is a pool."""

    features_class = DatabaseFeatures
    ops_class = DatabaseOperations

    @property
    def pool(self) -> Any:
        """The process's pool; None but in one that serves, so that a command hears at once why it cannot connect."""
        if not is_pooled():
            return None
        found = super().pool
        if found is not None:
            found.connection_class = PooledConnection
        return found

    def get_connection_params(self) -> dict[str, Any]:
        """Django's parameters, with our text."""
        return {**super().get_connection_params(), "context": _adapters(self.timezone)}

    def get_new_connection(self, conn_params: Any) -> Any:
        """A connection of the pool, or one of the thread's own. Raises `OperationalError` where there is none."""
        pool = self.pool
        if pool is None:
            return super().get_new_connection(conn_params)
        self.isolation_level = psycopg_any.IsolationLevel.READ_COMMITTED
        pool.open()
        seconds = wait_seconds(USUAL_SECONDS if _refused().error is None else REFUSED_SECONDS)
        try:
            found = pool.getconn(timeout=seconds)
            if found.is_worth_replacing:
                pool.putconn(found)
                pool.drain()
                found = pool.getconn(timeout=seconds)
            return found
        except PoolTimeout as late:
            refusal = _refused().error
            if refusal is None:
                raise
            raise OperationalError(str(refusal)) from late

    def ensure_connection(self) -> None:
        """A connection, anew where the server let go of the last one: whoever met that has been told."""
        if self.connection is not None and self.connection.closed and not self.in_atomic_block:
            self.close()
        super().ensure_connection()

    def close_if_unusable_or_obsolete(self) -> None:
        """Django's, which would ask for another connection in place of one that the server let go of."""
        if self.connection is not None and self.connection.closed and not self.in_atomic_block:
            self.close()
        super().close_if_unusable_or_obsolete()

    def create_cursor(self, name: str | None = None) -> Any:
        """A cursor, after the connection was told how long to wait for locks."""
        wanted = max(1, int(wait_seconds(USUAL_SECONDS) * 1000))  # 0 would be for ever
        if getattr(self.connection, "lock_timeout", None) != wanted and self._takes_statements():
            self.connection.execute(f"SET lock_timeout = {wanted}")
            self.connection.lock_timeout = wanted
        return super().create_cursor(name)

    def _takes_statements(self) -> bool:
        """Whether a statement is no error in itself, as it is in a transaction that has failed."""
        return bool(self.connection.info.transaction_status != pq.TransactionStatus.INERROR)

    def _configure_connection(self, connection: Any) -> bool:
        """Time zone, and no compiling of statements: ours are short, and over many partitions it takes longer."""
        super()._configure_connection(connection)  # type: ignore[misc]
        connection.execute("SET jit = off")
        return True

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]
        self._forget_wait()

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self._forget_wait()

    def _forget_wait(self) -> None:
        """A setting goes back with its transaction."""
        if self.connection is not None:
            self.connection.lock_timeout = None

    def _close(self) -> None:
        """Gives the connection back to the pool that it is from, or closes it."""
        self._forget_wait()
        if getattr(self.connection, "_pool", None) is not None:
            super()._close()  # type: ignore[misc]
        elif self.connection is not None:
            with self.wrap_database_errors:
                self.connection.close()
