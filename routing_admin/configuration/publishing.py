"""Keep both JSON files in `ROUTING_ADMIN_PUBLISH_DIR` equal to the newest revision.

Each change writes the files after its commit. Server processes also write them when they start and whenever the
configuration in the database changes. This covers changes by processes that were killed right after their commit or
that run without a publish directory.
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
"""Seconds to wait before trying again after a failed write."""


class Publisher:
    """Writes `llm-routing.json` and `llmservices.json`. It remembers what this process published last."""

    def __init__(self) -> None:
        self._directory, self._stamp, self._due = "", -1, float("-inf")

    def look(self) -> None:
        if not settings.PUBLISH_DIR or time.monotonic() < self._due:
            return
        # If the first configuration could not be read yet, the next call tries again.
        with suppress(DatabaseError, InterfaceError):
            if (settings.PUBLISH_DIR, snapshot.current().stamp) != (self._directory, self._stamp):
                self.publish()

    def publish(self) -> None:
        """Write both files as `export_config` does. A failure is logged, not raised."""
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
        # Read the configuration while holding the lock, so that an older revision cannot overwrite a newer one.
        snapshot.look()
        # If the rows cannot be read, the configuration in memory may be outdated, so it is not published.
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
    publisher().publish()


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    # The lock excludes other processes that publish to the same directory.
    number = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # Network file systems may not support locks on directories.
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def replace_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Write to a temporary file, sync it and rename it, so that no program can read a partial file.
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    Path(file.name).replace(path)


# Redis notifications make other processes check for changes immediately instead of within a second.

TOPIC = "configuration"
MAX_NEWS = 16


def notify_change() -> None:
    hints().publish(TOPIC, "", lambda: {"stamp": str(snapshot.newest().stamp())})


def follow_changes(source: News) -> News:
    """Check the database rows for changes whenever another process sends a notification."""

    def on_change(fields: Fields, age: float) -> None:
        if not source.is_own(fields):
            renew_connections()
            snapshot.look()

    source.follow(TOPIC, MAX_NEWS, on_change)
    return source


hints = owned(lambda: follow_changes(news()))
