"""End a process gracefully: requests in progress may finish, and those that take too long receive an error.

The server cancels the remaining requests `ROUTING_ADMIN_DRAIN_SECONDS` after SIGTERM. Shortly before that, every
request that still waits for a provider is ended properly instead of by a closed connection: a stream with an error
event, any other request with a 503. Each process locks a file while it is serving, so other processes notice if it ends
without shutting down.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings

from capabilities.core.translatable import translatable
from capabilities.runtime import owned
from routing_admin.core.fallback.endings import DRAINED
from routing_admin.paths import program_version
from routing_admin.platform.server.file_locks import hold_unless_locked

END_MARGIN_SECONDS = 2.0
"""The remaining requests are ended this many seconds before the server's own deadline, so that their last bytes can be
sent.
"""
DRAINED_MESSAGE = translatable("The server is shutting down before the answer was complete. Send the request again.")


class DrainingError(Exception):
    """The process is ending before the response is complete; another process can serve the request."""

    status, code, message = 503, DRAINED, DRAINED_MESSAGE
    should_retry, retry_after = True, 1.0

    def as_json(self) -> dict[str, Any]:
        """Return the error in the format of `/api/v1`; `attempts` is empty, because no attempt was completed."""
        return {"error": self.code, "message": self.message, "attempts": []}


class WaitingPeriod:
    """Context manager for a task's wait, which `Draining` can end."""

    __slots__ = ("_ended", "_others", "_reason", "_task", "_waiting")

    def __init__(self, waiting: dict[WaitingPeriod, asyncio.AbstractEventLoop], *, ended: bool) -> None:
        self._waiting, self._ended = waiting, ended
        self._reason: Exception | None = None

    def __enter__(self) -> None:
        loop = self._waiting[self] = asyncio.get_running_loop()
        self._task = asyncio.current_task(loop)
        self._others = self._task.cancelling() if self._task else 0
        if self._ended:
            loop.call_soon(self.give_up)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._waiting.pop(self, None)
        cancelled = self._reason is not None and kind is asyncio.CancelledError
        # `give_up` cancelled the task, so raise its reason instead of the cancellation.
        if cancelled and self._task and self._task.uncancel() <= self._others:
            raise self._reason or DrainingError() from None

    def give_up(self, reason: Exception | None = None) -> None:
        """End the wait; its task receives `reason` as an exception, by default a `DrainingError`."""
        if self in self._waiting and self._task is not None:
            self._reason = reason or DrainingError()
            self._task.cancel()


class Draining:
    def __init__(self) -> None:
        self.has_begun = self._ended = False
        self._waiting: dict[WaitingPeriod, asyncio.AbstractEventLoop] = {}

    def limit(self) -> WaitingPeriod:
        """Return a context manager for a wait, which raises `DrainingError` when the drain time is over."""
        return WaitingPeriod(self._waiting, ended=self._ended)

    def schedule_end(self) -> None:
        """Begin draining after SIGTERM: waits may continue until shortly before the server's deadline."""
        process_marker().remove()
        self.has_begun, seconds = True, settings.DRAIN_SECONDS
        # If the drain time is short, leave half of it for the last bytes.
        asyncio.get_running_loop().call_later(max(seconds - END_MARGIN_SECONDS, seconds / 2), self.end)

    def check(self) -> None:
        """Raise `DrainingError` if the drain time is over, for streams that never wait."""
        if self._ended:
            raise DrainingError

    def end(self) -> None:
        self._ended = True
        self.give_up()

    def give_up(self) -> None:
        """End all current waits, including those on the event loops of other threads."""
        for period, loop in tuple(self._waiting.items()):
            loop.call_soon_threadsafe(period.give_up)

    def listen(self) -> None:
        """Begin draining on SIGTERM and SIGINT, in addition to the server's own handlers; only in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)

            def begin_draining(number: int, frame: FrameType | None, before: object = before) -> None:
                loop.call_soon_threadsafe(self.schedule_end)
                if callable(before):
                    before(number, frame)

            signal.signal(number, begin_draining)


draining = owned(Draining)


log = logging.getLogger(__name__)


class ProcessMarker:
    """This process's marker file. It is locked while the process runs, and removed on shutdown.

    If the process crashes, other processes find the file unlocked.
    """

    def __init__(self) -> None:
        self._path: Path | None = None
        self._handle = -1

    def place(self) -> None:
        """Create and lock the file; a failure is only logged as a warning."""
        folder = Path(settings.DATA_DIR) / "processes"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            name = f"{os.getpid()}-{os.urandom(4).hex()}"
            self._handle = os.open(folder / f".{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            os.write(self._handle, program_version().encode())
            # Lock the file before it gets this name, because other processes check only files with such names.
            self._path = (folder / f".{name}").rename(folder / name)
        except OSError as error:
            log.warning("a crash of this process will not be noticed: %s", error)

    def remove(self) -> None:
        """Remove the file, so that the end of this process does not count as a crash."""
        path, self._path = self._path, None
        if path is not None:
            path.unlink(missing_ok=True)
            os.close(self._handle)

    def count_crashes(self) -> int:
        """Return the number of crashes since the last call; each is counted once."""
        folder = Path(settings.DATA_DIR) / "processes"
        return sum(_is_left_behind(path) for path in folder.glob("[0-9]*") if path != self._path)


def _is_left_behind(path: Path) -> bool:
    with suppress(OSError), hold_unless_locked(path) as is_free:
        # If the file is locked, its process is still alive, or another process is about to remove the file.
        if is_free:
            path.unlink()
            return True
    return False


process_marker = owned(ProcessMarker)


def find_other_version() -> str | None:
    """Return another version of the program that currently serves this data directory, or None."""
    for path in (Path(settings.DATA_DIR) / "processes").glob("[0-9]*"):
        with suppress(OSError):
            version = path.read_text()
            with hold_unless_locked(path) as is_free:
                if not is_free and version not in ("", program_version()):
                    return version
    return None
