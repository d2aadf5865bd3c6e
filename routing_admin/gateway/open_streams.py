"""The streams that are being written, each ended within a second of its key: revoked, expired, or its agent gone.

A call is let in once, and a stream may go on for an hour after that. While there are streams a thread looks at the
installation's stamp, which every act on keys and agents moves, and only when it moved at the keys.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from django.db import connections
from django.utils import timezone

from capabilities.access import Principal, principal_of_key_id
from capabilities.core.translatable import translatable
from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.configuration.stamped_cache import StampedCache
from routing_admin.platform.server.draining import WaitingPeriod
from routing_admin.platform.server.repeating_thread import RepeatingThread

LOOK_SECONDS = 0.4
KEY_ENDED = "key_ended"
KEY_ENDED_MESSAGE = translatable("The agent key was revoked or expired before the answer was complete.")


class KeyEndedError(Exception):
    """The key by which a stream was let in is not good any more."""

    status, code, message = 401, KEY_ENDED, KEY_ENDED_MESSAGE


@dataclass(eq=False, slots=True)
class OpenStream:
    """A stream let in under that stamp; `waiting` is its wait for what comes next."""

    principal: Principal
    stamp: int
    waiting: WaitingPeriod
    loop: asyncio.AbstractEventLoop
    is_ended: bool = False

    def check(self) -> None:
        """Raise `KeyEndedError` once the key has ended: for a stream that never has to wait."""
        if self.is_ended:
            raise KeyEndedError

    def end(self) -> None:
        """End it, whether it waits or not; from any thread."""
        self.is_ended = True
        self.loop.call_soon_threadsafe(self.waiting.give_up, KeyEndedError())


class OpenStreams:
    """Those of a process."""

    def __init__(self, newest: StampedCache[Snapshot]) -> None:
        self._newest = newest
        self._streams: set[OpenStream] = set()
        self._thread = RepeatingThread("streams", LOOK_SECONDS, self.look, connections.close_all, on_demand=True)
        self.start, self.stop = self._thread.start, self._thread.stop

    def __len__(self) -> int:
        """How many there are."""
        return len(self._streams)

    def add(self, principal: Principal, stamp: int, waiting: WaitingPeriod) -> OpenStream:
        """Follow a stream of the running loop until `remove`."""
        one = OpenStream(principal, stamp, waiting, asyncio.get_running_loop())
        self._streams.add(one)
        self._thread.demand()
        return one

    def remove(self, one: OpenStream) -> None:
        """It is over."""
        self._streams.discard(one)

    def look(self, now: datetime | None = None) -> None:
        """End the streams whose key has ended by then. Raise what the database raises where keys cannot be read."""
        streams = [each for each in self._streams.copy() if not each.is_ended]
        if not streams:
            return
        self._thread.demand()
        self._newest.look()
        stamp, now = self._newest.stamp(), now or timezone.now()
        found: dict[tuple[str, str], Principal | None] = {}
        for each in streams:
            key = each.principal.key, each.principal.agent
            if each.stamp != stamp and key not in found:
                found[key] = principal_of_key_id(*key)
            principal = each.principal if each.stamp == stamp else found[key]
            if principal is None or (principal.ends_at is not None and principal.ends_at <= now):
                each.end()
            else:
                each.principal, each.stamp = principal, stamp


open_streams = owned(lambda: OpenStreams(snapshot.newest()))
