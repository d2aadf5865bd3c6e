"""Background upkeep of a serving process.

The upkeep thread checks whether configuration and secrets are still current, creates the request log's partitions for
the next days, and writes when keys and sessions were last used and which models refused files that they should read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from capabilities.last_use import LastUses, last_uses
from capabilities.refused_files import RefusalBuffer, refusal_buffer
from capabilities.signing import read_secrets_again
from routing_admin.platform.auth.session_activity import session_activity
from routing_admin.platform.databases.lock_timeout import LOOK_WAIT_SECONDS, lock_timeout
from routing_admin.platform.databases.postgresql.partitions import make_days
from routing_admin.platform.databases.router import renew_connections
from routing_admin.platform.server.repeating_thread import RepeatingThread

log = logging.getLogger(__name__)

DAYS_SECONDS = 600.0
"""Seconds between checks whether the request log has partitions for the next days."""
PAUSE_SECONDS = 0.4
"""Seconds between rounds. Changes must take effect within a second, even if one round cannot get a lock."""


@dataclass(slots=True)
class Upkeep:
    uses: LastUses = field(default_factory=last_uses)
    refusals: RefusalBuffer = field(default_factory=refusal_buffer)
    first: list[Callable[[], object]] = field(default_factory=list)
    """Work at the start of each round, which loads the current configuration."""
    further: list[Callable[[], object]] = field(default_factory=list)
    """Work that higher packages add to each round. It runs after the configuration has been loaded."""
    _days_due: float = float("-inf")
    _thread: RepeatingThread = field(init=False)

    def __post_init__(self) -> None:
        self._thread = RepeatingThread("upkeep", PAUSE_SECONDS, self.round, connections.close_all)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and write everything pending; a failure to write is logged."""
        self._thread.stop()
        self.refusals.write()
        session_activity().write()
        if not self.uses.write():
            log.warning(
                "the database is locked: the last use of %s keys could not be written", len(self.uses.list_noted())
            )

    def round(self) -> None:
        renew_connections()
        read_secrets_again()
        for job in self.first:
            job()
        # Rows that the database cannot accept now are written in a later round.
        with lock_timeout(LOOK_WAIT_SECONDS):
            self.uses.write()
            self.refusals.write()
            session_activity().write()
            for job in self.further:
                job()
        self._make_days()

    def _make_days(self) -> None:
        now = time.monotonic()
        if now < self._days_due:
            return
        self._days_due = now + DAYS_SECONDS
        try:
            make_days(timezone.now())
        except (DatabaseError, InterfaceError) as error:
            log.warning("the request log's partitions for the next days could not be created yet: %s", error)
