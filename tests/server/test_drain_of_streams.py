"""SIGTERM during fifty streams: each stream completes or ends with an error event, and is logged."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.gateway.serving import Server, served

STREAMS = 50
DRAINING = "server_draining"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_streams_during_a_shutdown_complete_or_end_with_an_error_and_are_logged(tmp_path: Path, workers: str):
    with served(tmp_path, settings={"DRAIN_SECONDS": "2"}, options=["--workers", workers]) as server:
        idle, idle_writer = await asyncio.open_connection("127.0.0.1", server.port)
        idle_writer.write(request(server, "idle", "ok", stream=False))
        assert b'"finish_reason":"stop"' in await idle.readuntil(b'"finish_reason":"stop"')
        steps = ["stall" if number % 2 else "slow_stream:seconds=0.3" for number in range(STREAMS)]
        opened = await asyncio.gather(*(begin(server, f"stream-{number}", step) for number, step in enumerate(steps)))
        server.process.terminate()
        assert (await idle.read()).endswith(b"}")
        with pytest.raises(ConnectionError):
            await connect_until_refused(server.port)
        ends = [last_event(await reader.read()) for reader, _ in opened]
        server.process.wait(timeout=60)
    assert ends[1::2] == [DRAINING] * (STREAMS // 2)
    assert set(ends[::2]) <= {DRAINING, "[DONE]"}
    expected = {f"stream-{number}": {"[DONE]": "ok"}.get(end, end) for number, end in enumerate(ends)}
    assert outcomes(tmp_path) == expected | {"idle": "ok"}


def request(server: Server, name: str, step: str, *, stream: bool) -> bytes:
    """Return a chat request with the id `name` for which the simulated provider performs the fault `step`."""
    body = {"model": f"one/fault:{step}", "messages": [{"role": "user", "content": "hello"}], "stream": stream}
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {server.key}\r\n"
    return f"{head}x-request-id: {name}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


async def begin(server: Server, name: str, step: str) -> Connection:
    """Send a streaming request and read the response up to its first content."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request(server, name, step, stream=True))
    await reader.readuntil(b'"content"')
    return reader, writer


async def connect_until_refused(port: int) -> None:
    """Connect repeatedly until the server refuses a connection, then raise `ConnectionError`."""
    while True:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()


def last_event(stream: bytes) -> str:
    """Assert that the stream ended properly. Return its last event: `[DONE]` or an error code."""
    assert stream.endswith(b"\r\n0\r\n\r\n")
    data = stream.rsplit(b"data: ", 1)[1].split(b"\n", 1)[0].decode()
    return data if data == "[DONE]" else str(json.loads(data)["error"]["code"])


def outcomes(directory: Path) -> dict[str, str]:
    with closing(sqlite3.connect(directory / "logs.sqlite3")) as rows:
        query = "select id, outcome from routing_admin_requestlog where id = 'idle' or id like 'stream-%'"
        return dict(rows.execute(query).fetchall())
