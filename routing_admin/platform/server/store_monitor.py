"""Whether the bucket with the artifacts answers, looked at again and again: a page says so before a call fails."""

from __future__ import annotations

import logging
import shutil

from django.conf import settings

from artifacts.core.errors import StoreAwayError
from artifacts.storage.content import byte_store
from capabilities.runtime import owned
from routing_admin.platform.server.repeating_thread import RepeatingThread

log = logging.getLogger(__name__)

PAUSE_SECONDS = 5.0


class StoreMonitor:
    """The looks of this process, in a thread of their own; none where artifacts are files of this machine."""

    def __init__(self) -> None:
        self._thread = RepeatingThread("artifact-store", PAUSE_SECONDS, self.look, lambda: None)

    def start(self) -> None:
        """Starts the looks; once per process."""
        if byte_store().is_remote:
            self._thread.start()

    def stop(self) -> None:
        """Ends the looks, once the one that is under way is done."""
        self._thread.stop()

    def look(self) -> None:
        """One look; the log says when an outage begins and when it is over."""
        store = byte_store()
        before = store.outage
        try:
            store.check()
        except StoreAwayError as error:
            if before is None:
                log.error("%s", error.details)
        else:
            if before is not None:
                since = before.since.isoformat("T", "seconds")
                log.warning("the artifact store answers again; it did not since %s", since)


store_monitor = owned(StoreMonitor)


# How much room is left for what this installation writes?

LOW_BYTES = 256 * 1024 * 1024
"""Below this the dashboard tells of it."""


def low_disk_space() -> int | None:
    """Bytes that are free on the disk of the data directory, when they are few; None otherwise."""
    free = shutil.disk_usage(settings.DATA_DIR).free
    return free if free < LOW_BYTES else None
