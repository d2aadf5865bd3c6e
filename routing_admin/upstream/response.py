"""An answer whose head is here: its status, its headers, and its body still to be read, whichever client had it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import field
from functools import partial
from typing import Any, cast

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from capabilities.core.values import value_class
from capabilities.core.wire import Fault
from routing_admin.upstream.faults import CLIENT_ERRORS, fault_of

OWN_BODY_FAULTS = frozenset({Fault.BAD_HTTP, Fault.TOO_LARGE})
"""What is told of a body that broke off, where the reason is known."""
READ_AFTER_END = "Connection closed."
"""What the client says, as a bare RuntimeError, to who reads on after the connection was closed within the body."""


class BrokenBodyError(Exception):
    """A body that came to no end of its own; `fault` says whether it broke off, or broke the rules of HTTP."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


@value_class
class UpstreamResponse:
    """The head of an answer; names of headers are found in any case. `read` gives what has come, `b""` at the end.

    `is_read` tells without waiting that the end was reached; False where one has to read to know. `has_come`
    tells that all of the body is here, so that reading it waits for nobody.
    """

    status: int
    headers: Mapping[str, str]
    read: Callable[[], Awaitable[bytes]] = field(repr=False)
    release: Callable[[], Awaitable[None] | None] = field(repr=False)
    is_read: Callable[[], bool] = lambda: False
    has_come: Callable[[], bool] = lambda: False

    async def block(self) -> bytes:
        """What has come of the body, still encoded; empty at its end.

        Raises `BrokenBodyError`, and nothing else for what a provider does.
        """
        try:
            return await self.read()
        except CLIENT_ERRORS as error:
            fault = fault_of(error)
            raise BrokenBodyError(fault if fault in OWN_BODY_FAULTS else Fault.TRUNCATED_BODY) from error
        except RuntimeError as error:
            if str(error) != READ_AFTER_END:
                raise
            raise BrokenBodyError(Fault.BAD_HTTP) from error

    async def close(self) -> None:
        """Give the connection back, or close it when the body is not read to its end."""
        try:
            waiting = self.release()
            if waiting is not None:
                await waiting
        except CLIENT_ERRORS:
            return


def head_of_call(response: aiohttp.ClientResponse) -> UpstreamResponse:
    """The head of an answer to a call."""
    content = response.content
    return UpstreamResponse(
        response.status, response.headers, content.readany, lambda: _let_go(response), content.at_eof
    )


def _let_go(response: aiohttp.ClientResponse) -> None:
    response.release()


def head_of_read(response: httpx.Response) -> UpstreamResponse:
    """The head of an answer to a GET."""
    blocks = aiter(response.stream)  # type: ignore[arg-type]  # the transport's streams are async

    async def read() -> bytes:
        return await anext(blocks, b"")

    return UpstreamResponse(response.status_code, response.headers, read, response.aclose)


def end_with(closed: asyncio.Future[None] | None, content: aiohttp.StreamReader) -> None:
    """Fails what still waits for the body once the connection is closed; None means that it is."""

    def over(_: object) -> None:
        if not content.is_eof() and content.exception() is None:
            content.set_exception(HttpProcessingError(message="the connection was closed within the body"))

    def no_more() -> None:
        if closed is not None:
            closed.remove_done_callback(over)

    if closed is None:
        over(closed)
        return
    closed.remove_done_callback(note_end)  # one for each connection, however many answers it carries
    closed.add_done_callback(note_end)
    closed.add_done_callback(over)
    content.on_eof(no_more)


def note_end(closed: asyncio.Future[None]) -> None:
    """Takes note of how a connection ended, so that nobody has to be told of it."""
    if not closed.cancelled():
        closed.exception()


# Connections to providers as the client makes and keeps them, but for what it forgets, and what it does in vain.

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
