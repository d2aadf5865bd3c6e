"""A thread that does the same work again and again, beside the requests, until the process ends."""

from __future__ import annotations

import threading
from collections.abc import Callable

END_SECONDS = 10
"""How long the end of the process waits for work that is being done."""


class RepeatingThread:
    """Calls `work` every `pause` seconds; `close` is called in the thread when it ends, to let go of what it held."""

    def __init__(self, name: str, pause: float, work: Callable[[], object], close: Callable[[], object]) -> None:
        self._name, self._pause, self._work, self._close = name, pause, work, close
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

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
            thread.join(timeout=END_SECONDS)

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            self._work()
        self._close()
