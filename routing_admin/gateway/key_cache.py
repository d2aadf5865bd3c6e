"""Cache of authenticated keys, whose entries are valid until any key or agent changes.

Every change to keys or agents increases the installation's stamp, a number that each snapshot also contains. An entry
is valid only while the stamp stays the same, so a revoked key stops working when the snapshot is next checked.
Failures, and agents that act for other agents, are never cached. While the database is unavailable, keys cannot change,
so entries stay valid for a while. A key without an entry is then neither accepted nor reported as invalid
(docs/faults.md).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from capabilities.access import Principal, Refusal, authenticate, read_key
from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.configuration.stamped_cache import OUTAGE_SECONDS, StampedCache
from routing_admin.platform.databases.unavailable import is_unavailable

ENTRY_SECONDS = 20.0
"""How long an entry is fresh, in seconds.

This must be less than a minute, because a key's last use is recorded once a minute.
"""
MAX_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class _CachedKey:
    """A key's agent, the installation's stamp at the look-up, and until when the entry is fresh."""

    principal: Principal
    stamp: int
    until: float


class KeyCache:
    """Cache of authenticated keys.

    `clock` returns monotonic seconds and must be the clock that `newest` uses. `now` returns the current time, which is
    compared with a key's expiry.
    """

    def __init__(
        self,
        newest: StampedCache[Snapshot],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = timezone.now,
    ) -> None:
        self._newest, self._clock, self._now = newest, clock, now
        self._entries: dict[bytes, _CachedKey] = {}

    def look_up(self, headers: Mapping[str, str]) -> Principal | None:
        """Return the agent from the cache, or None if the database must be queried."""
        entry = self._find(digest_credentials(headers)) if self._newest.fresh() is not None else None
        return entry.principal if entry is not None and self._is_current(entry) else None

    def authenticate(self, headers: Mapping[str, str]) -> Principal | Refusal:
        """Authenticate with the cache or, for an uncached key, with the database, whose errors propagate."""
        self._newest.current()
        digest, stamp = digest_credentials(headers), self._newest.stamp()
        entry = self._find(digest)
        if entry is not None and self._is_current(entry):
            return entry.principal
        try:
            answer = authenticate(headers)
        except (DatabaseError, InterfaceError) as error:
            if entry is not None and is_unavailable(error) and self._bridges_outage():
                return entry.principal
            raise
        self._keep(digest, answer, stamp)
        return answer

    def _find(self, digest: bytes) -> _CachedKey | None:
        entry = self._entries.get(digest)
        return entry if entry and entry.stamp == self._newest.stamp() and self._is_unexpired(entry.principal) else None

    def _is_current(self, entry: _CachedKey) -> bool:
        # An entry is valid while it is fresh; during a database outage, it stays valid for longer.
        return self._clock() < entry.until or self._bridges_outage(self._newest.unread_since())

    def _bridges_outage(self, outage: object = True) -> bool:
        return bool(outage) and self._clock() - self._newest.read_at() < OUTAGE_SECONDS

    def _keep(self, digest: bytes, answer: Principal | Refusal, stamp: int) -> None:
        self._entries.pop(digest, None)
        # An agent that acts for another agent is not cached.
        if isinstance(answer, Principal) and not answer.acts_through:
            if len(self._entries) >= MAX_ENTRIES:
                self._entries.clear()
            self._entries[digest] = _CachedKey(answer, stamp, self._clock() + ENTRY_SECONDS)

    def _is_unexpired(self, principal: Principal) -> bool:
        return principal.ends_at is None or self._now() < principal.ends_at


def digest_credentials(headers: Mapping[str, str]) -> bytes:
    """Return a digest of the caller's identity: the key, and the agent on whose behalf it acts."""
    return hashlib.sha256(f"{read_key(headers)}\n{headers.get('x-agent-id', '')}".encode()).digest()


cache = owned(lambda: KeyCache(snapshot.newest()))


def principal_by_key(headers: Mapping[str, str]) -> Principal | Refusal:
    return cache().authenticate(headers)


def cached_principal(headers: Mapping[str, str]) -> Principal | None:
    return cache().look_up(headers)
