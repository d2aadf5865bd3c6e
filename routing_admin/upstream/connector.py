"""Connections to providers as the client makes and keeps them, but for what it forgets, and what it does in vain."""

from __future__ import annotations

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
    """A connector that tells by `carried_before` whether a connection is fresh, and gives no other if `fresh_only`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
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


def _carried(connection: aiohttp.connector.Connection) -> bool:
    return cast(ProviderConnection, connection.protocol).carried
