"""Check periodically whether the artifact bucket responds, so that a page shows an outage before a call fails."""

from __future__ import annotations

import logging
import shutil

from django.conf import settings

from artifacts.core.errors import StoreUnavailableError
from artifacts.storage.content import byte_store
from capabilities.runtime import owned
from routing_admin.platform.server.repeating_thread import RepeatingThread

log = logging.getLogger(__name__)

PAUSE_SECONDS = 5.0


class StoreMonitor:
    """Check the bucket in a background thread; local artifacts are not checked."""

    def __init__(self) -> None:
        self._thread = RepeatingThread("artifact-store", PAUSE_SECONDS, self.look, lambda: None)

    def start(self) -> None:
        if byte_store().is_remote:
            self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def look(self) -> None:
        """Check once, and log the start and the end of an outage."""
        store = byte_store()
        before = store.outage
        try:
            store.check()
        except StoreUnavailableError as error:
            if before is None:
                log.error("%s", error.details)
        else:
            if before is not None:
                since = before.since.isoformat("T", "seconds")
                log.warning("the artifact store answers again; it was unavailable since %s", since)


store_monitor = owned(StoreMonitor)


# The next function checks how much disk space is left for the files that this installation writes.

LOW_BYTES = 256 * 1024 * 1024
"""Free bytes below which the dashboard shows a warning."""


def low_disk_space() -> int | None:
    """Return the free bytes on the data directory's disk if they are low, else None."""
    free = shutil.disk_usage(settings.DATA_DIR).free
    return free if free < LOW_BYTES else None
