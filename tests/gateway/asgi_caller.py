"""Call the ASGI application directly, without a server. Its providers are behind real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from capabilities.actors import SYSTEM
from capabilities.models import Provider, Service
from routing_admin.asgi import application
from routing_admin.configuration import snapshot
from routing_admin.console.services.actions import save_service
from routing_admin.upstream import process_upstream
from tests.bench import upstream

PATH = "/v1/chat/completions"
TOKENS, COST = 18, 11 * 10_000 + 7 * 100_000
"""The token usage of each answer, and its cost in nanos.

An answer has 11 input tokens at 10 per million and 7 output tokens at 100 per million, the prices that
`price_plain_provider` sets.
"""
PROVIDER_NAMES = ("plain", "stream", "silent", "stall", "calls", "uncounted")


CALLED: Sequence[dict[str, Any]] = (
    {"reasoning_content": "x" * 400},
    {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "find", "arguments": "y" * 400}}]},
)


class LoopbackProvider(upstream.Provider):
    """The benchmark's stub provider with four more responses, chosen by the first segment of the path.

    `silent` sends nothing. `stall` stops a stream after some text. `calls` stops a stream after 400 characters of
    reasoning and 400 of a tool call's arguments. `uncounted` sends the same and ends the stream without usage. Every
    request sets `requested`, and a lost connection sets `closed`. `unanswered` contains the connections that got no
    response; a test can answer them with `play`.
    """

    requested: asyncio.Event
    closed: asyncio.Event
    unanswered: list[LoopbackProvider]

    def play(self, name: str) -> None:
        self.path = f"/{name}/".encode()
        self.answer()

    def answer(self) -> None:
        self.requested.set()
        name = self.path.split(b"/", 2)[1]
        if name == b"stall":
            for block in upstream.STREAM[:3]:
                self.transport.write(block)
        elif name in (b"calls", b"uncounted"):
            for block in (upstream.STREAM_HEAD, *map(upstream.event, CALLED)):
                self.transport.write(block)
            if name == b"uncounted":
                self.transport.write(upstream.END)
        elif name == b"silent":
            self.unanswered.append(self)
        else:
            super().answer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.closed.set()


@dataclass
class Loopback:
    """Providers on a local socket, served by the running event loop without a task for each connection."""

    listening: socket.socket
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    unanswered: list[LoopbackProvider] = field(default_factory=list)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Loopback]:
        """Serve until the block ends, then close the upstream connections."""

        def protocol() -> LoopbackProvider:
            provider = LoopbackProvider()
            provider.requested, provider.closed, provider.unanswered = self.requested, self.closed, self.unanswered
            return provider

        server = await asyncio.get_running_loop().create_server(protocol, sock=self.listening)
        try:
            yield self
        finally:
            await process_upstream().close()
            server.close()


@contextmanager
def loopback_providers() -> Iterator[Loopback]:
    """Create one provider for each name in `PROVIDER_NAMES`. Needs write access to the database."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for name in PROVIDER_NAMES:
            endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}/{name}/v1/chat/completions"
            Provider.objects.create(
                name=name, endpoint=endpoint, default_model=upstream.NAME, protocol="openai", key_source="none"
            )
        snapshot.refresh()
        yield Loopback(listening)


def price_plain_provider(**price: Any) -> None:
    """Set a dollar price for the provider `plain`. Each of its answers then costs `COST`."""
    provider = Provider.objects.get(name="plain")
    service = Service(service_id="priced", name="Priced", provider=provider, model=provider.default_model)
    service.price = {"currency": "USD", "input": 10, "output": 100, **price}
    save_service(SYSTEM, service)


@dataclass
class Call:
    """One request and the messages that the application sent.

    The body is passed to the application in `pieces`, as by a server.
    """

    pieces: Sequence[bytes]
    headers: Sequence[tuple[bytes, bytes]] = ()
    method: str = "POST"
    path: str = PATH
    query: bytes = b""
    sent: list[Any] = field(default_factory=list)
    received: int = 0
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """A test sets `disconnected` to disconnect the client. The first bytes of the response set `begun`."""

    @property
    def scope(self) -> dict[str, Any]:
        return {
            "type": "http",
            "method": self.method,
            "path": self.path,
            "query_string": self.query,
            "headers": [*self.headers],
            "client": ("127.0.0.1", 5),
        }

    async def receive(self) -> dict[str, Any]:
        """Return the next piece of the body. After the last piece, wait for the disconnect."""
        if self.received < len(self.pieces):
            self.received += 1
            more = self.received < len(self.pieces)
            return {"type": "http.request", "body": self.pieces[self.received - 1], "more_body": more}
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if message.get("body"):
            self.begun.set()

    async def run(self) -> Call:
        await application(self.scope, self.receive, self.send)
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def error_code(self) -> str:
        """Return the error's code, or an empty string for a 200."""
        return str(json.loads(self.answer)["error"]["code"]) if self.status != 200 else ""

    @property
    def answer_headers(self) -> dict[str, str]:
        """Return the response headers. Fail if a header is sent twice."""
        pairs = [(name.decode(), value.decode()) for name, value in self.sent[0]["headers"]]
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    @property
    def answer(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


def chat_call(key: str, provider: str, *more: tuple[bytes, bytes], pieces: int = 1, **body: Any) -> Call:
    messages = [{"role": "user", "content": "hello"}]
    data = json.dumps({"model": f"{provider}/{upstream.NAME}", "messages": messages, **body}).encode()
    length = -(-len(data) // pieces)
    parts = [data[start : start + length] for start in range(0, len(data), length)]
    return Call(parts, headers(key, len(data), more))


def headers(key: str, length: int, more: Iterable[tuple[bytes, bytes]] = ()) -> list[tuple[bytes, bytes]]:
    """Return a client's usual headers. A name in `more` replaces the usual header of that name."""
    default_headers = {
        b"host": b"127.0.0.1",
        b"authorization": f"Bearer {key}".encode(),
        b"content-type": b"application/json",
        b"content-length": str(length).encode(),
    }
    replaced = {name.lower() for name, _ in more}
    return [*((name, value) for name, value in default_headers.items() if name not in replaced), *more]
