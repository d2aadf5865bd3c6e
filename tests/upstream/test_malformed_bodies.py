"""If a body violates HTTP after a valid head, the fault is reported as soon as the violation arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError

from capabilities.core.providers.origins import OriginPolicy
from capabilities.core.wire import Answer, Delta, Failure, Fault, StreamEvent, Target, UpstreamRequest
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream import Stream, Upstream
from routing_admin.upstream.calls import Pools
from routing_admin.upstream.connections import Pool
from routing_admin.upstream.exchange import PhaseTimer, read_body, send
from routing_admin.upstream.response import UpstreamResponse, end_with
from tests.fallback.network_runs import HELLO, protocol
from tests.lab.malformed import CHUNKS
from tests.lab.scenarios import dump
from tests.lab.shapes import VENDORS, ReplyText
from tests.lab.wire import read_request

# No call reaches these timeouts. If the code waited for the rest of an invalid body, the tests would hang.
PATIENT = Timeouts(connect=10, first_content=600, between=600, total=600)
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@asynccontextmanager
async def serving_parts(*parts: bytes, go_on: asyncio.Event, close: bool = False) -> AsyncIterator[str]:
    """Send the first part at once and the others after `go_on`. Then close the connection if `close` is true."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(parts[0])
        await go_on.wait()
        writer.write(b"".join(parts[1:]))
        if close:
            writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    server.close()


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    connection_pools = Pools(OriginPolicy(everything=True))
    yield connection_pools.get("")
    await connection_pools.close()


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    client = Upstream(OriginPolicy(everything=True))
    yield client
    await client.close()


def request_to(url: str, *, stream: bool = False) -> UpstreamRequest:
    return protocol("openai").encode(HELLO, Target("lab", url, "m"), stream=stream)


@pytest.mark.parametrize("broken", [data for _meaning, data in CHUNKS.values()], ids=CHUNKS)
async def test_body_with_invalid_framing_fails_immediately(pool: Pool, broken: bytes) -> None:
    go_on = asyncio.Event()
    first = CHUNKED % b"application/json" + chunk(b'{"choices"')
    async with serving_parts(first, broken, go_on=go_on) as url:
        head = await send(request_to(url), pool, PATIENT, timer := PhaseTimer(PATIENT.total))
        assert isinstance(head, UpstreamResponse)
        go_on.set()
        body = await read_body(head, PATIENT, timer)
    assert isinstance(body, Failure)
    assert (body.fault, body.status) == (Fault.BAD_HTTP, 200)


@pytest.mark.parametrize("broken", [data for _meaning, data in CHUNKS.values()], ids=CHUNKS)
async def test_stream_with_invalid_framing_fails_immediately(upstream: Upstream, broken: bytes) -> None:
    go_on, events = asyncio.Event(), list[StreamEvent]()
    frames = VENDORS["openai"].frames(ReplyText(text="half of it"), "m")
    first = CHUNKED % b"text/event-stream" + b"".join(map(chunk, [*frames.head, *frames.content]))
    async with serving_parts(first, broken, go_on=go_on) as url:
        opened = await upstream.open(request_to(url, stream=True), protocol("openai"), PATIENT)
        assert isinstance(opened, Stream)
        async for batch in opened:
            events += batch
            go_on.set()
    assert "".join(event.text for event in events if isinstance(event, Delta))
    assert isinstance(events[-1], Failure)
    assert (events[-1].fault, events[-1].code) == (Fault.STREAM_BROKEN, Fault.BAD_HTTP.value)


@pytest.mark.parametrize("rest", [b"9\r\n{}", b""], ids=["within a chunk", "between chunks"])
async def test_body_cut_by_a_closed_connection_is_reported_as_truncated(pool: Pool, rest: bytes) -> None:
    go_on = asyncio.Event()
    async with serving_parts(CHUNKED % b"application/json" + chunk(b"{"), rest, go_on=go_on, close=True) as url:
        head = await send(request_to(url), pool, PATIENT, timer := PhaseTimer(PATIENT.total))
        assert isinstance(head, UpstreamResponse)
        go_on.set()
        body = await read_body(head, PATIENT, timer)
    assert isinstance(body, Failure)
    assert body.fault is Fault.TRUNCATED_BODY


async def test_error_status_determines_the_fault_despite_a_broken_body(upstream: Upstream) -> None:
    go_on = asyncio.Event()
    go_on.set()
    first = (CHUNKED % b"application/json").replace(b"200 OK", b"503 Busy")
    async with serving_parts(first, chunk(b"too busy"), go_on=go_on, close=True) as url:
        outcome = await upstream.call(request_to(url), protocol("openai"), PATIENT)
    assert isinstance(outcome, Failure)
    assert (outcome.fault, outcome.status) == (Fault.HTTP_503, 503)


class CountedEnd(asyncio.Future[None]):
    """The future that represents the end of a connection. It records the callbacks that are added to it."""

    def __init__(self) -> None:
        super().__init__()
        self.watchers: list[object] = []

    def add_done_callback(self, fn, /, *, context=None):
        self.watchers.append(fn)
        super().add_done_callback(fn, context=context)

    def remove_done_callback(self, fn, /):
        self.watchers = [watcher for watcher in self.watchers if watcher != fn]
        return super().remove_done_callback(fn)


async def test_connection_has_one_close_callback_for_all_its_responses() -> None:
    loop = asyncio.get_running_loop()
    closed = CountedEnd()
    read = [aiohttp.StreamReader(BaseProtocol(loop), 1024, loop=loop) for _ in range(5)]
    for content in read:
        end_with(closed, content)
        content.feed_eof()
    assert len(closed.watchers) == 1
    waiting = aiohttp.StreamReader(BaseProtocol(loop), 1024, loop=loop)
    end_with(closed, waiting)
    closed.set_exception(ConnectionResetError())
    await asyncio.sleep(0)
    assert [type(content.exception()) for content in (*read, waiting)] == [*[type(None)] * 5, HttpProcessingError]


async def test_body_of_a_closed_connection_fails_immediately() -> None:
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), 1024, loop=loop)
    end_with(None, content)
    with pytest.raises(HttpProcessingError):
        await content.read(1)


@pytest.mark.parametrize("reason", [b"\xd5\xfd\xb3\xa3", b"\xff", b""], ids=["GBK", "no text", "none"])
async def test_reason_phrase_may_be_any_bytes(upstream: Upstream, reason: bytes) -> None:
    """The reason phrase is ignored, so it may be Chinese text in GBK."""
    go_on = asyncio.Event()
    go_on.set()
    body = dump(VENDORS["openai"].plain(ReplyText(text="hi"), "m"))
    head = b"HTTP/1.1 200 %s\r\ncontent-length: %d\r\n\r\n" % (reason, len(body))
    async with serving_parts(head, body, go_on=go_on) as url:
        assert isinstance(await upstream.call(request_to(url), protocol("openai"), PATIENT), Answer)
