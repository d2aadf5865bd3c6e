"""Strict parsing of HTTP requests: ambiguous heads, trailers, chunk extensions, upgrades and pipelining."""

from __future__ import annotations

import asyncio

import pytest
from uvicorn.server import ServerState

from routing_admin.platform.server.connections import ConnectionLimits, Connections
from tests.server.protocol_server import GET, Site, listen, serve

CHUNKED = b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n"
H = b" / HTTP/1.1\r\nhost: here\r\n"

REFUSED = {
    b"GET / HTTP/1.1\r\n\r\n": (400, "bad_host"),
    b"GET" + H + b"host: there\r\n\r\n": (400, "bad_host"),
    b"GET / HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n": (400, "bad_host"),
    b"GET /\r\n\r\n": (505, "http_version_not_supported"),
    b"GET / HTTP/2.0\r\nhost: here\r\n\r\n": (505, "http_version_not_supported"),
    b"POST" + H + b"transfer-encoding: gzip, chunked\r\n\r\n": (501, "unsupported_transfer_encoding"),
    b"POST" + H + b"transfer-encoding: identity\r\n\r\n": (501, "unsupported_transfer_encoding"),
    b"POST" + H + b"transfer-encoding: xchunked\r\n\r\n": (501, "unsupported_transfer_encoding"),
    b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n": (400, "ambiguous_length"),
    b"POST" + H + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n": (400, "bad_request"),
    b"POST" + H + b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n": (400, "bad_request"),
    b"POST" + H + b"content-length: 3\r\ncontent-length: 3\r\n\r\n": (400, "bad_request"),
    b"CONNECT here:443 HTTP/1.1\r\nhost: here\r\n\r\n": (501, "method_not_implemented"),
    b"GET" + H + b"x: a\r\n b\r\n\r\n": (400, "bad_request"),
    b"GET" + H + b"x: a\0b\r\n\r\n": (400, "bad_request"),
    b"GET / HTTP/1.1\nhost: here\n\n": (400, "bad_request"),
    b"GET" + H + b"x: \r\n" * 256 + b"\r\n": (431, "head_too_large"),
    b"GET" + H + b"x: " + b"x" * 65_536 + b"\r\n\r\n": (431, "head_too_large"),
    b"GET /" + b"x" * 65_536 + b" HTTP/1.1\r\nhost: here\r\n\r\n": (431, "head_too_large"),
}


@pytest.mark.parametrize("sent", REFUSED, ids=range(len(REFUSED)))
async def test_ambiguous_head_is_rejected(sent):
    async with serve(site := Site(), ConnectionLimits()):
        status, body = await (await site.open(sent)).refusal()
    assert ((status, body["error"]), site.called.is_set()) == (REFUSED[sent], False)


async def test_rejected_head_has_the_error_format_of_its_path():
    """Under /v1, the error has OpenAI's format."""
    async with serve(site := Site(), ConnectionLimits()):
        _, body = await (await site.open(b"GET /v1/models HTTP/1.1\r\n\r\n")).refusal()
    assert body["error"]["code"] == "bad_host"


async def test_trailers_are_not_added_to_the_headers():
    async with serve(site := Site(), ConnectionLimits(), answers=False):
        trailers = b"0\r\nx-forwarded-for: 203.0.113.1\r\nauthorization: Bearer x\r\n\r\n"
        caller = await site.open(CHUNKED + b"3\r\nabc\r\n" + trailers)
        site.may_answer.set()
        assert (await caller.answer())[2] == b"abc"
    assert [name for name, _ in site.headers] == [b"host", b"transfer-encoding"]


@pytest.mark.parametrize(
    "endless", [b"0\r\n" + b"x-trailer: y\r\n" * 100, b"3" + b";name=value" * 100], ids=["trailers", "extensions"]
)
async def test_trailers_and_chunk_extensions_above_the_size_limit_return_431(endless):
    async with serve(site := Site(), ConnectionLimits(head_bytes=1000)):
        caller = await site.open(CHUNKED)
        await site.called.wait()
        caller.writer.write(endless)
        status, body = await caller.refusal()
    assert (status, body["error"]) == (431, "head_too_large")


async def test_body_in_small_chunks_is_accepted():
    """Small chunks are accepted, although their framing is about as large as the body."""
    async with serve(site := Site(), ConnectionLimits(head_bytes=1000)):
        caller = await site.open(CHUNKED)
        await site.called.wait()
        for _ in range(100):
            caller.writer.write(b"a\r\n0123456789\r\n" * 100)
            await caller.writer.drain()
        caller.writer.write(b"0\r\n\r\n")
        assert (await caller.answer())[2] == b"0123456789" * 10_000


async def test_upgrade_request_is_answered_like_an_ordinary_request():
    """Java's HTTP client always sends an upgrade request."""
    async with serve(site := Site(), ConnectionLimits()):
        upgrade = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AA\r\n"
        caller = await site.open(b"POST" + H + upgrade + b"content-length: 3\r\n\r\nabc" + GET)
        assert [(await caller.answer())[::2] for _ in range(2)] == [(200, b"abc"), (200, b"")]


async def test_http_1_0_client_gets_no_interim_response():
    """An HTTP/1.0 client would mistake `100 Continue` for the response."""
    async with serve(site := Site(), ConnectionLimits()):
        caller = await site.open(b"POST / HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\nabc")
        assert (await caller.answer())[::2] == (200, b"abc")


@pytest.mark.parametrize("second", [b"\0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", GET * 50], ids=["none", "host", "many"])
async def test_invalid_pipelined_request_gets_no_error(second):
    """The client could mistake the error for part of the previous response."""
    async with serve(site := Site(), ConnectionLimits(), answers=False):
        caller = await site.open(GET + second)
        await site.called.wait()
        site.may_answer.set()
        # The request in progress and 32 pipelined ones (`MAX_PIPELINED`) are accepted.
        accepted = 33 if second == GET * 50 else 1
        answers = [await caller.answer() for _ in range(accepted)]
        assert {status for status, _, _ in answers} == {200}
        assert answers[-1][1]["connection"] == "close"
        assert await caller.is_closed()


async def test_client_disconnect_is_reported_to_the_running_request():
    ended = asyncio.Event()

    async def wait_for_disconnect(scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    async with listen(wait_for_disconnect, Connections(ConnectionLimits()), ServerState()) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET + GET)
        await writer.drain()
        writer.close()
        async with asyncio.timeout(5):
            await ended.wait()
