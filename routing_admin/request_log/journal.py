"""Write the request log in batches, in a background thread that never fails or delays a request.

`record` only appends to a queue; routing_admin/runtime.py starts the writer with the server. Code that must see the
newest requests calls `flush` before it reads the log. Rows that the database does not accept immediately are kept in
files (`Spool`) and written later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import connections

from capabilities.runtime import owned
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.outage_log import OutageLog
from routing_admin.platform.databases.router import LOGS, drop_connections
from routing_admin.platform.databases.unavailable import is_value_fault
from routing_admin.platform.server.repeating_thread import RepeatingThread
from routing_admin.request_log.call_outcomes import call_outcomes
from routing_admin.request_log.counting import count_entries
from routing_admin.request_log.entries import Entry, note_refused_files
from routing_admin.request_log.insertion import Row, Rows, build_rows, write_missing, write_rows
from routing_admin.request_log.kept_answers import kept_answers
from routing_admin.request_log.spool import Spool, repaired
from routing_admin.request_log.tracing import tracing

log = logging.getLogger("routing_admin.request_log.journal")

QUEUE = 10_000
"""Maximum number of entries in memory; further entries are dropped and counted.

The queue fills up only if the database accepts no rows and the disk is full.
"""
BATCH = 200
PAUSE_SECONDS = 0.09
"""How long the first entry of a batch waits for further entries, in seconds; it must be in the log within 0.1
seconds.
"""
LOCK_SECONDS = 0.1
"""Lock timeout in seconds for writing a batch; after a timeout, the batch is written to disk instead."""
RETRY_SECONDS = 1.0
"""Seconds between attempts to move entries from disk to the database."""


def spool_folder() -> Path:
    return Path(settings.DATA_DIR) / "spool"


@dataclass(slots=True)
class Journal:
    """A queue of log entries, and the thread that writes them.

    `behind_since` is the time when the database first did not accept an entry, None while it accepts all entries. With
    `disk_is_full`, entries that the database did not accept could not be written to disk either, and are kept in
    memory. `lost` is the number of lost entries, the last of which was lost at `lost_at`. `repaired` is the number of
    entries that were stored without the values that the database rejected.
    """

    waiting: deque[Entry] = field(default_factory=deque)
    lost: int = 0
    lost_at: datetime | None = None
    repaired: int = 0
    behind_since: datetime | None = None
    disk_is_full: bool = False
    folder: Callable[[], Path] = spool_folder
    _spool: Spool | None = None
    _retry_at: float = 0.0
    _overflowed: int = 0
    _refused: set[str] = field(default_factory=set)
    _outage: OutageLog = field(default_factory=lambda: OutageLog(log, "writing the request log"))
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _thread: RepeatingThread = field(init=False)

    def __post_init__(self) -> None:
        # The thread writes nothing before `start` or `flush` is called.
        self._thread = RepeatingThread("journal", PAUSE_SECONDS, self.flush, close_connection, on_demand=True)

    @property
    def spool(self) -> Spool:
        if self._spool is None:
            self._spool = Spool(self.folder())
        return self._spool

    def waiting_seconds(self) -> float:
        """Return how many seconds the oldest unwritten request has been waiting, or 0 if there is none."""
        # The writer may just have emptied the queue.
        with suppress(IndexError):
            oldest = self.waiting[0].facts
            ended = oldest.began + timedelta(milliseconds=oldest.duration_ms)
            since = min(ended, self.behind_since or ended)
            return max(0.0, (datetime.now(UTC) - since).total_seconds())
        return (datetime.now(UTC) - self.behind_since).total_seconds() if self.behind_since else 0.0

    def record(self, entry: Entry) -> None:
        """Queue an entry; never blocks and never raises."""
        if len(self.waiting) >= QUEUE:
            self._count_lost(1)
            # Log this only once; `flush` logs the number of lost requests.
            if not self._overflowed:
                log.error("%s requests wait in memory: until they are written, further ones are lost", QUEUE)
            self._overflowed += 1
            return
        self.waiting.append(entry)
        self._thread.demand()

    def flush(self) -> None:
        """Write all queued entries now, to the log or, if the database is locked or unavailable, to disk.

        Entries that cannot be stored at all are counted as lost and listed in the server's log.
        """
        with self._writing, lock_timeout(LOCK_SECONDS):
            if self.behind_since is not None and time.monotonic() >= self._retry_at:
                self._drain()
            while self.waiting:
                # Until `_dequeue` removes the batch from the queue, its entries count as waiting.
                batch = self._next_batch()
                if not self._write(batch):
                    break
            else:
                if self._overflowed:
                    log.error("%s requests are not logged: too many waited in memory", self._overflowed)
                self._overflowed = 0
        if self.behind_since is not None:
            self._thread.demand()
        else:
            self._refused.clear()

    def start(self) -> None:
        """Start the writer thread once per process. It first writes entries that an earlier process left on disk."""
        if self.spool.waiting():
            self._fall_behind()
        self._thread.start()
        if self.behind_since is not None:
            self._thread.demand()

    def stop(self) -> None:
        """Write the queued entries and stop the writer thread."""
        self._thread.stop()
        # Let this flush try the database once more, even if earlier attempts failed.
        self._retry_at = 0.0
        self.flush()
        self.spool.close()
        if self.waiting:
            self._count_lost(len(self.waiting))
            log.error("%s requests are not logged: neither the database nor the disk takes them", len(self.waiting))

    def _next_batch(self) -> list[Entry]:
        # Read entries by index, because a deque must not grow while it is iterated.
        return [self.waiting[index] for index in range(min(BATCH, len(self.waiting)))]

    def _dequeue(self, batch: Sequence[Entry]) -> None:
        for _ in batch:
            self.waiting.popleft()
        _notify(batch)

    def _write(self, batch: Sequence[Entry]) -> bool:
        # While the database is behind, write batches to disk without trying the database.
        stored = (self.behind_since is None and self._insert(batch)) or self._keep(batch)
        if stored:
            self._dequeue(batch)
        return stored

    def _insert(self, batch: Sequence[Entry]) -> bool:
        try:
            self._store(build_rows(batch), write_rows)
        except Exception as error:
            self._fall_behind(error)
            return False
        self._outage.end()
        return True

    def _keep(self, batch: Sequence[Entry]) -> bool:
        try:
            self._store(build_rows(batch), self.spool.append, self.spool.append)
        except OSError as error:
            if not self.disk_is_full:
                log.error("requests wait in memory, for the disk does not take them: %s", error)
            self.disk_is_full = True
            return False
        self.disk_is_full = False
        return True

    def _store(
        self, rows: Rows, write: Callable[[Rows], None], write_again: Callable[[Rows], None] = write_missing
    ) -> None:
        """Write rows. If a value is rejected, halve the batch until only its row is left, and repair that row.

        Errors that are not due to a row's values are raised; the next attempt skips rows that have already been
        written.
        """
        try:
            write(rows)
        except Exception as error:
            if not is_value_fault(error):
                raise
            if len(rows) == 1:
                self._store_repaired(rows[0], error, write_again)
                return
            middle = len(rows) // 2
            for half in (rows[:middle], rows[middle:]):
                self._store(half, write_again, write_again)

    def _store_repaired(self, row: Row, refused: Exception, write: Callable[[Rows], None]) -> None:
        subject, reason = f"request {row[0]['id']} of {row[0]['started_at']}", type(refused).__name__
        try:
            write((repaired(row),))
        except Exception as error:
            if not is_value_fault(error):
                raise
            self._drop(subject, reason)
        else:
            self.repaired += 1
            log.error("%s had values that the log cannot hold (%s): it is logged without them", subject, reason)

    def _drop(self, subject: str, reason: str) -> None:
        # After an outage, a file is read from the start again, so the same row may be rejected twice.
        if subject not in self._refused:
            self._refused.add(subject)
            self._count_lost(1)
            log.error("%s could not be logged: %s", subject, reason)

    def _count_lost(self, count: int) -> None:
        self.lost += count
        self.lost_at = datetime.now(UTC)

    def _fall_behind(self, error: BaseException | None = None) -> None:
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self.behind_since = self.behind_since or datetime.now(UTC)
        if error is not None:
            self._outage.note(error)
            # The next attempt should open a new connection, which may lead to another server.
            drop_connections()

    def _drain(self) -> None:
        try:
            self.spool.drain(self._write_kept, lambda line: self._drop(line, "it is damaged"))
        except Exception as error:  # The rows remain in their file.
            self._fall_behind(error)
            return
        # The log is up to date only when the database has accepted the files on disk and a batch from memory.
        batch = self._next_batch()
        if batch and not self._insert(batch):
            return
        self._dequeue(batch)
        self.behind_since, self.disk_is_full = None, False

    def _write_kept(self, rows: Rows) -> None:
        self._store(rows, write_missing)
        self._outage.end()


def _notify(batch: Sequence[Entry]) -> None:
    # If one observer fails, the others must still receive the batch.
    for observe in (count_entries, call_outcomes().note, note_refused_files, kept_answers().write, tracing().export):
        try:
            observe(batch)
        except Exception:
            log.exception("%s logged requests are missing from %s", len(batch), observe.__qualname__)


def close_connection() -> None:
    connections[LOGS].close()


journal = owned(Journal)
