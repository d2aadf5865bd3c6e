"""Half-open connections to the real server: each is told and closed in time, and whoever calls is answered."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

from routing_admin.server.descriptors import MAX_DESCRIPTORS
from tests.gateway.serving import served

SETTINGS = {"HEAD_SECONDS": "1.5", "BODY_SECONDS": "1.5", "CONNECTIONS_PER_ADDRESS": "100"}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n"
UNFINISHED = (b"", b"POST /v1/ch", HEAD, HEAD + b"\r\n{")
RESET = b"reset"
"""The end of a connection that was closed before what its caller sent was read; the refusal may be lost then."""


async def end_of(reader: asyncio.StreamReader) -> bytes:
    """The status with which a connection ended."""
    try:
        said = await reader.read()
        return said.split(b" ", 2)[1] if said else RESET
    except ConnectionResetError:
        return RESET


async def test_half_open_connections_are_closed_in_time_and_calls_are_answered_meanwhile(tmp_path: Path):
    """160 of them, by the settings' limits: those that are too many make room (503), the others are told 408."""
    with served(tmp_path, settings=SETTINGS) as server:
        opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(160)]
        for at, (_, writer) in enumerate(opened):
            writer.write(UNFINISHED[at % len(UNFINISHED)])
        assert await asyncio.to_thread(server.get, "/v1/models")
        ends = [await end_of(reader) for reader, _ in opened]
        soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, MAX_DESCRIPTORS)
    assert set(ends) <= {b"408", b"503", RESET}
    assert ends.count(b"408") >= 40
