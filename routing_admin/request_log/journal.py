"""Writes the request log after the answers, in batches, in its own thread; it never fails or delays a request.

`record` only queues; the writer is started with the server (routing_admin/asgi.py). Whoever wants to read what was
just recorded flushes first. What the database does not take at once waits in files and is tried again.
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
from routing_admin.platform.databases.unavailable import is_of_values
from routing_admin.platform.server.repeating_thread import RepeatingThread
from routing_admin.request_log.call_outcomes import call_outcomes
from routing_admin.request_log.counting import count_entries
from routing_admin.request_log.entries import Entry, note_refused_files
from routing_admin.request_log.insertion import Row, Rows, rows_of, write_missing, write_rows
from routing_admin.request_log.kept_answers import kept_answers
from routing_admin.request_log.spool import Spool, repaired
from routing_admin.request_log.tracing import tracing

log = logging.getLogger("routing_admin.request_log.journal")

QUEUE = 10_000
"""Entries that may wait in memory; further ones are dropped and counted. Only a full disk fills it."""
BATCH = 200
PAUSE_SECONDS = 0.09
"""How long the first entry of a batch waits for others: with the writing it is in the log within 0.1 seconds."""
LOCK_SECONDS = 0.1
"""How long a batch waits for a locked database before it goes to disk."""
AGAIN_SECONDS = 1.0
"""How long what is on disk waits before it is tried again."""


def spool_folder() -> Path:
    """Where entries wait that the database does not take."""
    return Path(settings.DATA_DIR) / "spool"


@dataclass(slots=True)
class Journal:
    """Entries that wait, and who writes them.

    `behind_since` is when the database first did not take one, None while it takes all; `disk_is_full` says that those
    it did not take cannot go to disk either and wait in memory; `lost` counts those lost, the last of them at
    `lost_at`, `repaired` those stored without values that the database refused.
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
        """Nothing is written before `start` or `flush`."""
        self._thread = RepeatingThread("journal", PAUSE_SECONDS, self.flush, close_connection, on_demand=True)

    @property
    def spool(self) -> Spool:
        """The files in which entries wait."""
        if self._spool is None:
            self._spool = Spool(self.folder())
        return self._spool

    def waiting_seconds(self) -> float:
        """Return since when the oldest request has waited for the log; 0 where none waits."""
        with suppress(IndexError):  # the writer has just taken it
            oldest = self.waiting[0].facts
            ended = oldest.began + timedelta(milliseconds=oldest.duration_ms)
            since = min(ended, self.behind_since or ended)
            return max(0.0, (datetime.now(UTC) - since).total_seconds())
        return (datetime.now(UTC) - self.behind_since).total_seconds() if self.behind_since else 0.0

    def record(self, entry: Entry) -> None:
        """Queues an entry; never waits and never raises."""
        if len(self.waiting) >= QUEUE:
            self._count_lost(1)
            if not self._overflowed:
                log.error("%s requests wait in memory: until they are written, further ones are lost", QUEUE)
            self._overflowed += 1
            return
        self.waiting.append(entry)
        self._thread.demand()

    def flush(self) -> None:
        """Writes everything that waits, here and now: into the log or, while that is locked, to disk.

        What cannot be stored at all is counted as lost, and the server's log names it.
        """
        with self._writing, lock_timeout(LOCK_SECONDS):
            if self.behind_since is not None and time.monotonic() >= self._retry_at:
                self._drain()
            while self.waiting:
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
        """Starts the writer, which looks first for what an earlier process left; once per process."""
        if self.spool.waiting():
            self._fall_behind()
        self._thread.start()
        if self.behind_since is not None:
            self._thread.demand()

    def stop(self) -> None:
        """Ends the writer; what waits is written first."""
        self._thread.stop()
        self._retry_at = 0.0
        self.flush()
        self.spool.close()
        if self.waiting:
            self._count_lost(len(self.waiting))
            log.error("%s requests are not logged: neither the database nor the disk takes them", len(self.waiting))

    def _next_batch(self) -> list[Entry]:
        """Return the first that wait; they count as waiting until `_let_go`."""
        # by index: the deque grows meanwhile, which its iterators refuse
        return [self.waiting[place] for place in range(min(BATCH, len(self.waiting)))]

    def _let_go(self, batch: Sequence[Entry]) -> None:
        for _ in batch:
            self.waiting.popleft()
        _notify(batch)

    def _write(self, batch: Sequence[Entry]) -> bool:
        """Whether the batch is out of memory: in the log, on disk, or given up."""
        done = (self.behind_since is None and self._insert(batch)) or self._keep(batch)
        if done:
            self._let_go(batch)
        return done

    def _insert(self, batch: Sequence[Entry]) -> bool:
        """Whether the log has taken the batch; False while the database is unavailable."""
        try:
            self._store(rows_of(batch), write_rows)
        except Exception as error:
            self._fall_behind(error)
            return False
        self._outage.end()
        return True

    def _keep(self, batch: Sequence[Entry]) -> bool:
        """Whether the batch is on disk; where that cannot be, it waits on in memory."""
        try:
            self._store(rows_of(batch), self.spool.append, self.spool.append)
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
        """Write rows; those refused for a value are halved until only one row is refused, and that one is repaired.

        Raises what is not a row's own fault; what was written until then is passed over next time.
        """
        try:
            write(rows)
        except Exception as error:
            if not is_of_values(error):
                raise
            if len(rows) == 1:
                self._store_repaired(rows[0], error, write_again)
                return
            middle = len(rows) // 2
            for half in (rows[:middle], rows[middle:]):
                self._store(half, write_again, write_again)

    def _store_repaired(self, row: Row, refused: Exception, write: Callable[[Rows], None]) -> None:
        what, why = f"request {row[0]['id']} of {row[0]['started_at']}", type(refused).__name__
        try:
            write((repaired(row),))
        except Exception as error:
            if not is_of_values(error):
                raise
            self._lose(what, why)
        else:
            self.repaired += 1
            log.error("%s had values that the log cannot hold (%s): it is logged without them", what, why)

    def _lose(self, what: str, why: str) -> None:
        """Count one that cannot be stored; once, though a file is read from its start again after an outage."""
        if what not in self._refused:
            self._refused.add(what)
            self._count_lost(1)
            log.error("%s could not be logged: %s", what, why)

    def _count_lost(self, count: int) -> None:
        self.lost += count
        self.lost_at = datetime.now(UTC)

    def _fall_behind(self, error: BaseException | None = None) -> None:
        self._retry_at = time.monotonic() + AGAIN_SECONDS
        self.behind_since = self.behind_since or datetime.now(UTC)
        if error is not None:
            self._outage.note(error)
            drop_connections()  # the next try may be at another server

    def _drain(self) -> None:
        """Writes what is on disk, and first of what is in memory; the log is up to date again when it takes both."""
        try:
            self.spool.drain(self._write_kept, lambda line: self._lose(line, "it is damaged"))
        except Exception as error:  # it stays on disk, whatever is wrong
            self._fall_behind(error)
            return
        batch = self._next_batch()
        if batch and not self._insert(batch):
            return
        self._let_go(batch)
        self.behind_since, self.disk_is_full = None, False

    def _write_kept(self, rows: Rows) -> None:
        self._store(rows, write_missing)
        self._outage.end()


def _notify(batch: Sequence[Entry]) -> None:
    """Hand requests that the log or the disk has taken to all that counts them; the failure of one is its own."""
    for observe in (count_entries, call_outcomes().note, note_refused_files, kept_answers().write, tracing().export):
        try:
            observe(batch)
        except Exception:
            log.exception("%s logged requests are missing from %s", len(batch), observe.__qualname__)


def close_connection() -> None:
    """Lets go of this thread's connection to the log."""
    connections[LOGS].close()


journal = owned(Journal)
