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
from routing_admin.databases.away import is_away

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

    def kept(self, headers: Mapping[str, str]) -> Principal | None:
        """Who comes in by what is known in memory alone; None where a row, or the stamp, has to be looked at."""
        if self._newest.fresh() is None:
            return None
        kept = self._kept.get(_digest_of(headers))
        if kept is None or kept.stamp != self._newest.stamp() or not self._lives(kept.principal):
            return None
        in_time = self._clock() < kept.until or self._holds(unread=self._newest.unread_since())
        return kept.principal if in_time else None

    def known(self, headers: Mapping[str, str]) -> Principal | Refusal:
        """The same answer as `authenticate`; from memory where it was given under the same stamp a moment ago.

        Raises what the database raises for a key that it would have to look up and cannot.
        """
        self._newest.current()
        found = self.kept(headers)
        if found is not None:
            return found
        digest, stamp = _digest_of(headers), self._newest.stamp()
        kept = self._kept.get(digest)
        try:
            answer = authenticate(headers)
        except (DatabaseError, InterfaceError) as error:
            same = kept is not None and kept.stamp == stamp and self._lives(kept.principal)
            if kept is not None and same and is_away(error) and self._holds():
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


def _digest_of(headers: Mapping[str, str]) -> bytes:
    return hashlib.sha256(f"{key_in(headers)}\n{headers.get('x-agent-id', '')}".encode()).digest()


door = Door(snapshot.newest)
"""This process's."""
principal_of_key, kept_principal, forget = door.known, door.kept, door.forget
