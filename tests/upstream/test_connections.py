"""Individual connections to providers: how request heads are written, and which connections are kept alive."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler

from capabilities.core.message import Blob
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.providers.origins import OriginPolicy
from capabilities.core.wire import Failure, Fault, UpstreamRequest
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream import Upstream
from routing_admin.upstream.bodies import RequestBody
from routing_admin.upstream.calls import Pools
from routing_admin.upstream.connections import OpenConnections, Pool, ProviderConnector
from routing_admin.upstream.exchange import PhaseTimer, read_body, send
from routing_admin.upstream.response import UpstreamResponse

QUICK = Timeouts(2.0, 2.0, 2.0, 4.0)
FINE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
TOO_LARGE = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\n{}"
# With such small socket buffers, a large body needs several writes.
SMALL_BUFFER = 32 * 1024
Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Host:
    """A server that records request heads and answers each with `converse`."""

    converse: Converse
    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Host]:
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        server = await asyncio.start_server(self._take, sock=listening)
        self.port = listening.getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                await self.converse(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def respond_with(*blocks: bytes) -> Converse:
    """Return a handler that reads a two-byte body and then writes `blocks`."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.writelines(blocks)

    return converse


@pytest.fixture
async def pools() -> AsyncIterator[Pools]:
    connection_pools = Pools(OriginPolicy(everything=True))
    yield connection_pools
    await connection_pools.close()


async def ask(pools: Pools, host: Host, **headers: str) -> tuple[int, bytes] | Failure:
    """Send the body `{}` and return the response's status and body."""
    request = UpstreamRequest(f"http://127.0.0.1:{host.port}/v1?a=%20b", headers)
    timer = PhaseTimer(QUICK.total)
    try:
        head = await send(request, pools.get(""), QUICK, timer)
        if not isinstance(head, UpstreamResponse):
            return head
        read = await read_body(head, QUICK, timer)
        return read if isinstance(read, Failure) else (head.status, read)
    finally:
        timer.close()


async def test_request_head_equals_the_head_sent_by_an_aiohttp_session(pools: Pools) -> None:
    async with Host(respond_with(FINE)).serve() as host:
        assert await ask(pools, host, authorization="Bearer k", **{"x-name": "ü"}) == (200, b"{}")
        async with aiohttp.ClientSession(auto_decompress=False) as session:
            headers = {"authorization": "Bearer k", "x-name": "ü", "accept-encoding": "identity"}
            url = f"http://127.0.0.1:{host.port}/v1?a=%20b"
            await session.post(url, data=b"{}", headers=headers, skip_auto_headers=["content-type"])
        own_head, aiohttp_head = ({line.lower() for line in head.split(b"\r\n")} for head in host.heads)
        assert own_head == aiohttp_head


