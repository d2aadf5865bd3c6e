"""Listen for PostgreSQL notifications of configuration changes, so that processes reload sooner than by polling."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

from capabilities.connections import release_connections

log = logging.getLogger(__name__)

CHANNEL = "routing_admin"
WAIT_SECONDS = 1.0
"""Maximum duration of each wait for a notification in seconds; between waits, the thread checks whether it should
stop.
"""
RECONNECT_SECONDS = 2.0
"""Seconds to wait before reconnecting."""


class Listener:
    """Calls `callback` for each notification, in a thread with a connection outside of the pools."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback = callback
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._ends.clear()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ends.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * WAIT_SECONDS)

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                with psycopg.connect(**_parameters(), autocommit=True) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._hear(connection)
            except psycopg.Error as error:
                log.debug("no notifications can be received from the database: %s", error)
                self._ends.wait(RECONNECT_SECONDS)
        connections.close_all()

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        while not self._ends.is_set():
            for _ in connection.notifies(timeout=WAIT_SECONDS, stop_after=1):
                self._callback()
                release_connections()


def _parameters() -> dict[str, Any]:
    known = connections[DEFAULT_DB_ALIAS].get_connection_params()
    return {name: value for name, value in known.items() if name not in ("context", "cursor_factory")}
