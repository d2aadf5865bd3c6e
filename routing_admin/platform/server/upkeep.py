"""What a serving process does beside its requests, so that no request waits for it.

It looks whether configuration and secrets are still the newest, makes the request log's tables of the days ahead, and
writes down when keys were last used, where sessions were last seen, and which models refused what they should read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from capabilities.doubts import NotedRefusals, noted_refusals
from capabilities.last_use import LastUses, last_uses
from capabilities.signing import read_secrets_again
from routing_admin.platform.auth.session_activity import session_activity
from routing_admin.platform.databases.lock_timeout import LOOK_WAIT_SECONDS, lock_timeout
from routing_admin.platform.databases.postgresql.partitions import make_days
from routing_admin.platform.databases.router import renew_connections
from routing_admin.platform.server.repeating_thread import RepeatingThread

log = logging.getLogger(__name__)

DAYS_SECONDS = 600.0
"""How often it is looked whether the request log has its tables of the days ahead, where it has any."""
PAUSE_SECONDS = 0.4
"""Between two rounds: with a look that waits in vain it is still less than a look may be old."""


@dataclass(slots=True)
class Upkeep:
    """The rounds, in a thread of their own."""

    uses: LastUses = field(default_factory=last_uses)
    refusals: NotedRefusals = field(default_factory=noted_refusals)
    first: list[Callable[[], object]] = field(default_factory=list)
    """What each round begins with: the configuration is read again."""
    further: list[Callable[[], object]] = field(default_factory=list)
    """What rooms above do in each round, once the newest configuration is known."""
    _days_due: float = float("-inf")
    _thread: RepeatingThread = field(init=False)

    def __post_init__(self) -> None:
        """Nothing runs before `start`."""
        self._thread = RepeatingThread("upkeep", PAUSE_SECONDS, self.round, connections.close_all)

    def start(self) -> None:
        """Starts the rounds; once per process."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the rounds; what is noted is written first, or the log says that it is lost."""
        self._thread.stop()
        self.refusals.write()
        session_activity().write()
        if not self.uses.write():
            log.warning(
                "the database is locked: when %s keys were last used is not written", len(self.uses.list_noted())
            )

    def round(self) -> None:
        """One look, and what is noted written where the database takes it at once."""
        renew_connections()
        read_secrets_again()
        for look in self.first:
            look()
        with lock_timeout(LOOK_WAIT_SECONDS):
            self.uses.write()
            self.refusals.write()
            session_activity().write()
            for look in self.further:
                look()
        self._make_days()

    def _make_days(self) -> None:
        now = time.monotonic()
        if now < self._days_due:
            return
        self._days_due = now + DAYS_SECONDS
        try:
            make_days(timezone.now())
        except (DatabaseError, InterfaceError) as error:
            log.warning("the request log's tables of the days ahead are not made yet: %s", error)
