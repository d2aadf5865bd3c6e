"""Keys that came in before: who they belong to, until anything about keys changes.

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
from routing_admin.configuration import snapshot
from routing_admin.configuration.newest import Newest
from routing_admin.configuration.snapshot import Snapshot

KEPT_SECONDS = 20.0
"""Less than the minute after which a key's last use is noted again."""
HELD_SECONDS = 15 * 60.0
"""How long after the last good look a key that came in before is let in while the database does not answer."""
KEPT_KEYS = 1000


@dataclass(frozen=True, slots=True)
class _CachedKey:
    """A key's agent, under which stamp and until when by the door's clock."""

    principal: Principal
    stamp: int
    until: float


class Door:
    """Lets keys in; `clock` is the one that `newest` goes by, `now` the one by which keys expire."""

    def __init__(
        self,
        newest: Newest[Snapshot],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = timezone.now,
    ) -> None:
        self._newest, self._clock, self._now = newest, clock, now
        self._kept: dict[bytes, _CachedKey] = {}

    def known(self, headers: Mapping[str, str]) -> Principal | Refusal:
        """The same answer as `authenticate`; from memory where it was given under the same stamp a moment ago.

        Raises what the database raises for a key that it would have to look up and cannot.
        """
        self._newest.current()
        stamp = self._newest.stamp()
        digest = hashlib.sha256(f"{key_in(headers)}\n{headers.get('x-agent-id', '')}".encode()).digest()
        kept = self._kept.get(digest)
        if kept is not None and not (kept.stamp == stamp and self._lives(kept.principal)):
            kept = None
        if kept is not None and (self._clock() < kept.until or self._holds(unread=self._newest.unread_since())):
            return kept.principal
        try:
            answer = authenticate(headers)
        except (DatabaseError, InterfaceError):
            if kept is not None and self._holds():
                return kept.principal
            raise
        self._keep(digest, answer, stamp)
        return answer

    def forget(self) -> None:
        """Lets every key be looked up again: for tests, whose rows are rolled back behind our back."""
        self._kept.clear()

    def _holds(self, unread: object = True) -> bool:
        """Whether kept keys go on though the database is `unread`."""
        return bool(unread) and self._clock() - self._newest.read_at() < HELD_SECONDS

    def _keep(self, digest: bytes, answer: Principal | Refusal, stamp: int) -> None:
        self._kept.pop(digest, None)
        if isinstance(answer, Principal) and not answer.acts_through:
            if len(self._kept) >= KEPT_KEYS:
                self._kept.clear()
            self._kept[digest] = _CachedKey(answer, stamp, self._clock() + KEPT_SECONDS)

    def _lives(self, principal: Principal) -> bool:
        return principal.ends_at is None or self._now() < principal.ends_at


door = Door(snapshot.newest)
"""This process's."""
principal_of_key, forget = door.known, door.forget
