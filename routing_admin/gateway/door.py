"""Keys that came in before: who they belong to, until anything about keys changes.

Every act on keys and agents moves the installation's stamp, which the snapshot follows; an answer is kept under the
stamp it was given at, so a revoked key stops with the snapshot's next look. What is refused is never kept,
nor is who acts for others.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils import timezone

from capabilities.access import Principal, Refusal, authenticate, key_in
from routing_admin import snapshot

KEPT_SECONDS = 20.0
"""Less than the minute after which a key's last use is written again."""
KEPT_KEYS = 1000


@dataclass(frozen=True, slots=True)
class _Known:
    """A key's agent, under which stamp and until when by the monotonic clock."""

    principal: Principal
    stamp: int
    until: float


_known: dict[bytes, _Known] = {}


def known(headers: Mapping[str, str]) -> Principal | Refusal:
    """The same answer as `authenticate`; from memory where it was given a moment ago and nothing has changed since."""
    stamp, now = snapshot.current().stamp, time.monotonic()
    digest = hashlib.sha256(f"{key_in(headers)}\n{headers.get('x-agent-id', '')}".encode()).digest()
    found = _known.get(digest)
    if found is not None and found.stamp == stamp and now < found.until and _lives(found.principal):
        return found.principal
    _known.pop(digest, None)
    answer = authenticate(headers)
    if isinstance(answer, Principal) and not answer.acts_through:
        if len(_known) >= KEPT_KEYS:
            _known.clear()
        _known[digest] = _Known(answer, stamp, now + KEPT_SECONDS)
    return answer


def _lives(principal: Principal) -> bool:
    return principal.ends_at is None or timezone.now() < principal.ends_at


def forget() -> None:
    """Lets every key be looked up again: for tests, whose rows are rolled back behind our back."""
    _known.clear()
