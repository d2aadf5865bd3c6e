"""If a host closes a connection that was kept alive, the next call loses neither its answer nor one of its retries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.providers.origins import OriginPolicy
from capabilities.core.wire import Answer, Failure, Fault, Target
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream import Upstream

HELLO = ChatRequest((Message(Role.USER, (TextPart("hello"),)),))
QUICK = Timeouts(2.0, 2.0, 2.0, 4.0)
BODY = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)


@dataclass
class ImpatientHost:
    """A server that answers `answers` requests per connection. At the next request, it silently closes the connection.

    If `crashes` is set, it closes the connection at every request.
    """

    answers: int
    port: int = 0
    crashes: bool = False
    received: list[int] = field(default_factory=list)
    connections: int = 0
    open: int = 0

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[ImpatientHost]:
        server = await asyncio.start_server(self._converse, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        number = self.connections
        try:
            for _ in range(self.answers):
                await self._read(reader)
                self.received.append(number)
                if self.crashes:
                    return
                writer.write(ANSWER)
            await self._read(reader)
            self.received.append(number)
        except asyncio.IncompleteReadError:
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))


async def call(upstream: Upstream, host: ImpatientHost) -> Answer | Failure:
    target = Target("p", f"http://127.0.0.1:{host.port}/v1", "m", "k")
    return await upstream.call(PROTOCOLS["openai"].encode(HELLO, target, stream=False), PROTOCOLS["openai"], QUICK)


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    client = Upstream(OriginPolicy(everything=True))
    yield client
    await client.close()


async def test_request_on_a_closed_connection_is_retried_on_a_new_connection(upstream: Upstream) -> None:
    async with ImpatientHost(answers=1).serve() as host:
        for _ in range(3):
            assert isinstance(await call(upstream, host), Answer)
    # The connection's number for each received request: a connection answers once, and closes at its second request.
    assert host.received == [1, 1, 2, 2, 3]


async def test_simultaneously_closed_connections_lose_no_response(upstream: Upstream) -> None:
    async with ImpatientHost(answers=1).serve() as host:
        for _ in range(2):
            answers = await asyncio.gather(*(call(upstream, host) for _ in range(20)))
            assert {type(answer) for answer in answers} == {Answer}


async def test_new_connection_closed_without_a_response_is_a_failure(upstream: Upstream) -> None:
    """The host may already have processed the request, so the request is not repeated automatically."""
    async with ImpatientHost(answers=0).serve() as host:
        outcome = await call(upstream, host)
    assert isinstance(outcome, Failure)
    assert outcome.fault is Fault.RESET_BEFORE_HEADERS
    assert host.received == [1]


async def test_request_that_crashes_its_host_is_sent_at_most_twice(upstream: Upstream) -> None:
    """The request may be what made the host crash, so it is repeated only once."""
    async with ImpatientHost(answers=2).serve() as host:
        await asyncio.gather(*(call(upstream, host) for _ in range(20)))
        host.received.clear()
        host.crashes = True
        outcome = await call(upstream, host)
    assert isinstance(outcome, Failure)
    assert outcome.fault is Fault.RESET_BEFORE_HEADERS
    assert len(host.received) == 2


async def test_idle_connections_to_one_host_are_closed_for_connections_to_another(upstream: Upstream) -> None:
    """Connections in use and idle connections share one limit."""
    upstream.limit_connections(10)
    async with ImpatientHost(answers=9).serve() as first, ImpatientHost(answers=9).serve() as second:
        for host in (first, second):
            answers = await asyncio.gather(*(call(upstream, host) for _ in range(8)))
            assert {type(answer) for answer in answers} == {Answer}
        assert (first.connections, second.connections) == (8, 8)
        while first.open > 2:
            await asyncio.sleep(0)
        assert (first.open, second.open) == (2, 8)
        await asyncio.gather(*(call(upstream, first) for _ in range(2)))
        assert (first.connections, first.open, second.open) == (8, 2, 8)
