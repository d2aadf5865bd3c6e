"""How long may a caller take over a request, and how many connections may one address keep open?"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from django.conf import settings

from routing_admin.server.addresses import place_of


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
    """The open connections of this process by whom they count for, in the order of their opening.

    Behind proxies, all of whose connections come from few addresses, what is counted instead are the requests under
    way, by the address that the outermost proxy saw.
    """

    limits: ConnectionLimits
    refused: int = 0
    _open: dict[str, dict[Connection, None]] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many there are."""
        return sum(map(len, self._open.values()))

    def busy(self) -> int:
        """How many of them have a request that is read or answered."""
        return sum(not each.waits_for_head and not each.is_idle for place in self._open.values() for each in place)

    def enter(self, one: Connection, address: str) -> bool:
        """Counts it; False when its address has as many as it may, none of which can make room."""
        place = self._open.setdefault(place_of(address), {})
        if len(place) >= self.limits.per_address and not self._make_room(place):
            self.refused += 1
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


@cache
def process_connections() -> Connections:
    """This process's, with the limits that the settings say."""
    return Connections(
        ConnectionLimits(
            head_seconds=settings.HEAD_SECONDS,
            body_seconds=settings.BODY_SECONDS,
            per_address=settings.CONNECTIONS_PER_ADDRESS,
            proxies=settings.TRUSTED_PROXIES,
        )
    )
