"""Known keys: whose they are, until anything about keys changes.

Every act on keys and agents moves the installation's stamp, which the snapshot follows; an answer is kept under the
stamp it was given at, so a revoked key stops with the snapshot's next look. What is refused is never kept,
nor is who acts for others. While the database cannot be read nothing about keys can change, so what is kept goes on
for a while, and a key that is not kept is neither let in nor called wrong (faults.md, rows 55 and 57).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from capabilities.access import Principal, Refusal, authenticate, key_in
from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.configuration.stamped_cache import OUTAGE_SECONDS, StampedCache
from routing_admin.platform.databases.unavailable import is_unavailable

ENTRY_SECONDS = 20.0
"""Less than the minute after which a key's last use is noted again."""
MAX_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class _CachedKey:
    """A key's agent, under which stamp and until when by the cache's clock."""

    principal: Principal
    stamp: int
    until: float


class KeyCache:
    """Who came in with which key; `clock` is the one that `newest` goes by, `now` the one by which keys expire."""

    def __init__(
        self,
        newest: StampedCache[Snapshot],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = timezone.now,
    ) -> None:
        self._newest, self._clock, self._now = newest, clock, now
        self._entries: dict[bytes, _CachedKey] = {}

    def look_up(self, headers: Mapping[str, str]) -> Principal | None:
        """Who comes in by what is in memory alone; None where a row, or the stamp, has to be looked at."""
        entry = self._find(digest_of(headers)) if self._newest.fresh() is not None else None
        return entry.principal if entry is not None and self._counts(entry) else None

    def authenticate(self, headers: Mapping[str, str]) -> Principal | Refusal:
        """The same answer as `authenticate`; from memory where it was given under the same stamp a moment ago.

        Raises what the database raises for a key that it would have to look up and cannot.
        """
        self._newest.current()
        digest, stamp = digest_of(headers), self._newest.stamp()
        entry = self._find(digest)
        if entry is not None and self._counts(entry):
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
        """What was found out under the newest stamp about a key that has not expired."""
        entry = self._entries.get(digest)
        return entry if entry and entry.stamp == self._newest.stamp() and self._lives(entry.principal) else None

    def _counts(self, entry: _CachedKey) -> bool:
        """Whether nobody has to be asked: it was found out a moment ago, or nobody answers for now."""
        return self._clock() < entry.until or self._bridges_outage(self._newest.unread_since())

    def _bridges_outage(self, outage: object = True) -> bool:
        """Whether keys that came in before go on in an `outage` of the database; never without one."""
        return bool(outage) and self._clock() - self._newest.read_at() < OUTAGE_SECONDS

    def _keep(self, digest: bytes, answer: Principal | Refusal, stamp: int) -> None:
        self._entries.pop(digest, None)
        if isinstance(answer, Principal) and not answer.acts_through:
            if len(self._entries) >= MAX_ENTRIES:
                self._entries.clear()
            self._entries[digest] = _CachedKey(answer, stamp, self._clock() + ENTRY_SECONDS)

    def _lives(self, principal: Principal) -> bool:
        return principal.ends_at is None or self._now() < principal.ends_at


def digest_of(headers: Mapping[str, str]) -> bytes:
    """What tells callers apart: the key that came in, and the agent it is to act as."""
    return hashlib.sha256(f"{key_in(headers)}\n{headers.get('x-agent-id', '')}".encode()).digest()


cache = owned(lambda: KeyCache(snapshot.newest()))


def principal_of_key(headers: Mapping[str, str]) -> Principal | Refusal:
    """See `KeyCache.authenticate`."""
    return cache().authenticate(headers)


def cached_principal(headers: Mapping[str, str]) -> Principal | None:
    """See `KeyCache.look_up`."""
    return cache().look_up(headers)
