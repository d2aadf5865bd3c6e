"""Connections to providers, and a call over one: aiohttp connects, keeps and parses, the head is written here.

Its session makes a request and a response for every call, which costs more than connecting and parsing do
(docs/decisions/0022).
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage, StreamWriter
from yarl import URL

from capabilities.core.wire import UpstreamRequest
from routing_admin.upstream.bodies import Blocks, RequestBody
from routing_admin.upstream.response import UpstreamResponse, end_with

MAX_URL = 65_536
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""What no header holds: it would end the line, or be cut off."""
INFORMATION = range(100, 200)
SWITCHING = 101
LENGTH = "content-length"
LEFT_IDLE = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError, BrokenPipeError)
"""What a call ends with on a connection that its host had closed, before any byte of an answer."""


class OpenConnections:
    """The connections of one event loop, whichever proxy they go through: at most `max_open`, idle ones included.

    The client's own limit counts those in use only: idle ones of many hosts would take the descriptors that callers
    need, who are then reset without a word.
    """

    def __init__(self, max_open: int) -> None:
        self.max_open = max_open
        self.connecting = 0
        self.open: set[ProviderConnection] = set()
        self.idle: dict[ProviderConnection, None] = {}
        """Those of `open` that serve no call, idle for longest first."""

    def close_idle(self) -> bool:
        """Close those idle for longest until there is room for the ones being made; return whether any was."""
        excess = max(0, len(self.open) + self.connecting - self.max_open)
        oldest = list(islice(self.idle, excess))
        for each in oldest:
            self.forget(each)
            each.abort()
        return bool(oldest)

    def take(self, one: ProviderConnection) -> None:
        """It serves a call."""
        self.open.add(one)
        self.idle.pop(one, None)

    def forget(self, one: ProviderConnection) -> None:
        """It is closed."""
        self.open.discard(one)
        self.idle.pop(one, None)


