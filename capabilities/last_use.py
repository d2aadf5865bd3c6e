"""Record the last use of each agent key without a database write during the request.

Uses are buffered in memory and written by the server's periodic upkeep (routing_admin/platform/server/upkeep.py). A
crash loses at most the last minute. Pages also show uses that are not written yet.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError, transaction

from capabilities.models import AgentKey
from capabilities.runtime import owned

log = logging.getLogger(__name__)

WRITE_INTERVAL = timedelta(minutes=1)
"""Minimum time between two writes of a key's last use."""


class LastUses:
    """Key uses that are not yet in the database. The keys of the mapping are the agent keys' public ids."""

    def __init__(self) -> None:
        self._noted: dict[str, datetime] = {}
        self._writing = threading.Lock()

    def note(self, row: AgentKey, now: datetime) -> None:
        """Buffer a use of the key at `now`, unless another use within the last minute is already in the database."""
        if row.last_used_at is None or now - row.last_used_at > WRITE_INTERVAL:
            self._noted[row.public_id] = now

    def latest(self, row: AgentKey) -> datetime | None:
        """Return when the key was last used, even if this is not yet in the database."""
        return self._noted.get(row.public_id, row.last_used_at)

    def list_noted(self) -> list[str]:
        return list(self._noted)

    def write(self) -> bool:
        """Write the buffered uses in one transaction. If the database fails, return False and keep the buffer."""
        with self._writing:
            # Copy the buffer, because requests may add uses during the write.
            noted = dict(self._noted)
            try:
                self._update(noted)
            except (DatabaseError, InterfaceError) as error:
                log.debug("the last use of %s keys could not be written yet: %s", len(noted), error)
                return False
            for public_id, moment in noted.items():
                # A newer use may have been added during the write.
                if self._noted.get(public_id) == moment:
                    del self._noted[public_id]
            return True

    def _update(self, noted: dict[str, datetime]) -> None:
        if not noted:
            return
        with transaction.atomic():
            for public_id, moment in noted.items():
                AgentKey.objects.filter(public_id=public_id).update(last_used_at=moment)


last_uses = owned(LastUses)
