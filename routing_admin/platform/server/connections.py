"""How long may a caller take over a request, and how many connections may one address keep open?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from django.conf import settings

from capabilities.runtime import owned
from routing_admin.platform.auth.addresses import place_of
from routing_admin.platform.server.resources import descriptor_limit, max_connections

log = logging.getLogger(__name__)

HEALTH_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
"""Those who look after the process are let in when nobody else is."""
HEALTH_CONNECTIONS = 32
"""How many more connections are accepted for these, once there are as many as there may be."""
ROOM_TRIES = 64
"""How many of the oldest connections are looked at for one that can make room."""
WARNING_SECONDS = 60.0
"""How often a refusal is logged."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one caller may take.

    A request's head comes whole within `head_seconds` of the connection's opening, or of the first byte of the next
    request, and in `head_bytes`. Its body comes within `body_seconds`, or in each such stretch of time with
    `body_rate` bytes a second. `proxies` are those in front, as `ROUTING_ADMIN_TRUSTED_PROXIES` counts them.
    """

    head_seconds: float = 10.0
    head_bytes: int = 64 * 1024
    body_seconds: float = 30.0
    body_rate: int = 4 * 1024
    unread_seconds: float = 60.0
    """How long a caller may take nothing of what is left of its answer when the connection is closed."""
    per_address: int = 256
    in_all: int = 10_000
    proxies: int = 0


class Connection(Protocol):
    """What is asked of an open connection when its address has too many."""

    @property
    def waits_for_head(self) -> bool:
        """Whether it was opened, or a request begun, and the head is not whole yet."""

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being read or answered."""

    def make_room(self) -> None:
        """Closes it, for another one of its address."""


@dataclass(slots=True)
class Connections:
    """The open connections of this process in the order of their opening, all and by whom they count for.

    Behind proxies, all of whose connections come from few addresses, what is counted by address are the requests under
    way, by the one that the outermost proxy saw.
    """

    limits: ConnectionLimits
    clock: Callable[[], float] = time.monotonic
    refused: int = 0
    _all: dict[Connection, None] = field(default_factory=dict)
    _open: dict[str, dict[Connection, None]] = field(default_factory=dict)
    _warned_at: float = float("-inf")
    _unsaid: int = 0

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)

    def busy(self) -> int:
        """How many of them have a request that is read or answered."""
        return sum(not each.waits_for_head and not each.is_idle for each in self._all)

    def add(self, one: Connection) -> bool:
        """Count it until `remove`; False when this process has as many as it may, none of which can make room."""
        full = len(self._all) >= self.limits.in_all
        self._all[one] = None
        if not full or self._make_room_in_all():
            return True
        self._note_refusal(f"this process has its {self.limits.in_all} connections")
        return False

    def remove(self, one: Connection) -> None:
        """It is closed."""
        self._all.pop(one, None)

    def has_room_for_health(self) -> bool:
        """Whether one that was not counted in may stay to ask for the health of the process."""
        return len(self._all) <= self.limits.in_all + HEALTH_CONNECTIONS

    def enter(self, one: Connection, address: str) -> bool:
        """Counts it; False when its address has as many as it may, none of which can make room."""
        place = self._open.setdefault(place_of(address), {})
        if len(place) >= self.limits.per_address and not self._make_room(place):
            self._note_refusal(f"the address {place_of(address)} has its {self.limits.per_address}")
            return False
        place[one] = None
        return True

    def leave(self, one: Connection, address: str) -> None:
        """It is closed, or its request over; does nothing for one that was not counted."""
        name = place_of(address)
        place = self._open.get(name, {})
        place.pop(one, None)
        if not place:
            self._open.pop(name, None)

    def _make_room_in_all(self) -> bool:
        """Close one of the oldest that waits or is idle; those that are busy are looked at last the next time."""
        for one in list(islice(self._all, ROOM_TRIES)):
            if one.waits_for_head or one.is_idle:
                self._note_refusal(f"this process has its {self.limits.in_all} connections")
                one.make_room()
                return True
            self._all[one] = self._all.pop(one)
        return False

    def _note_refusal(self, why: str) -> None:
        self.refused += 1
        self._unsaid += 1
        if self.clock() - self._warned_at >= WARNING_SECONDS:
            log.warning("%d connections or requests were refused or closed: %s (docs/limits.md)", self._unsaid, why)
            self._warned_at, self._unsaid = self.clock(), 0

    def _make_room(self, place: dict[Connection, None]) -> bool:
        """Closes the oldest that waits for a head, else the oldest that is idle: one that sends nothing bars nobody."""
        one = next((each for each in place if each.waits_for_head), None) or next(
            (each for each in place if each.is_idle), None
        )
        if one is not None:
            del place[one]
            self.refused += 1
            one.make_room()
        return one is not None


@owned
def process_connections() -> Connections:
    """This process's, with the limits that the settings say."""
    return Connections(
        ConnectionLimits(
            head_seconds=settings.HEAD_SECONDS,
            body_seconds=settings.BODY_SECONDS,
            per_address=settings.CONNECTIONS_PER_ADDRESS,
            in_all=max_connections(descriptor_limit()),
            proxies=settings.TRUSTED_PROXIES,
        )
    )
