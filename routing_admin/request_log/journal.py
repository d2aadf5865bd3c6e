"""The request log: written behind the answers, in batches, by a thread of its own; it never fails or delays a request.

`record` only queues; the writer is started with the server (routing_admin/asgi.py). Whoever wants to read what was
just recorded flushes first.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import connections

from routing_admin.databases.router import LOGS
from routing_admin.request_log.entries import Entry
from routing_admin.request_log.insertion import write
from routing_admin.server.repeating_thread import RepeatingThread

log = logging.getLogger("routing_admin.request_log.journal")

QUEUE = 10_000
"""Entries that may wait; further ones are dropped and counted."""
BATCH = 200
PAUSE_SECONDS = 0.09
"""How long the first entry of a batch waits for others: with the writing it is in the log within 0.1 seconds."""


@dataclass(slots=True)
class Journal:
    """Entries that wait, and who writes them."""

    waiting: deque[Entry] = field(default_factory=deque)
    dropped: int = 0
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _thread: RepeatingThread = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is written before `start` or `flush`."""
        self._thread = RepeatingThread("journal", PAUSE_SECONDS, self.flush, close_connection, on_demand=True)

    def record(self, entry: Entry) -> None:
        """Queues an entry; never waits and never raises."""
        if len(self.waiting) >= QUEUE:
            self.dropped += 1
            return
        self.waiting.append(entry)
        self._thread.demand()

    def flush(self) -> None:
        """Writes everything that waits, here and now; what cannot be written is told in the log and dropped."""
        with self._writing:
            while self.waiting:
                batch = [self.waiting.popleft() for _ in range(min(BATCH, len(self.waiting)))]
                self._write(batch)

    def start(self) -> None:
        """Starts the writer; once per process."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the writer; what waits is written first."""
        self._thread.stop()
        self.flush()

    def _write(self, batch: Sequence[Entry]) -> None:
        try:
            write(batch)
        except Exception:  # whatever the database trips over, one entry must not take the others along
            for entry in batch:
                self._write_one(entry)

    def _write_one(self, entry: Entry) -> None:
        try:
            write((entry,))
        except Exception as error:  # the journal never fails a request; the server's log says what is missing
            self.dropped += 1
            log.error("request %s could not be logged: %s", entry.facts.id, type(error).__name__)


def close_connection() -> None:
    """Lets go of this thread's connection to the log."""
    connections[LOGS].close()


journal = Journal()
"""This process's journal."""
