"""Limit the number of connections per process and IP address, and define the limits on reading requests."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from django.conf import settings

from capabilities.runtime import owned
from routing_admin.platform.auth.addresses import client_network
from routing_admin.platform.server.resources import descriptor_limit, max_connections

log = logging.getLogger(__name__)

HEALTH_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths of health checks, which are served even when all connections are in use."""
HEALTH_CONNECTIONS = 32
"""Additional connections that are accepted for health checks after the limit is reached."""
MAX_CLOSE_CANDIDATES = 64
"""How many of the oldest connections the server checks to find one that it can close."""
WARNING_SECONDS = 60.0
"""Minimum number of seconds between log lines about refused connections."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on the resources that a caller may use.

    A request's head must be complete within `head_seconds` and have at most `head_bytes`; the time starts when the
    connection is opened, or with the first byte of the next request. Its body must be complete within `body_seconds`,
    or arrive at `body_rate` bytes per second or more in each period of that length. `proxies` is the number of trusted
    proxies (`ROUTING_ADMIN_TRUSTED_PROXIES`).
    """

    head_seconds: float = 10.0
    head_bytes: int = 64 * 1024
    body_seconds: float = 30.0
    body_rate: int = 4 * 1024
    unread_seconds: float = 60.0
    """How long a caller may stop reading its response before a closing connection is dropped, in seconds."""
    per_address: int = 256
    total: int = 10_000
    proxies: int = 0


class Connection(Protocol):
    """Interface of an open connection: its state, and how to close it."""

    @property
    def waits_for_head(self) -> bool:
        """Return whether the connection is waiting for a request head, or for the rest of a partly received one."""

    @property
    def is_idle(self) -> bool:
        """Return whether no request is being read or answered."""

    def make_room(self) -> None: ...


@dataclass(slots=True)
class Connections:
    """Open connections of this process, in total and by address, oldest first.

    Behind proxies all connections are from a few addresses. In this case requests in progress are counted instead, by
    the address that the outermost proxy saw.
    """

    limits: ConnectionLimits
    clock: Callable[[], float] = time.monotonic
    refused: int = 0
    _all: dict[Connection, None] = field(default_factory=dict)
    _open: dict[str, dict[Connection, None]] = field(default_factory=dict)
    _warned_at: float = float("-inf")
    _unreported: int = 0

    def __len__(self) -> int:
        return len(self._all)

    def busy(self) -> int:
        return sum(not connection.waits_for_head and not connection.is_idle for connection in self._all)

    def add(self, connection: Connection) -> bool:
        """Count a connection until `remove` is called.

        Return False if the process is at its limit and no other connection can be closed.
        """
        full = len(self._all) >= self.limits.total
        self._all[connection] = None
        if not full or self._make_room_in_all():
            return True
        self._note_refusal(f"this process has its {self.limits.total} connections")
        return False

    def remove(self, connection: Connection) -> None:
        self._all.pop(connection, None)

    def has_room_for_health(self) -> bool:
        """Return whether a connection over the limit may stay open for health checks."""
        return len(self._all) <= self.limits.total + HEALTH_CONNECTIONS

    def enter(self, connection: Connection, address: str) -> bool:
        """Count a connection for `address`; return False if the address is at its limit and none can be closed."""
        peers = self._open.setdefault(client_network(address), {})
        if len(peers) >= self.limits.per_address and not self._make_room(peers):
            self._note_refusal(f"the address {client_network(address)} has its {self.limits.per_address}")
            return False
        peers[connection] = None
        return True

    def leave(self, connection: Connection, address: str) -> None:
        """Stop counting a connection for an address; do nothing if the connection was not counted."""
        name = client_network(address)
        peers = self._open.get(name, {})
        peers.pop(connection, None)
        if not peers:
            self._open.pop(name, None)

    def _make_room_in_all(self) -> bool:
        for connection in list(islice(self._all, MAX_CLOSE_CANDIDATES)):
            if connection.waits_for_head or connection.is_idle:
                self._note_refusal(f"this process has its {self.limits.total} connections")
                connection.make_room()
                return True
            # Move busy connections to the end, so that the next search starts with other connections.
            self._all[connection] = self._all.pop(connection)
        return False

    def _note_refusal(self, reason: str) -> None:
        self.refused += 1
        self._unreported += 1
        if self.clock() - self._warned_at >= WARNING_SECONDS:
            log.warning(
                "%d connections or requests were refused or closed: %s (docs/limits.md)", self._unreported, reason
            )
            self._warned_at, self._unreported = self.clock(), 0

    def _make_room(self, candidates: dict[Connection, None]) -> bool:
        # Close the oldest connection that waits for a request's head, or else the oldest idle one, so that connections
        # that send nothing cannot block an address.
        closable = next((connection for connection in candidates if connection.waits_for_head), None) or next(
            (connection for connection in candidates if connection.is_idle), None
        )
        if closable is not None:
            del candidates[closable]
            self.refused += 1
            closable.make_room()
        return closable is not None


@owned
def process_connections() -> Connections:
    return Connections(
        ConnectionLimits(
            head_seconds=settings.HEAD_SECONDS,
            body_seconds=settings.BODY_SECONDS,
            per_address=settings.CONNECTIONS_PER_ADDRESS,
            total=max_connections(descriptor_limit()),
            proxies=settings.TRUSTED_PROXIES,
        )
    )
