"""A caller of the ASGI application without a server between, and a provider that is called over a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from capabilities.models import Provider
from routing_admin.asgi import application
from routing_admin.configuration import snapshot
from routing_admin.upstream import process_upstream
from tests.bench import upstream

PATH = "/v1/chat/completions"
WORDS = ("plain", "stream", "silent", "stall", "calls", "uncounted")


CALLED: Sequence[dict[str, Any]] = (
    {"reasoning_content": "x" * 400},
    {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "find", "arguments": "y" * 400}}]},
)


class Held(upstream.Provider):
    """The bench's provider, which also knows `silent`: no answer; and `stall`: a stream that stops after some words.

    `calls` stops after 400 characters of reasoning and 400 of a tool call's arguments, `uncounted` ends there.

    `asked` is set by every request, `closed` when the connection of a request ends before its answer does; `silent` has
    those that do not answer, until a test lets them `play` another word.
    """

    asked: asyncio.Event
    closed: asyncio.Event
    silent: list[Held]

    def play(self, word: str) -> None:
        """Answer as the path of that word would."""
        self.path = f"/{word}/".encode()
        self.answer()

    def answer(self) -> None:
        """What this path answers, or nothing of it."""
        self.asked.set()
        word = self.path.split(b"/", 2)[1]
        if word == b"stall":
            for block in upstream.STREAM[:3]:
                self.transport.write(block)
        elif word in (b"calls", b"uncounted"):
            for block in (upstream.STREAM_HEAD, *map(upstream.event, CALLED)):
                self.transport.write(block)
            if word == b"uncounted":
                self.transport.write(upstream.END)
        elif word == b"silent":
            self.silent.append(self)
        else:
            super().answer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody hung up."""
        super().connection_lost(exc)
        self.closed.set()


@dataclass
class Loopback:
    """Providers that listen at a socket of this machine, on the running loop and without a task of their own."""

    listening: socket.socket
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    silent: list[Held] = field(default_factory=list)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Loopback]:
        """Answers as long as that lasts; then our connections are closed."""

        def protocol() -> Held:
            made = Held()
            made.asked, made.closed, made.silent = self.asked, self.closed, self.silent
            return made

        server = await asyncio.get_running_loop().create_server(protocol, sock=self.listening)
        try:
            yield self
        finally:
            await process_upstream().close()
            server.close()


@contextmanager
def loopback_providers() -> Iterator[Loopback]:
    """A provider for each word, named by it and doing it. Writes rows, which need a test that may."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for word in WORDS:
            endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}/{word}/v1/chat/completions"
            Provider.objects.create(
                name=word, endpoint=endpoint, default_model=upstream.NAME, protocol="openai", key_source="none"
            )
        snapshot.refresh()
        yield Loopback(listening)


@dataclass
class Call:
    """A call as a server hands it over, in `pieces`; and what was sent for it."""

    pieces: Sequence[bytes]
    headers: Sequence[tuple[bytes, bytes]] = ()
    method: str = "POST"
    path: str = PATH
    query: bytes = b""
    sent: list[Any] = field(default_factory=list)
    received: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the caller's leaving, and by the first bytes of an answer."""

    @property
    def scope(self) -> dict[str, Any]:
        """What is known before the body."""
        return {
            "type": "http",
            "method": self.method,
            "path": self.path,
            "query_string": self.query,
            "headers": [*self.headers],
            "client": ("127.0.0.1", 5),
        }

    async def receive(self) -> dict[str, Any]:
        """The next piece of the body; after the last one only the leaving."""
        if self.received < len(self.pieces):
            self.received += 1
            more = self.received < len(self.pieces)
            return {"type": "http.request", "body": self.pieces[self.received - 1], "more_body": more}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Takes a part of the answer."""
        self.sent.append(message)
        if message.get("body"):
            self.begun.set()

    async def run(self) -> Call:
        """The application's work for it, in this task."""
        await application(self.scope, self.receive, self.send)
        return self

    @property
    def status(self) -> int:
        """The answer's."""
        return int(self.sent[0]["status"])

    @property
    def answer_headers(self) -> dict[str, str]:
        """The answer's; none may stand there twice."""
        pairs = [(name.decode(), value.decode()) for name, value in self.sent[0]["headers"]]
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    @property
    def answer(self) -> bytes:
        """The answer's body."""
        return b"".join(message["body"] for message in self.sent[1:])


def chat_call(key: str, provider: str, *more: tuple[bytes, bytes], pieces: int = 1, **body: Any) -> Call:
    """A chat request with that key for the provider of a word, by default in one piece."""
    messages = [{"role": "user", "content": "hello"}]
    data = json.dumps({"model": f"{provider}/{upstream.NAME}", "messages": messages, **body}).encode()
    length = -(-len(data) // pieces)
    parts = [data[at : at + length] for at in range(0, len(data), length)]
    return Call(parts, headers(key, len(data), more))


def headers(key: str, length: int, more: Iterable[tuple[bytes, bytes]] = ()) -> list[tuple[bytes, bytes]]:
    """What a client sends; of a name in `more` nothing but that."""
    usual = {
        b"host": b"127.0.0.1",
        b"authorization": f"Bearer {key}".encode(),
        b"content-type": b"application/json",
        b"content-length": str(length).encode(),
    }
    others = {name.lower() for name, _ in more}
    return [*((name, value) for name, value in usual.items() if name not in others), *more]
