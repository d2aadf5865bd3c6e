"""Connections to providers, and calls over them. aiohttp connects, pools and parses; this module writes request heads.

aiohttp's session would create a request and a response object per call, which costs more than connecting and parsing
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
"""Control characters that no header may contain, because they would end the line or be removed."""
INFORMATION = range(100, 200)
SWITCHING = 101
LENGTH = "content-length"
STALE_CONNECTION_ERRORS = (
    aiohttp.ServerDisconnectedError,
    aiohttp.ClientOSError,
    ConnectionResetError,
    BrokenPipeError,
)
"""Errors that occur if the host has closed a pooled connection before sending any byte of the response."""


class OpenConnections:
    """All connections of one event loop, with or without proxies: at most `max_open`, including idle ones.

    aiohttp's own limit counts only connections in use. Without this class, idle connections to many hosts could use up
    the file descriptors that callers' connections need, and the system would reset those connections.
    """

    def __init__(self, max_open: int) -> None:
        self.max_open = max_open
        self.connecting = 0
        self.open: set[ProviderConnection] = set()
        self.idle: dict[ProviderConnection, None] = {}
        """Open connections that no call uses, longest idle first."""

    def close_idle(self) -> bool:
        """Close the longest idle connections to make room for new ones; return whether any connection was closed."""
        excess = max(0, len(self.open) + self.connecting - self.max_open)
        oldest = list(islice(self.idle, excess))
        for connection in oldest:
            self.forget(connection)
            connection.abort()
        return bool(oldest)

    def take(self, connection: ProviderConnection) -> None:
        self.open.add(connection)
        self.idle.pop(connection, None)

    def forget(self, connection: ProviderConnection) -> None:
        self.open.discard(connection)
        self.idle.pop(connection, None)


class ProviderConnection(ResponseHandler):
    """Connection that knows whether it has been used before, and resumes reading only if reading is paused.

    aiohttp resumes reading after every block that is taken from a body, although reading is hardly ever paused. This
    costs a fifth of a stream's CPU time (aiohttp 3.14, `StreamReader._read_nowait_chunk`).
    """

    carried = False
    is_paused = False

    def __init__(self, connections: OpenConnections, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.connections = connections

    def connection_lost(self, exc: BaseException | None) -> None:
        self.connections.forget(self)
        super().connection_lost(exc)

    def pause_reading(self) -> None:
        self.is_paused = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self.is_paused:
            self.is_paused = False
            super().resume_reading(resume_parser)


class ProviderConnector(aiohttp.TCPConnector):
    """Connector that creates `ProviderConnection`s, and makes room for them by closing idle connections.

    `_factory` and `_create_connection` are private to aiohttp, which has no public way to set the class of connections,
    or to notice that no pooled connection can be reused. tests/upstream/test_kept_connections.py checks both.
    """

    def __init__(self, connections: OpenConnections, **options: Any) -> None:
        super().__init__(**options)
        self.connections = connections
        factory = partial(ProviderConnection, connections, loop=asyncio.get_running_loop())
        self._factory = cast("partial[ResponseHandler]", factory)

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        self.connections.connecting += 1
        try:
            if self.connections.close_idle():
                # Let the event loop close the connections, which happens in its next iteration.
                await asyncio.sleep(0)
            return await super()._create_connection(req, traces, timeout)
        finally:
            self.connections.connecting -= 1


class _Opening(NamedTuple):
    """The head of a request without the body's length, and the aiohttp request that selects the connection."""

    target: aiohttp.ClientRequest
    head: bytes


class Pool:
    """Connections of one event loop through one proxy ("" for no proxy), and the calls over them."""

    def __init__(self, connector: ProviderConnector, proxy: str = "") -> None:
        self._connector = connector
        self._connections = connector.connections
        self._opening = lru_cache(maxsize=1000)(partial(_open_with, URL(proxy) if proxy else None))

    async def send(
        self, request: UpstreamRequest, content: Blocks | RequestBody | None, connect: float
    ) -> UpstreamResponse:
        """Send a request and return the response's head; `connect` is the connect timeout. Raise `CLIENT_ERRORS`.

        A host may close a pooled connection just when it is reused. The request is then sent once more over a fresh
        connection. If the host closes that connection as well, it may already have acted on the request, so the request
        is not sent a third time.
        """
        headers = {**request.headers, "accept-encoding": "identity"}
        opening, timeout = self._opening(request.method, request.url, tuple(headers.items())), _connect_timeout(connect)
        connection, protocol = await self._connect(opening.target, timeout)
        may_repeat = protocol.carried and not isinstance(content, RequestBody)
        try:
            return await self._exchange(connection, protocol, opening.head, content)
        except STALE_CONNECTION_ERRORS:
            if not may_repeat:
                raise
        connection, protocol = await self._connect(opening.target, timeout, fresh=True)
        return await self._exchange(connection, protocol, opening.head, content)

    async def close(self) -> None:
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
            # This connection has also been idle, so the host may have closed it as well.
            connection.close()

    async def _exchange(
        self, connection: Connection, protocol: ProviderConnection, head: bytes, content: Blocks | RequestBody | None
    ) -> UpstreamResponse:
        transport, writing = connection.transport, None

        def give_back() -> None:
            if connection.protocol is None or transport is None:
                return
            # If the host answered before it had read the whole request, close the connection: the rest of the request
            # would precede the next request on it.
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
    if content is None:
        transport.write(head + b"\r\n")
        return None
    if isinstance(content, RequestBody):
        transport.write(b"%bcontent-length: %d\r\n\r\n" % (head, content.length))
        return asyncio.create_task(_write(protocol, content))
    transport.writelines((b"%bcontent-length: %d\r\n\r\n" % (head, sum(map(len, content))), *content))
    return None


async def _write(protocol: ProviderConnection, body: RequestBody) -> None:
    writer = StreamWriter(protocol, asyncio.get_running_loop())
    try:
        async for block in body:
            await writer.write(block)
    except Exception as error:
        # Pass the error to the coroutine that waits for the response, which raises it.
        wrapped = aiohttp.ClientOSError(f"the body was not sent: {error!r}")
        wrapped.__cause__ = error
        protocol.set_exception(wrapped)


def _open_with(proxy: URL | None, method: str, address: str, headers: tuple[tuple[str, str], ...]) -> _Opening:
    loop = asyncio.get_running_loop()
    target = aiohttp.ClientRequest(method, parse_url(address), headers=dict(headers), proxy=proxy, loop=loop)
    request_target, sent_headers = target.url.raw_path_qs, dict(target.headers)
    # With TLS, the connector opens a tunnel through the proxy instead.
    if proxy is not None and not target.is_ssl():
        request_target = str(target.url)
        if proxy.raw_user is not None:
            sent_headers["Proxy-Authorization"] = aiohttp.encode_basic_auth(proxy.user or "", proxy.password or "")
    lines = [f"{method} {request_target} HTTP/1.1"]
    for name, value in sent_headers.items():
        if name.lower() == LENGTH:
            continue
        if CONTROL.search(name) or CONTROL.search(value):
            raise ValueError(f"the header {name!r} holds a control character")
        lines.append(f"{name}: {value}")
    return _Opening(target, "\r\n".join([*lines, ""]).encode())


def parse_url(text: str) -> URL:
    """Return the URL in the form that aiohttp accepts; raise `ValueError` for an invalid URL."""
    if len(text) > MAX_URL:
        raise ValueError("the address is too long")
    return URL(text)


@lru_cache(maxsize=100)
def _connect_timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=seconds)
