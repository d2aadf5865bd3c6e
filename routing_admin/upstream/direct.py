"""A call over a connection of the pool itself: its head written once for an address, its answer read by the parser.

The client's session makes a request and a response for every call, which together cost more than the connection and
the parser do (docs/decisions/0009). What a call needs of them is here; connecting, keeping connections and reading
HTTP stay the client's.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import aiohttp
from aiohttp.http import RawResponseMessage
from yarl import URL

from routing_admin.upstream.bodies import Blocks
from routing_admin.upstream.response import UpstreamResponse, end_with

CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""What no header holds: it would end the line, or be cut off."""
INFORMATION = range(100, 200)
SWITCHING = 101
LENGTH = "content-length"
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Opening:
    """What a call to an address begins with, up to its length; `target` says to the connector where it leads."""

    target: aiohttp.ClientRequest
    head: bytes


class DirectCalls:
    """Calls over the connections of one connector, on its event loop and through no proxy."""

    def __init__(self, connector: aiohttp.BaseConnector) -> None:
        self._connector = connector
        self._opening = lru_cache(maxsize=1000)(_open_with)

    async def send(
        self, method: str, url: URL, content: Blocks, headers: Mapping[str, str], timeout: aiohttp.ClientTimeout
    ) -> UpstreamResponse:
        """The head of the answer. Raises `CLIENT_ERRORS`, `ConnectionTimeoutError` among them."""
        opening = self._opening(method, url, tuple(headers.items()))
        try:
            connection = await self._connector.connect(opening.target, [], timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"no connection to {url.host}") from error
        try:
            return await _exchange(connection, opening.head, content)
        except BaseException:
            connection.close()
            raise


def _open_with(method: str, url: URL, headers: Headers) -> _Opening:
    """Raises `ValueError` for a header that cannot be written."""
    target = aiohttp.ClientRequest(method, url, headers=dict(headers), loop=asyncio.get_running_loop())
    lines = [f"{method} {target.url.raw_path_qs} HTTP/1.1"]
    for name, value in target.headers.items():
        if name.lower() == LENGTH:
            continue
        if CONTROL.search(name) or CONTROL.search(value):
            raise ValueError(f"the header {name!r} holds a control character")
        lines.append(f"{name}: {value}")
    return _Opening(target, "\r\n".join([*lines, f"{LENGTH}: "]).encode())


async def _exchange(connection: aiohttp.connector.Connection, head: bytes, content: Blocks) -> UpstreamResponse:
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ClientConnectionResetError("the connection was closed before it was written to")
    protocol.set_response_params(read_until_eof=True, auto_decompress=False)
    transport.writelines((b"%b%d\r\n\r\n" % (head, sum(map(len, content))), *content))
    message: RawResponseMessage
    message, payload = await protocol.read()
    while message.code in INFORMATION and message.code != SWITCHING:
        message, payload = await protocol.read()

    def give_back() -> None:
        """The connection, for the next call; one that still has to send what was not asked for is closed."""
        if transport.get_write_buffer_size():
            connection.close()
        else:
            connection.release()

    if not payload.is_eof():
        end_with(protocol.closed, payload)
    payload.on_eof(give_back)
    return UpstreamResponse(message.code, message.headers, payload.readany, give_back, payload.at_eof, payload.is_eof)
