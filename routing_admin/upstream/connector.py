"""Connections to providers as the client makes and keeps them, but for what it forgets, and what it does in vain."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler

carried_before: ContextVar[bool] = ContextVar("carried_before", default=False)
"""Whether the connection that this task got last had carried an answer before."""
fresh_only: ContextVar[bool] = ContextVar("fresh_only", default=False)
"""Whether this task wants a connection that has carried nothing yet."""


class ProviderConnection(ResponseHandler):
    """One connection, which knows whether it has carried an answer (`carried`), and resumes only what was paused.

    The client resumes reading for every block of a body that is taken, though it hardly ever was paused: a fifth of
    what a stream costs (aiohttp 3.14, `StreamReader._read_nowait_chunk`).
    """

    carried = False

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Goes on reading where that was paused."""
        if self._reading_paused:
            super().resume_reading(resume_parser)


class RememberingConnector(aiohttp.TCPConnector):
    """A connector that tells by `carried_before` whether a connection is fresh, and gives no other if `fresh_only`.

    With its siblings, itself among them, it has at most `max_open` connections. The client's own limit counts those in
    use only: idle ones of many hosts would take the descriptors that callers need, who are then reset without a word.
    """

    def __init__(self, max_open: int, siblings: list[RememberingConnector], **options: Any) -> None:
        super().__init__(**options)
        self._max_open, self._siblings = max_open, siblings
        siblings.append(self)
        self._factory = cast("partial[ResponseHandler]", partial(ProviderConnection, loop=self._loop))

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        """A connection, kept or fresh. Raises what connecting raises."""
        carried_before.set(False)
        connection = await super().connect(req, traces, timeout)
        while fresh_only.get() and _carried(connection):
            connection.close()  # kept as long as the one that was closed, and as likely closed itself
            connection = await super().connect(req, traces, timeout)
        protocol = cast(ProviderConnection, connection.protocol)
        carried_before.set(protocol.carried)
        protocol.carried = True
        return connection

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        if self._close_idle():
            await asyncio.sleep(0)  # the loop closes them in its next round
        return await super()._create_connection(req, traces, timeout)

    def _close_idle(self) -> int:
        """Close those idle for longest until there is room for the one being made; return how many."""
        excess = sum(each._count_open() for each in self._siblings) - self._max_open
        closed = 0
        while closed < excess and any(each._conns for each in self._siblings):
            oldest = [(kept[0][1], each, key) for each in self._siblings for key, kept in each._conns.items()]
            _, owner, key = min(oldest, key=lambda found: found[0])
            owner._conns[key].popleft()[0].abort()
            if not owner._conns[key]:
                del owner._conns[key]
            closed += 1
        return closed

    def _count_open(self) -> int:
        return len(self._acquired) + sum(map(len, self._conns.values()))


def _carried(connection: aiohttp.connector.Connection) -> bool:
    return cast(ProviderConnection, connection.protocol).carried
