"""A background thread that repeats the same work until the process ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from routing_admin.platform.databases.outage_log import OutageLog

log = logging.getLogger(__name__)

END_SECONDS = 10
"""Maximum time that a stopping process waits for work in progress, in seconds."""


class RepeatingThread:
    """Thread that calls `work` every `pause` seconds, and at the end `close` to release resources.

    With `on_demand`, the thread sleeps until `demand` is called, and then calls `work` once after a pause.
    """

    def __init__(
        self,
        name: str,
        pause: float,
        work: Callable[[], object],
        close: Callable[[], object],
        *,
        on_demand: bool = False,
    ) -> None:
        self._name, self._pause, self._work, self._close, self._on_demand = name, pause, work, close, on_demand
        self._demanded, self._stop = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._outage = OutageLog(log, f"the work of the thread {name}")

    def demand(self) -> None:
        """Request a round of work, which includes everything that was submitted before this call."""
        # Check the flag first, because setting it again would take a lock.
        if not self._demanded.is_set():
            self._demanded.set()

    def start(self) -> None:
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread after its current work, if it is running."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set()
            self._demanded.set()
            thread.join(timeout=END_SECONDS)

    def _run(self) -> None:
        while not self._ends():
            try:
                self._work()
            except Exception as error:
                # The next round tries again after any error, such as a database outage.
                self._outage.note(error)
            else:
                self._outage.end()
        self._close()

    def _ends(self) -> bool:
        if self._on_demand:
            self._demanded.wait()
        ended = self._stop.wait(self._pause)
        # Clear the flag before the work, so that a demand during the work causes another round.
        self._demanded.clear()
        return ended
