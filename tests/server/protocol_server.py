"""Serve an ASGI application over sockets with the product's protocol class, in the test's event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from routing_admin.platform.server.connections import ConnectionLimits, Connections
from routing_admin.platform.server.http_protocol import Protocol

GET = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"


@asynccontextmanager
async def listen(
    app: Any, connections: Connections, state: ServerState, protocol: type[Protocol] = Protocol, **options: Any
) -> AsyncIterator[int]:
    """Serve `app` and yield its port. `options` are uvicorn's."""
    config = uvicorn.Config(app, log_config=None, lifespan="off", **options)
    config.load()
    factory = partial(protocol, config, state, {}, connections=connections)
    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@dataclass
class Site:
    """An ASGI application that returns the request body once `may_answer` is set."""

    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    answer: bytes = b""
    reads: bool = True
    port: int = 0
    state: ServerState = field(default_factory=ServerState)
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers = scope["headers"]
        self.called.set()
        await self.may_answer.wait()
        body, more = b"", self.reads
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        body = self.answer or body
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    def end(self) -> None:
        """Shut down all connections, as the server does when it stops."""
        for connection in list(self.state.connections):
            connection.shutdown()

    async def open(self, sent: bytes = b"") -> Caller:
        caller = Caller(*await asyncio.open_connection("127.0.0.1", self.port))
        caller.writer.write(sent)
        return caller


@dataclass
class Caller:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        return int(head[0].split()[1]), headers, await self.reader.readexactly(int(headers["content-length"]))

    async def refusal(self) -> tuple[int, Any]:
        """Read the next response and return its status and JSON. Fail if the server does not close the connection after
        it.
        """
        status, headers, body = await self.answer()
        assert headers["connection"] == "close"
        assert await self.is_closed()
        return status, json.loads(body)

    async def is_closed(self) -> bool:
        """Return whether the connection ends without further data."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True


@asynccontextmanager
async def serve(site: Site, limits: ConnectionLimits, answers: bool = True) -> AsyncIterator[Connections]:
    if answers:
        site.may_answer.set()
    connections = Connections(limits)
    async with listen(site, connections, site.state) as site.port:
        yield connections