class ProviderConnection(ResponseHandler):
    """One connection, which knows whether it has carried an answer (`carried`), and resumes only what was paused.

    The client resumes reading for every block of a body that is taken, though it hardly ever was paused: a fifth of
    what a stream costs (aiohttp 3.14, `StreamReader._read_nowait_chunk`).
    """

    carried = False
    held = False

    def __init__(self, connections: OpenConnections, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.connections = connections

    def connection_lost(self, exc: BaseException | None) -> None:
        self.connections.forget(self)
        super().connection_lost(exc)

    def pause_reading(self) -> None:
        self.held = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self.held:
            self.held = False
            super().resume_reading(resume_parser)


class ProviderConnector(aiohttp.TCPConnector):
    """A connector whose connections are `ProviderConnection`s, each made where there is room for it.

    `_factory` and `_create_connection` are the client's private names: it offers no other way to make connections of a
    class of ours, nor to learn that none of those kept will serve. tests/upstream/test_kept_connections.py needs both.
    """

    def __init__(self, connections: OpenConnections, **options: Any) -> None:
        super().__init__(**options)
        self.connections = connections
        made = partial(ProviderConnection, connections, loop=asyncio.get_running_loop())
        self._factory = cast("partial[ResponseHandler]", made)

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        self.connections.connecting += 1
        try:
            if self.connections.close_idle():
                await asyncio.sleep(0)  # the loop closes them in its next round
            return await super()._create_connection(req, traces, timeout)
        finally:
            self.connections.connecting -= 1


class _Opening(NamedTuple):
    """What a call to an address begins with, up to its length; `target` says to the connector where it leads."""

    target: aiohttp.ClientRequest
    head: bytes


class Pool:
    """Connections of one event loop through one proxy, empty for none, and the calls over them."""

    def __init__(self, connector: ProviderConnector, proxy: str = "") -> None:
        self._connector = connector
        self._connections = connector.connections
        self._opening = lru_cache(maxsize=1000)(partial(_open_with, URL(proxy) if proxy else None))

    async def send(
        self, request: UpstreamRequest, content: Blocks | RequestBody | None, connect: float
    ) -> UpstreamResponse:
        """The head of the answer; `connect` is how many seconds connecting may take. Raises `CLIENT_ERRORS`.

        A host may close a connection that was kept at the very moment at which it is used again, and answers nothing:
        the request goes out once more, by a fresh one. There the same silence is the host's fault: whether it read the
        request is not known, so nothing is sent a third time.
        """
        headers = {**request.headers, "accept-encoding": "identity"}
        opening, timeout = self._opening(request.method, request.url, tuple(headers.items())), _within(connect)
        connection, protocol = await self._connect(opening.target, timeout)
        may_repeat = protocol.carried and not isinstance(content, RequestBody)
        try:
            return await self._exchange(connection, protocol, opening.head, content)
        except LEFT_IDLE:
            if not may_repeat:
                raise
        connection, protocol = await self._connect(opening.target, timeout, fresh=True)
        return await self._exchange(connection, protocol, opening.head, content)

    async def close(self) -> None:
        """Close the connections."""
        await self._connector.close()

    async def _connect(
        self, target: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout, *, fresh: bool = False
    ) -> tuple[Connection, ProviderConnection]:
        while True:
            try:
                connection = await self._connector.connect(target, [], timeout)
            except TimeoutError as error:
                raise aiohttp.ConnectionTimeoutError(f"no connection to {target.url.host}") from error
            protocol = cast(ProviderConnection, connection.protocol)
            self._connections.take(protocol)
            if not (fresh and protocol.carried):
                return connection, protocol
            connection.close()  # kept as long as the one that was closed, and as likely closed itself

    async def _exchange(
        self, connection: Connection, protocol: ProviderConnection, head: bytes, content: Blocks | RequestBody | None
    ) -> UpstreamResponse:
        transport, writing = connection.transport, None

        def give_back() -> None:
            """The connection, for the next call; one that still has to send what was not asked for is closed."""
            if connection.protocol is None or transport is None:
                return
            if (writing is not None and not writing.done()) or transport.get_write_buffer_size():
                close()
                return
            connection.release()
            if protocol.is_connected():
                self._connections.idle[protocol] = None

        def close() -> None:
            if writing is not None:
                writing.cancel()
            connection.close()

        try:
            protocol.carried = True
            if transport is None or transport.is_closing():
                raise aiohttp.ClientConnectionResetError("the connection was closed before it was written to")
            protocol.set_response_params(read_until_eof=True, auto_decompress=False)
            writing = _begin(transport, protocol, head, content)
            message: RawResponseMessage
            message, payload = await protocol.read()
            while message.code in INFORMATION and message.code != SWITCHING:
                message, payload = await protocol.read()
        except BaseException:
            close()
            raise
        if not payload.is_eof():
            end_with(protocol.closed, payload)
        payload.on_eof(give_back)
        return UpstreamResponse(message.code, message.headers, payload, give_back)


def _begin(
    transport: asyncio.Transport, protocol: ProviderConnection, head: bytes, content: Blocks | RequestBody | None
) -> asyncio.Task[None] | None:
    """Write a request, or what is here of it; return the task that writes the rest."""
    if content is None:
        transport.write(head + b"\r\n")
        return None
    if isinstance(content, RequestBody):
        transport.write(b"%bcontent-length: %d\r\n\r\n" % (head, content.length))
        return asyncio.create_task(_write(protocol, content))
    transport.writelines((b"%bcontent-length: %d\r\n\r\n" % (head, sum(map(len, content))), *content))
    return None


async def _write(protocol: ProviderConnection, body: RequestBody) -> None:
    """Write a body as it is read; what goes wrong is for the one that waits for the answer."""
    writer = StreamWriter(protocol, asyncio.get_running_loop())
    try:
        async for block in body:
            await writer.write(block)
    except Exception as error:
        wrapped = aiohttp.ClientOSError(f"the body was not sent: {error!r}")
        wrapped.__cause__ = error
        protocol.set_exception(wrapped)


def _open_with(proxy: URL | None, method: str, address: str, headers: tuple[tuple[str, str], ...]) -> _Opening:
    """Raises `ValueError` for an address or a header that cannot be written."""
    loop = asyncio.get_running_loop()
    target = aiohttp.ClientRequest(method, url_of(address), headers=dict(headers), proxy=proxy, loop=loop)
    place, found = target.url.raw_path_qs, dict(target.headers)
    if proxy is not None and not target.is_ssl():  # else the connector opens a tunnel
        place = str(target.url)
        if proxy.raw_user is not None:
            found["Proxy-Authorization"] = aiohttp.encode_basic_auth(proxy.user or "", proxy.password or "")
    lines = [f"{method} {place} HTTP/1.1"]
    for name, value in found.items():
        if name.lower() == LENGTH:
            continue
        if CONTROL.search(name) or CONTROL.search(value):
            raise ValueError(f"the header {name!r} holds a control character")
        lines.append(f"{name}: {value}")
    return _Opening(target, "\r\n".join([*lines, ""]).encode())


def url_of(text: str) -> URL:
    """The address as the client takes it. Raises `ValueError` for one that is none."""
    if len(text) > MAX_URL:
        raise ValueError("the address is too long")
    return URL(text)


@lru_cache(maxsize=100)
def _within(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=seconds)
