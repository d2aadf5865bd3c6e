"""End open streams within a second after their key is revoked or expires.

A call is authenticated only once, but its stream may continue for an hour. While streams are open, a thread polls the
installation's stamp, a number that every change to keys or agents increases. It reads keys again only after the stamp
has changed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from django.db import connections
from django.utils import timezone

from capabilities.access import Principal, find_principal
from capabilities.core.translatable import translatable
from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.configuration.stamped_cache import StampedCache
from routing_admin.platform.server.draining import WaitingPeriod
from routing_admin.platform.server.repeating_thread import RepeatingThread

CHECK_SECONDS = 0.4
KEY_ENDED = "key_ended"
KEY_ENDED_MESSAGE = translatable("The agent key was revoked or expired before the answer was complete.")


class KeyEndedError(Exception):
    status, code, message = 401, KEY_ENDED, KEY_ENDED_MESSAGE


@dataclass(eq=False, slots=True)
class OpenStream:
    """An open stream, whose key is checked regularly.

    `stamp` is the installation's stamp when the key was last checked; `waiting` interrupts the wait for the next block.
    """

    principal: Principal
    stamp: int
    waiting: WaitingPeriod
    loop: asyncio.AbstractEventLoop
    is_ended: bool = False

    def check(self) -> None:
        """Raise `KeyEndedError` if the key is no longer valid; `end` cannot interrupt a stream that never waits."""
        if self.is_ended:
            raise KeyEndedError

    def end(self) -> None:
        """End the stream, whether or not it is waiting for a block; may be called from any thread."""
        self.is_ended = True
        self.loop.call_soon_threadsafe(self.waiting.give_up, KeyEndedError())


class OpenStreams:
    def __init__(self, newest: StampedCache[Snapshot]) -> None:
        self._newest = newest
        self._streams: set[OpenStream] = set()
        self._thread = RepeatingThread("streams", CHECK_SECONDS, self.look, connections.close_all, on_demand=True)
        self.start, self.stop = self._thread.start, self._thread.stop

    def __len__(self) -> int:
        return len(self._streams)

    def add(self, principal: Principal, stamp: int, waiting: WaitingPeriod) -> OpenStream:
        """Register a stream of the running event loop; its key is checked regularly until `remove` is called."""
        stream = OpenStream(principal, stamp, waiting, asyncio.get_running_loop())
        self._streams.add(stream)
        self._thread.demand()
        return stream

    def remove(self, stream: OpenStream) -> None:
        self._streams.discard(stream)

    def look(self, now: datetime | None = None) -> None:
        """End all streams whose key is no longer valid. If keys cannot be read, the database error propagates."""
        streams = [stream for stream in self._streams.copy() if not stream.is_ended]
        if not streams:
            return
        self._thread.demand()
        self._newest.look()
        stamp, now = self._newest.stamp(), now or timezone.now()
        # Query each key once, however many streams it has.
        principals: dict[tuple[str, str], Principal | None] = {}
        for stream in streams:
            key = stream.principal.key, stream.principal.agent
            if stream.stamp != stamp and key not in principals:
                principals[key] = find_principal(*key)
            principal = stream.principal if stream.stamp == stamp else principals[key]
            if principal is None or (principal.ends_at is not None and principal.ends_at <= now):
                stream.end()
            else:
                stream.principal, stream.stamp = principal, stamp


open_streams = owned(lambda: OpenStreams(snapshot.newest()))
