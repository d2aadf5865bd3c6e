"""Check periodically whether the artifacts' bucket responds, so that a page shows an outage before calls fail."""

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
    """Checks the artifact bucket in a background thread; artifacts in local files are not checked."""

    def __init__(self) -> None:
        self._thread = RepeatingThread("artifact-store", PAUSE_SECONDS, self.look, lambda: None)

    def start(self) -> None:
        if byte_store().is_remote:
            self._thread.start()

    def stop(self) -> None:
        self._thread.stop()

    def look(self) -> None:
        """Check the bucket once, and log the start and the end of an outage."""
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


LOW_BYTES = 256 * 1024 * 1024
"""The dashboard shows a warning if fewer bytes than this are free."""


def low_disk_space() -> int | None:
    """Return the number of free bytes on the data directory's disk if it is low, or else None."""
    free = shutil.disk_usage(settings.DATA_DIR).free
    return free if free < LOW_BYTES else None
