"""File in the data directory that stores alerts while the database is unavailable.

The file has its full size from the start and is overwritten in place, so it can store an alert even if the disk is
full. All processes on a machine share the file, and each locks it while changing it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from capabilities.runtime import owned

SIZE = 16 * 1024
MOMENTS = frozenset({"first_seen_at", "last_seen_at", "expires_at", "sent_at", "next_try_at"})


@dataclass(slots=True)
class StoredAlert:
    """A stored alert, with the fields that its database row will have."""

    kind: str
    subject: str
    sentence: Any
    first_seen_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    next_try_at: datetime | None
    sent_at: datetime | None = None
    tries: int = 0
    error: Any = None


StoredAlerts = dict[tuple[str, str], StoredAlert]
"""Maps the kind and subject of each alert to the alert."""


class AlertFile:
    """The installation's alert file. Alerts that cannot be written to it are kept in this process's memory."""

    def __init__(self) -> None:
        self._unwritten: StoredAlerts = {}

    @property
    def path(self) -> Path:
        return Path(settings.DATA_DIR) / "alerts.json"

    def read(self) -> StoredAlerts:
        try:
            return self._unwritten or _parse(self.path.read_bytes())
        except OSError:
            return {}

    @contextmanager
    def edit(self) -> Iterator[StoredAlerts]:
        """Yield the stored alerts for changes, to one process at a time; an error in the block discards the changes."""
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            # Without the file, keep the alerts in memory.
            yield self._unwritten
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            alerts = self._unwritten or _parse(os.pread(handle, os.fstat(handle).st_size, 0))
            yield alerts
            self._unwritten = {} if _write(handle, alerts) else alerts
        finally:
            os.close(handle)


def _write(handle: int, alerts: StoredAlerts) -> bool:
    # Pad the content to the file's full size, so that later writes need no additional disk space.
    content = json.dumps([asdict(alert) for alert in alerts.values()], default=str).encode().ljust(SIZE)
    try:
        return os.pwrite(handle, content, 0) == len(content)
    except OSError:
        return False


def _parse(content: bytes) -> StoredAlerts:
    try:
        rows = json.loads(content)
    except ValueError:  # The file is empty, or another process is writing it at this moment.
        return {}
    found = (StoredAlert(**{name: _value(name, value) for name, value in row.items()}) for row in rows)
    return {(alert.kind, alert.subject): alert for alert in found}


def _value(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name in MOMENTS and value else value


alert_file = owned(AlertFile)
