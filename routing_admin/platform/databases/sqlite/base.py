"""Django's SQLite engine with lock timeouts and the same rules for text as PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3 import base, operations

from capabilities.core.storable import is_storable, storable_text, write_json
from routing_admin.platform.databases.lock_timeout import wait_seconds


class Cursor(base.SQLiteCursorWrapper):
    """Cursor that closes its statement if the statement fails.

    Otherwise the statement would be closed when its exception is garbage-collected, in whichever thread. The event
    loop's thread would then block for as long as the connection waits for a lock (CPython 3.11.7, measured).
    """

    def execute(self, query: str, params: Any = None) -> Any:
        with self._let_go():
            return super().execute(query, _with_storable_texts(params))

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        with self._let_go():
            return super().executemany(query, map(_with_storable_texts, param_list))

    def convert_query(self, query: str, *, param_names: Any = None) -> str:
        return (
            _with_question_marks(query)
            if param_names is None
            else super().convert_query(query, param_names=param_names)
        )

    @contextmanager
    def _let_go(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error:
            self.close()
            raise


@lru_cache(maxsize=512)
def _with_question_marks(query: str) -> str:
    return str(base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%"))


def _with_storable_texts(params: Any) -> Any:
    texts = params.values() if isinstance(params, Mapping) else params or ()
    if all(is_storable(text) for text in texts if isinstance(text, str)):
        return params
    if isinstance(params, Mapping):
        return {name: storable_text(value) if isinstance(value, str) else value for name, value in params.items()}
    return tuple(storable_text(value) if isinstance(value, str) else value for value in params)


def make_private(path: str) -> None:
    """Create the database file, if it is missing, readable only by its owner; SQLite's other files inherit its mode."""
    if path == ":memory:" or path.startswith("file:"):
        return
    # If the file cannot be created, it already exists, or SQLite will report the reason.
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


class SqliteOperations(operations.DatabaseOperations):
    """Django's database operations, except that JSON is stored as on PostgreSQL."""

    def adapt_json_value(self, value: Any, encoder: Any) -> Any:
        return write_json(value, encoder)


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection, with the lock timeout of the current context for every statement and while connecting."""

    ops_class = SqliteOperations
    _default_timeout = _current_timeout = 5.0

    def get_connection_params(self) -> dict[str, Any]:
        params = super().get_connection_params()
        self._default_timeout = float(params.get("timeout", self._default_timeout))
        self._current_timeout = params["timeout"] = wait_seconds(self._default_timeout)
        return dict(params)

    def get_new_connection(self, conn_params: Any) -> Any:
        make_private(str(conn_params["database"]))
        return super().get_new_connection(conn_params)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Start transactions in this block without taking the write lock, for code that only reads."""
        self.ensure_connection()
        mode: Any = self.transaction_mode  # type: ignore[has-type]
        self.transaction_mode = "DEFERRED"
        try:
            yield
        finally:
            self.transaction_mode = mode

    def create_cursor(self, name: str | None = None) -> Any:
        # The lock timeout may have changed since the last statement.
        seconds = wait_seconds(self._default_timeout)
        if seconds != self._current_timeout:
            self.connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            self._current_timeout = seconds
        return self.connection.cursor(factory=Cursor)


LARGE_CACHE_SETTINGS = {"cache_size": -200_000, "wal_autocheckpoint": 8000}
"""SQLite settings for work on many rows; with them, a page that changes repeatedly is written only once."""


@contextmanager
def with_large_cache(connection: Any) -> Iterator[None]:
    """Let SQLite use more memory within the block, for work on many rows; this has no effect on other databases."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        previous = {name: cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in LARGE_CACHE_SETTINGS}
        for name, value in LARGE_CACHE_SETTINGS.items():
            cursor.execute(f"PRAGMA {name} = {value}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            for name, value in previous.items():
                cursor.execute(f"PRAGMA {name} = {value}")
