"""Answers handed over in one step: what the caller reads is the same, and who cannot take it so is sent messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from uvicorn.server import ServerState

from routing_admin.platform.server import http_protocol
from routing_admin.platform.server.connections import ConnectionLimits, Connections
from routing_admin.platform.server.cross_origin import share
from routing_admin.platform.server.direct_answers import EXTENSION, block_writer, send_whole, withdraw_direct_answers
from routing_admin.platform.server.http_protocol import Protocol
from tests.server.protocol_server import listen

HEADERS = {"Content-Type": "application/json", "X-Request-ID": "req_1"}
BODY = b'{"hello": 1}'
GET = b"GET /v1/models HTTP/1.1\r\nhost: here\r\n\r\n"
LAST = GET.replace(b"host", b"connection: close\r\nhost")


@dataclass
class Site:
    """An application that answers whole or in blocks, with the extension or without; notes what was written at once."""

    body: bytes = BODY
    headers: dict[str, str] = field(default_factory=lambda: dict(HEADERS))
    offers: bool = True
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    blocks: tuple[bytes, ...] = ()
    direct: list[bool] = field(default_factory=list)
    writes: list[bytes] = field(default_factory=list)
    seen: list[bool] = field(default_factory=list)
    port: int = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.may_answer.wait()
        self.seen.append(EXTENSION in scope.get("extensions", {}))
        offered = scope if self.offers else withdraw_direct_answers(scope)
        if self.blocks:
            await self._stream(block_writer(offered), send)
        else:
            await send_whole(offered, 200, self.headers, self.body, send)

    async def _stream(self, write: Callable[[bytes], bool], send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for block in self.blocks:
            self.direct.append(write(block))
            if not self.direct[-1]:
                await send({"type": "http.response.body", "body": block, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def ask(self, *sent: bytes) -> bytes:
        """All that comes back until the connection is closed, but for the date; each is sent after the last answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        answer = b""
        for each in sent[:-1]:
            writer.write(each)
            answer += await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(len(self.body))
        writer.write(sent[-1])
        answer += await reader.read(-1)
        writer.close()
        return b"\r\n".join(line for line in answer.split(b"\r\n") if not line.startswith(b"date: "))


@asynccontextmanager
async def serve(site: Site, app: Any = None) -> AsyncIterator[Site]:
    """The site behind a real socket, by our protocol."""
    site.may_answer.set()

    class Counted(Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(CountedTransport(transport, site.writes))  # type: ignore[arg-type]

    connections = Connections(ConnectionLimits())
    async with listen(app or site, connections, ServerState(), Counted, access_log=False) as site.port:
        yield site


class CountedTransport:
    """A connection's own transport, whose writes are noted."""

    def __init__(self, transport: Any, writes: list[bytes]) -> None:
        self._transport, self._writes = transport, writes

    def write(self, data: bytes) -> None:
        """Passed on."""
        self._writes.append(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@pytest.mark.parametrize("body", [BODY, b""])
async def test_head_and_body_are_one_write_and_say_what_two_would(body):
    async with serve(Site(body)) as one, serve(Site(body, offers=False)) as two:
        answers = [await each.ask(GET, LAST) for each in (one, two)]
    assert answers[0] == answers[1]
    assert answers[0].startswith(b"HTTP/1.1 200 OK\r\n")
    assert answers[0].count(b"content-type: application/json\r\nx-request-id: req_1\r\n") == 2
    assert (len(one.writes), len(two.writes)) == (1 + 2, 2 + 2)


async def test_a_long_body_is_not_copied_behind_its_head():
    async with serve(Site(bytes(http_protocol.JOINED_BYTES + 1))) as site:
        answer = await site.ask(GET, LAST)
    assert site.writes[1] is site.body
    assert answer.count(b"content-length: %d\r\n" % len(site.body)) == 2


async def test_calls_that_came_together_are_answered_in_turn():
    """What waits behind an answer is not overtaken; the last of them is one write again."""
    async with serve(Site()) as site:
        site.may_answer.clear()
        asking = asyncio.create_task(site.ask(GET * 3 + LAST))
        await asyncio.to_thread(site.may_answer.is_set)
        site.may_answer.set()
        answer = await asking
    assert answer.count(BODY) == answer.count(b"HTTP/1.1 200 OK\r\n") == 4
    assert answer.count(b"connection: close") == 1


@pytest.mark.parametrize(
    "sent",
    [GET.replace(b"1.1", b"1.0"), LAST.replace(b"GET", b"HEAD")],
    ids=["HTTP/1.0", "HEAD"],
)
async def test_who_cannot_be_sent_one_write_is_offered_none(sent):
    async with serve(Site()) as site:
        answer = await site.ask(sent)
    assert site.seen == [False]
    assert b"content-length: 12\r\n" in answer
    assert answer.endswith(b"\r\n\r\n" if sent.startswith(b"HEAD") else BODY)


@pytest.mark.parametrize("value", ["a\r\nset-cookie: b", "a\x00b", "a\x7f"])
async def test_a_header_that_would_end_its_line_is_never_written(value):
    async with serve(Site(headers=HEADERS | {"x-model": value})) as site:
        answer = await site.ask(GET)
    assert answer.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert b"cookie" not in answer
    with pytest.raises(ValueError, match="control character"):
        await send_whole({}, 200, {"x-model": value}, b"", site)  # type: ignore[arg-type]


async def test_answers_that_pages_may_read_are_looked_at_on_their_way():
    site = Site()
    async with serve(site, share(site, ["https://page.example"])):  # type: ignore[arg-type]
        answer = await site.ask(LAST.replace(b"host", b"origin: https://page.example\r\nhost"))
    assert site.seen == [False]
    assert b"access-control-allow-origin: https://page.example\r\n" in answer


async def test_a_caller_who_takes_nothing_is_waited_for():
    """What it still has to take is not added to: the answer comes when there is room."""
    async with serve(Site(bytes(8_000_000))) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(LAST)
        assert len(await reader.readexactly(8_000_000)) == 8_000_000
        assert (await reader.read(-1)).endswith(bytes(8_000_000))
        writer.close()


BLOCKS = (b"data: 1\n\n", b"", b"data: 2\n\n")


async def test_a_block_of_a_stream_is_one_write_and_says_what_a_message_would():
    """An empty one would be the end of the answer: it is left to the server."""
    async with serve(Site(blocks=BLOCKS)) as one, serve(Site(blocks=BLOCKS, offers=False)) as two:
        answers = [await each.ask(LAST) for each in (one, two)]
    assert answers[0] == answers[1]
    assert answers[0].endswith(b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n")
    assert (one.direct, two.direct) == ([True, False, True], [False] * 3)


async def test_a_stream_that_another_call_waits_behind_is_not_written_past_it():
    async with serve(Site(blocks=BLOCKS)) as site:
        answer = await site.ask(GET * 2 + LAST)
    assert site.direct == [False] * 6 + [True, False, True]
    assert answer.count(b"transfer-encoding: chunked") == answer.count(b"9\r\ndata: 2") == 3


async def test_blocks_wait_for_a_caller_who_takes_nothing():
    """Only so much is written ahead; the rest is sent when there is room, and nothing is lost."""
    async with serve(Site(blocks=(bytes(1_000_000),) * 20)) as site:
        answer = await site.ask(LAST)
    assert True in site.direct
    assert False in site.direct
    assert answer.count(b"\0") == 20_000_000
    assert answer.endswith(b"\r\n0\r\n\r\n")