async def test_informational_responses_are_skipped(pools: Pools) -> None:
    async with Host(
        respond_with(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n", FINE)
    ).serve() as host:
        assert [await ask(pools, host) for _ in range(2)] == [(200, b"{}")] * 2
        assert host.connections == 1


async def test_body_in_blocks_is_sent_completely() -> None:
    blocks, bodies = (b'{"a":"', b"QQ==" * 200_000, b"", b'"}'), list[bytes]()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append(await reader.readexactly(sum(map(len, blocks))))
        writer.write(FINE)

    async with Host(echo).serve() as host, narrow_pool() as pool:
        for _ in range(2):
            head = await pool.send(UpstreamRequest(f"http://127.0.0.1:{host.port}/", {}), blocks, 2.0)
            assert (head.status, await head.block()) == (200, b"{}")
            head.close()
        assert bodies == [b"".join(blocks)] * 2
        assert [b"content-length: 800008\r\n" in request_head.lower() for request_head in host.heads] == [True, True]


@asynccontextmanager
async def narrow_pool() -> AsyncIterator[Pool]:
    pool = Pool(ProviderConnector(OpenConnections(10), socket_factory=narrow_socket))
    yield pool
    await pool.close()


def narrow_socket(address: tuple[Any, ...]) -> socket.socket:
    """Create a socket with a small send buffer. It fills up as if the peer were slow and distant."""
    client_socket = socket.socket(*address[:3])
    client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
    return client_socket


async def test_connection_with_unsent_data_is_not_reused() -> None:
    """The host would mistake the rest of the data for the beginning of the next request."""
    finished = asyncio.Event()

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(TOO_LARGE)
        await finished.wait()

    async with Host(refuse).serve() as host, narrow_pool() as pool:
        for size in (4_000_000, 2):
            head = await pool.send(UpstreamRequest(f"http://127.0.0.1:{host.port}/", {}), (bytes(size),), 2.0)
            assert (head.status, await head.block()) == (413, b"{}")
            head.close()
        assert (host.connections, len(host.heads)) == (2, 2)
        finished.set()


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def chunks(size: int, count: int) -> list[bytes]:
    """Return `count` chunks of `size` bytes each, followed by the final chunk."""
    return [b"%x\r\n%b\r\n" % (size, bytes(size))] * count + [b"0\r\n\r\n"]


async def test_parser_is_not_called_without_data(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[bytes] = []
    receive = ResponseHandler.data_received

    def note(self: ResponseHandler, data: bytes) -> None:
        received.append(data)
        receive(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", note)
    async with Host(respond_with(CHUNKED, *chunks(10, 200))).serve() as host:
        assert [await ask(pools, host) for _ in range(2)] == [(200, bytes(2000))] * 2
        assert host.connections == 1
    assert all(received)


async def test_paused_body_resumes_when_read(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    paused = asyncio.Event()
    pause = ResponseHandler.pause_reading

    def note(self: ResponseHandler) -> None:
        paused.set()
        pause(self)

    monkeypatch.setattr(ResponseHandler, "pause_reading", note)
    async with Host(respond_with(CHUNKED, *chunks(100_000, 50))).serve() as host:
        timer = PhaseTimer(QUICK.total)
        head = await send(UpstreamRequest(f"http://127.0.0.1:{host.port}/", {}), pools.get(""), QUICK, timer)
        assert isinstance(head, UpstreamResponse)
        await paused.wait()
        assert await read_body(head, QUICK, timer) == bytes(5_000_000)
        timer.close()


@pytest.mark.parametrize("value", ["k\r\nx-more: 1", "k\nx", "k\x00"])
async def test_header_value_with_a_line_break_is_never_sent(pools: Pools, value: str) -> None:
    """For example, a key pasted with a line break cannot inject a header."""
    async with Host(respond_with(FINE)).serve() as host:
        outcome = await ask(pools, host, authorization=f"Bearer {value}")
        assert isinstance(outcome, Failure)
        assert (outcome.fault, host.heads) == (Fault.ORIGIN_REFUSED, [])


async def test_connect_timeout_has_its_own_fault(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        raise TimeoutError

    async with Host(respond_with(FINE)).serve() as host:
        monkeypatch.setattr(aiohttp.TCPConnector, "connect", never)
        outcome = await ask(pools, host)
        assert isinstance(outcome, Failure)
        assert outcome.fault is Fault.CONNECT_TIMEOUT


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_proxy_credentials_are_sent_only_to_the_proxy(scheme: str) -> None:
    """For an HTTP URL, the credentials are in the request to the proxy. For an HTTPS URL, they are in its CONNECT
    request.
    """
    upstream = Upstream(OriginPolicy(everything=True))

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with Host(refuse).serve() as host:
        request = UpstreamRequest(f"{scheme}://llm.example/v1", {"x-name": "1"})
        outcome = await upstream.call(request, PROTOCOLS["openai"], QUICK, f"http://us%40er:pass@127.0.0.1:{host.port}")
        assert isinstance(outcome, Failure)
        [head] = host.heads
    await upstream.close()
    first = {"http": b"POST http://llm.example/v1 HTTP/1.1", "https": b"CONNECT llm.example:443 HTTP/1.1"}[scheme]
    assert head.splitlines()[0] == first
    assert b"\r\nProxy-Authorization: Basic dXNAZXI6cGFzcw==\r\n" in head
    assert (b"x-name" in head) is (scheme == "http")
    assert outcome.fault is {"http": Fault.HTTP_502, "https": Fault.CONNECT_REFUSED}[scheme]


async def test_upload_stops_when_the_provider_rejects_the_request() -> None:
    finished, blocks_read = asyncio.Event(), list[int]()

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(TOO_LARGE)
        await finished.wait()

    def blocks() -> Iterator[bytes]:
        for number in range(100):
            blocks_read.append(number)
            yield bytes(100_000)

    async with Host(refuse).serve() as host, narrow_pool() as pool:
        for _ in range(2):
            body = RequestBody([Blob(10_000_000, blocks)])
            head = await pool.send(UpstreamRequest(f"http://127.0.0.1:{host.port}/", {}), body, 2.0)
            assert (head.status, await head.block()) == (413, b"{}")
            head.close()
        assert (host.connections, len(host.heads)) == (2, 2)
        assert len(blocks_read) < 100
        finished.set()
