"""Keep both JSON files in `ROUTING_ADMIN_PUBLISH_DIR` those of the newest revision, each whole or not at all.

A change publishes them when it is committed. A serving process does when it starts and whenever the stamp has moved:
a process that was killed behind its commit, or that has no such directory, published nothing.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from capabilities.runtime import owned
from routing_admin.configuration import exports, snapshot
from routing_admin.platform.databases.router import renew_connections
from routing_admin.platform.redis.news import Fields, News, news

log = logging.getLogger(__name__)

RETRY_SECONDS = 60.0
"""How long a serving process leaves a directory alone that could not be written."""


class Publisher:
    """What this process published last."""

    def __init__(self) -> None:
        self._directory, self._stamp, self._due = "", -1, float("-inf")

    def look(self) -> None:
        """Publish where the configuration or the directory is another than the last time."""
        if not settings.PUBLISH_DIR or time.monotonic() < self._due:
            return
        with suppress(DatabaseError, InterfaceError):  # nothing was ever read: the next look tries again
            if (settings.PUBLISH_DIR, snapshot.current().stamp) != (self._directory, self._stamp):
                self.publish()

    def publish(self) -> None:
        """Write both files as `export_config` does; one that cannot be written is said in the log, no more."""
        if not settings.PUBLISH_DIR:
            return
        try:
            directory = Path(settings.PUBLISH_DIR)
            directory.mkdir(parents=True, exist_ok=True)
            with _alone_in(directory):
                self._publish_newest(directory)
        except OSError as problem:
            log.error("ROUTING_ADMIN_PUBLISH_DIR: the files could not be written: %s", problem.strerror)
            self._due = time.monotonic() + RETRY_SECONDS

    def _publish_newest(self, directory: Path) -> None:
        snapshot.look()  # behind the lock: who writes later has read later, so no older revision replaces a newer one
        if snapshot.unread_since() is not None:
            return
        state = snapshot.current()
        for name in exports.FILES:
            path, text = directory / f"{name.value}.json", exports.export(name, configuration=state.configuration).text
            if not path.exists() or path.read_bytes() != text.encode():
                replace_file(path, text)
        self._directory, self._stamp, self._due = settings.PUBLISH_DIR, state.stamp, float("-inf")


publisher = owned(Publisher)


def publish() -> None:
    """Write both files now."""
    publisher().publish()


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Let no other process that publishes there be in here."""
    number = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # a network's file system may not lock directories
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def replace_file(path: Path, text: str) -> None:
    """Write a file beside its place, make sure it is on the disk, and move it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    Path(file.name).replace(path)


# A hint to other processes that something has changed: they look at once, instead of within a second.

TOPIC = "configuration"
MOST = 16


def notify_change() -> None:
    """Says that the stamp has moved; nothing where there is no Redis."""
    hints().tell(TOPIC, "", lambda: {"stamp": str(snapshot.newest().stamp())})


def follow_changes(source: News) -> News:
    """Looks whenever another process says that something has changed: what the rows say decides."""

    def look(fields: Fields, age: float) -> None:
        if not source.is_own(fields):
            renew_connections()
            snapshot.look()

    source.follow(TOPIC, MOST, look)
    return source


hints = owned(lambda: follow_changes(news()))
