"""Compressed responses of providers: complete, in several gzip members, truncated, or with trailing bytes."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncGenerator
from dataclasses import replace

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.wire import Delta, Failure, Fault, Finish, StreamEvent
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream import bodies
from routing_admin.upstream.bodies import (
    MAX_MEMBERS,
    AnswerTooLargeError,
    BadEncodingError,
    CutEncodingError,
    Decompressor,
    LineLengthGuard,
    decompress,
)
from routing_admin.upstream.exchange import PhaseTimer, read_body
from routing_admin.upstream.response import UpstreamResponse
from routing_admin.upstream.streams import Stream, event_batches, wait_for_content
from tests.fallback.network_runs import protocol
from tests.lab.shapes import VENDORS, ReplyText

TIMES = Timeouts(connect=10, first_content=600, between=600, total=600)
PACKED = gzip.compress(b"hello, ") + gzip.compress(b"") + gzip.compress(b"you")


def build_response(blocks: list[bytes], status: int = 200, encoding: str = "gzip") -> UpstreamResponse:
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), 2**20, loop=loop)
    for block in blocks:
        content.feed_data(block)
    content.feed_eof()
    return UpstreamResponse(status, {"content-encoding": encoding}, content, lambda: None)


@pytest.mark.parametrize("size", [1, 7, len(PACKED)])
def test_every_gzip_member_is_read_for_any_block_size(size: int) -> None:
    """Otherwise, all members but the first would be lost silently."""
    decompressor = Decompressor("gzip", 10)
    text = b"".join(decompressor.feed(PACKED[at : at + size]) for at in range(0, len(PACKED), size))
    decompressor.end()
    assert text == b"hello, you"


@pytest.mark.parametrize("encoding", ["", "identity", " Identity "])
def test_unencoded_body_is_unchanged_and_limited(encoding: str) -> None:
    assert decompress(encoding, PACKED, len(PACKED)) == PACKED
    with pytest.raises(AnswerTooLargeError):
        decompress(encoding, PACKED, len(PACKED) - 1)


def test_size_limit_applies_to_the_sum_of_all_gzip_members() -> None:
    with pytest.raises(AnswerTooLargeError):
        decompress("gzip", PACKED, 9)


def test_too_many_empty_gzip_members_are_rejected() -> None:
    """Empty gzip members take time, although they decompress to nothing."""
    assert decompress("gzip", gzip.compress(b"") * MAX_MEMBERS, 9) == b""
    with pytest.raises(BadEncodingError):
        decompress("gzip", gzip.compress(b"") * (MAX_MEMBERS + 1), 9)


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_truncated_or_extended_compressed_body_is_rejected(encoding: str, pack) -> None:
    packed = pack(b"hello")
    for at in range(1, len(packed)):
        with pytest.raises(CutEncodingError):
            decompress(encoding, packed[:at], 9)
    with pytest.raises(BadEncodingError):
        decompress(encoding, packed + b"hello", 9)
    assert decompress(encoding, b"", 9) == b""


@pytest.mark.parametrize("cut", [1, 8])
async def test_response_with_truncated_gzip_is_reported_as_truncated(cut: int) -> None:
    """HTTP reports no error, because the connection is closed properly. An error response's readable part is kept."""
    packed = gzip.compress(b'{"choices": []}')[:-cut]
    body = await read_body(build_response([packed]), TIMES, PhaseTimer(600))
    assert isinstance(body, Failure)
    assert body.fault is Fault.TRUNCATED_BODY
    assert await read_body(build_response([packed], 400), TIMES, PhaseTimer(600)) == b'{"choices": []}'


async def test_response_in_two_gzip_members_is_read_completely() -> None:
    """Some proxies send a response in two gzip members."""
    packed = [gzip.compress(b'{"choices": '), gzip.compress(b"[]}")]
    assert await read_body(build_response(packed), TIMES, PhaseTimer(600)) == b'{"choices": []}'


async def test_stream_with_truncated_gzip_is_reported_as_broken() -> None:
    frames = VENDORS["openai"].frames(ReplyText(text="half of it"), "m")
    packed = gzip.compress(b"".join([*frames.head, *frames.content]))[:-8]
    decoder = protocol("openai").decoder()
    batches = event_batches(build_response([packed]), decoder, TIMES, PhaseTimer(600), lambda failed: failed)
    events = [event async for batch in batches for event in batch]
    assert "".join(event.text for event in events if isinstance(event, Delta)) == "half of it"
    assert isinstance(events[-1], Failure)
    assert events[-1].fault is Fault.STREAM_BROKEN


@pytest.mark.parametrize("blocks", [(b"a",), (b"a", b"b"), (b"\n", b"a"), (b"one\ntwo",)])
def test_stream_line_up_to_the_length_limit_is_accepted_in_any_blocks(
    monkeypatch: pytest.MonkeyPatch, blocks: tuple[bytes, ...]
) -> None:
    monkeypatch.setattr(bodies, "LINE_BYTES", 10)
    guard = LineLengthGuard()
    for block in blocks:
        guard.feed(block)
    guard.feed(b"x" * (10 - len(b"".join(blocks).rpartition(b"\n")[2])))
    with pytest.raises(AnswerTooLargeError):
        guard.feed(b"x")


@pytest.mark.parametrize(
    ("begin", "times", "fault"),
    [
        (b"{", replace(TIMES, first_content=5, between=0.01), Fault.SLOW_BODY),
        (b" " * 1024, replace(TIMES, first_content=5, between=0.01), Fault.SLOW_BODY),
        (b" ", replace(TIMES, first_content=0.01, between=5), Fault.READ_TIMEOUT),
    ],
)
async def test_body_that_stalls_after_its_first_bytes_times_out(begin: bytes, times: Timeouts, fault: Fault) -> None:
    """A little white space counts as a keep-alive, so the time limit for the first content still applies after it."""
    protocol_of_connection = BaseProtocol(loop := asyncio.get_running_loop())
    protocol_of_connection.connection_made(asyncio.Transport())
    content = aiohttp.StreamReader(protocol_of_connection, 2**20, loop=loop)
    content.feed_data(begin)
    body = await read_body(UpstreamResponse(200, {}, content, lambda: None), times, PhaseTimer(600))
    assert isinstance(body, Failure)
    assert body.fault is fault


@pytest.mark.parametrize(
    ("event", "is_accepted"),
    [
        (Delta(reasoning="hm"), True),
        (Delta(thoughts=(ReasoningBlock(ThoughtForm.ENCRYPTED, proof="x"),)), True),
        (Delta(), False),
    ],
)
async def test_response_with_only_reasoning_is_not_empty(event: Delta, is_accepted: bool) -> None:
    async def batches() -> AsyncGenerator[list[StreamEvent], None]:
        yield [event]
        yield [Finish("stop")]

    opened = await wait_for_content(batches())
    assert isinstance(opened, Stream) is is_accepted
    assert is_accepted or (isinstance(opened, Failure) and opened.fault is Fault.EMPTY_CONTENT)
