"""A thread that does the same work again and again, beside the requests, until the process ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from routing_admin.platform.databases.outage_log import OutageLog

log = logging.getLogger(__name__)

END_SECONDS = 10
"""How long the end of the process waits for work that is being done."""


class RepeatingThread:
    """Calls `work` every `pause` seconds; `close` is called in the thread when it ends, to let go of what it held.

    One that works `on_demand` sleeps until `demand` is called, and then works once, a pause later.
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
        """Says that there is something to do; whatever was handed over before is seen by the next `work`."""
        if not self._demanded.is_set():  # a flag that is read; setting it takes a lock, and wakes the thread
            self._demanded.set()

    def start(self) -> None:
        """Starts the thread; does nothing while it runs."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread, once the work that it is at is done; does nothing while there is none."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set()
            self._demanded.set()
            thread.join(timeout=END_SECONDS)

    def _run(self) -> None:
        while not self._ends():
            try:
                self._work()
            except Exception as error:  # a database that is away, too: the next round tries again
                self._outage.note(error)
            else:
                self._outage.end()
        self._close()

    def _ends(self) -> bool:
        """Waits until the next work is due; whether the thread ends instead."""
        if self._on_demand:
            self._demanded.wait()
        ended = self._stop.wait(self._pause)
        self._demanded.clear()  # before the work: what is demanded while it is done is work for the next time
        return ended
