"""Detect processes of this data directory that ended without shutting down: each locks a file while it serves."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from capabilities.runtime import owned
from routing_admin.platform.server.file_locks import hold_unless_locked

log = logging.getLogger(__name__)


class ProcessMark:
    """The file of this process, removed when it shuts down; if it crashes, others find the file unlocked."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._handle = -1

    def place(self) -> None:
        """Create and lock the file; a failure is only logged, as a warning."""
        folder = Path(settings.DATA_DIR) / "processes"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            name = f"{os.getpid()}-{os.urandom(4).hex()}"
            self._handle = os.open(folder / f".{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            # Renamed once locked, since others only check files with this name.
            self._path = (folder / f".{name}").rename(folder / name)
        except OSError as error:
            log.warning("a crash of this process will not be noticed: %s", error)

    def remove(self) -> None:
        """Remove the file: from now on, the end of this process is not a crash."""
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
        # If it is locked, its process is alive, or another process is removing it.
        if is_free:
            path.unlink()
            return True
    return False


process_mark = owned(ProcessMark)
