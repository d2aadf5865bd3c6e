"""Store a few rejected calls for some minutes: calls with invalid keys or unknown paths, which are not logged.

An administrator who is waiting for a new key's first call can see that a call has arrived, and why it failed. The calls
are collected in memory and written in the background, only a few at a time, so a flood of them costs almost nothing.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from capabilities.access import read_key
from capabilities.runtime import owned
from routing_admin.models import RejectedCall

log = logging.getLogger(__name__)

MAX_NOTED, EVERY_SECONDS = 5, 2.0
"""Maximum number of calls per write, and minimum number of seconds between writes; further calls are dropped."""
MAX_KEPT, RETENTION = 200, timedelta(minutes=15)
PUBLIC = re.compile(r"ra_([0-9a-z]{8})(?:_|$)")


class KeyShape(StrEnum):
    """Kinds of keys that callers send."""

    NONE = "none"
    OURS = "ra"
    SCRIPTS = "rat"
    VENDORS = "sk"
    OTHER = "other"


def key_shape(key: str) -> KeyShape:
    for shape in (KeyShape.OURS, KeyShape.SCRIPTS, KeyShape.VENDORS):
        if key.startswith((f"{shape}_", f"{shape}-")):
            return shape
    return KeyShape.OTHER if key else KeyShape.NONE


class RejectedCalls:
    """Rejected calls that this process has not written yet; `clock` is in monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._noted = clock, list[RejectedCall]()
        self._written_at = float("-inf")
        self._writing = threading.Lock()

    def note(self, code: str, path: str, headers: Mapping[str, str]) -> None:
        """Record a rejected call; of its headers only the key's kind and public part are stored."""
        # In a flood of rejected calls, most calls cost no more than this check.
        if len(self._noted) >= MAX_NOTED:
            return
        key = read_key(headers)
        public = found[1] if (found := PUBLIC.match(key)) else ""
        self._noted.append(
            RejectedCall(at=timezone.now(), code=code[:40], path=path[:200], key=public, shape=key_shape(key))
        )

    def write(self) -> None:
        """Write recorded calls and delete old ones; if the database fails, the recorded calls are dropped."""
        now = self._clock()
        if not self._noted or now - self._written_at < EVERY_SECONDS:
            return
        with self._writing:
            noted, self._noted, self._written_at = self._noted, [], now
            try:
                RejectedCall.objects.bulk_create(noted)
                RejectedCall.objects.filter(at__lt=timezone.now() - RETENTION).delete()
                oldest = RejectedCall.objects.values_list("pk", flat=True)[MAX_KEPT : MAX_KEPT + 1].first()
                if oldest is not None:
                    RejectedCall.objects.filter(pk__lte=oldest).delete()
            except (DatabaseError, InterfaceError) as error:
                log.debug("%s rejected calls could not be written: %s", len(noted), error)


rejected_calls = owned(RejectedCalls)
