"""Compressed responses from providers: whole, in several gzip members, truncated, or followed by other bytes."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from capabilities.core.wire import Delta, Failure, Fault
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.upstream.bodies import (
    MAX_MEMBERS,
    AnswerTooLargeError,
    BadEncodingError,
    CutEncodingError,
    Decompressor,
    decompress,
)
from routing_admin.upstream.exchange import PhaseTimer, read_body
from routing_admin.upstream.response import UpstreamResponse
from routing_admin.upstream.streams import event_batches
from tests.fallback.network_runs import protocol
from tests.lab.shapes import VENDORS, ReplyText

TIMES = Timeouts(connect=10, first_content=600, between=600, total=600)
PACKED = gzip.compress(b"hello, ") + gzip.compress(b"") + gzip.compress(b"you")


def head_of(blocks: list[bytes], status: int = 200, encoding: str = "gzip") -> UpstreamResponse:
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), 2**20, loop=loop)
    for block in blocks:
        content.feed_data(block)
    content.feed_eof()
    return UpstreamResponse(status, {"content-encoding": encoding}, content, lambda: None)


@pytest.mark.parametrize("size", [1, 7, len(PACKED)])
def test_every_gzip_member_is_read_wherever_the_body_is_cut(size: int) -> None:
    """Reading only the first member would drop the rest without an error."""
    decompressor = Decompressor("gzip", 10)
    text = b"".join(decompressor.feed(PACKED[at : at + size]) for at in range(0, len(PACKED), size))
    decompressor.end()
    assert text == b"hello, you"


def test_size_limit_applies_to_the_sum_of_all_members() -> None:
    with pytest.raises(AnswerTooLargeError):
        decompress("gzip", PACKED, 9)


def test_a_flood_of_empty_members_is_refused() -> None:
    """Empty members decompress to nothing but still take time."""
    assert decompress("gzip", gzip.compress(b"") * MAX_MEMBERS, 9) == b""
    with pytest.raises(BadEncodingError):
        decompress("gzip", gzip.compress(b"") * (MAX_MEMBERS + 1), 9)


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_cut_or_extended_body_is_refused(encoding: str, pack) -> None:
    """A body that is cut at any point is truncated. A body followed by other bytes is invalid."""
    packed = pack(b"hello")
    for at in range(1, len(packed)):
        with pytest.raises(CutEncodingError):
            decompress(encoding, packed[:at], 9)
    with pytest.raises(BadEncodingError):
        decompress(encoding, packed + b"hello", 9)
    assert decompress(encoding, b"", 9) == b""


@pytest.mark.parametrize("cut", [1, 8])
async def test_answer_with_cut_gzip_is_truncated(cut: int) -> None:
    """HTTP reports no error, since the connection ended properly. The partial message of an error response is kept."""
    packed = gzip.compress(b'{"choices": []}')[:-cut]
    body = await read_body(head_of([packed]), TIMES, PhaseTimer(600))
    assert isinstance(body, Failure)
    assert body.fault is Fault.TRUNCATED_BODY
    assert await read_body(head_of([packed], 400), TIMES, PhaseTimer(600)) == b'{"choices": []}'


async def test_an_answer_in_two_members_is_read_whole() -> None:
    """A proxy that compresses in two steps sends two members."""
    packed = [gzip.compress(b'{"choices": '), gzip.compress(b"[]}")]
    assert await read_body(head_of(packed), TIMES, PhaseTimer(600)) == b'{"choices": []}'


async def test_stream_with_cut_gzip_is_broken() -> None:
    """The content so far is delivered, then an error, since the provider's end of the stream is missing."""
    frames = VENDORS["openai"].frames(ReplyText(text="half of it"), "m")
    packed = gzip.compress(b"".join([*frames.head, *frames.content]))[:-8]
    decoder = protocol("openai").decoder()
    batches = event_batches(head_of([packed]), decoder, TIMES, PhaseTimer(600), lambda failed: failed)
    events = [event async for batch in batches for event in batch]
    assert "".join(event.text for event in events if isinstance(event, Delta)) == "half of it"
    assert isinstance(events[-1], Failure)
    assert events[-1].fault is Fault.STREAM_BROKEN
