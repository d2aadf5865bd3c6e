"""What a serving process does beside its requests, so that no request waits for it.

It looks whether the configuration is still the newest, and writes down when keys were last used.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from django.db import connections

from capabilities.last_use import LastUses, last_uses
from routing_admin.configuration import snapshot
from routing_admin.configuration.newest import LOOK_WAIT_SECONDS
from routing_admin.databases.router import renew_connections
from routing_admin.databases.sqlite import waiting_at_most

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.4
"""Between two rounds: with a look that waits in vain it is still less than a look may be old."""


@dataclass(slots=True)
class Upkeep:
    """The thread that does it."""

    uses: LastUses = last_uses
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread; once per process."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread; what is noted is written first, or told to be lost."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set()
            thread.join(timeout=10)
        if not self.uses.write():
            log.warning("the database is locked: when %s keys were last used is not written", len(self.uses.noted()))

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            self.round()
        connections.close_all()

    def round(self) -> None:
        """One look, and what is noted written where the database takes it at once."""
        renew_connections()
        snapshot.look()
        with waiting_at_most(LOOK_WAIT_SECONDS):
            self.uses.write()


upkeep = Upkeep()
"""This process's."""
