"""An HTTP client that uses little CPU: it keeps connections alive, and parses a response only to find its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator


class Connection(asyncio.Protocol):
    """A keep-alive connection. `ask` sends a request and waits for the end of the response."""

    def __init__(self) -> None:
        self._head: bytes | None = None
        self._missing = -1
        self._tail = b""
        self._rest = bytearray()
        self._done: asyncio.Future[int] | None = None
        self.first_byte = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    async def ask(self, request: bytes) -> int:
        """Send a request. Return the status once the complete response has arrived.

        Raise `ConnectionError` if the response is incomplete.
        """
        if self.transport.is_closing():
            raise ConnectionError("the connection is closed")
        self._head, self._missing, self._tail = None, -1, b""
        self._rest.clear()
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._done

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(ConnectionError("the connection was closed"))

    def data_received(self, data: bytes) -> None:
        if self._head is None:
            self._rest += data
            end = self._rest.find(b"\r\n\r\n")
            if end == -1:
                return
            self.first_byte = time.perf_counter()
            self._head, data = bytes(self._rest[:end]).lower(), bytes(self._rest[end + 4 :])
            if b"content-length:" in self._head:
                self._missing = int(self._head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if self._missing >= 0:
            self._missing -= len(data)
            complete = self._missing <= 0
        else:
            self._tail = (self._tail + data)[-7:]
            complete = self._tail.endswith(b"0\r\n\r\n")
        if complete and self._done is not None and not self._done.done():
            self._done.set_result(int(self._head[9:12]))


async def connect(port: int) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    return connection


def request_bytes(port: int, path: str, body: bytes, key: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\n"
    return f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


async def closed_loop(port: int, request: bytes, in_flight: int, seconds: float) -> list[float]:
    """Send calls from `in_flight` callers, each without a pause. Return the duration of every call in milliseconds."""
    until = time.perf_counter() + seconds
    durations: list[float] = []

    async def caller() -> None:
        connection = await connect(port)
        while (started := time.perf_counter()) < until:
            status = await connection.ask(request)
            if status != 200:
                raise RuntimeError(f"status {status}")
            durations.append((time.perf_counter() - started) * 1000)
        connection.transport.close()

    await asyncio.gather(*(caller() for _ in range(in_flight)))
    return durations


async def fixed_rate(per_second: float, seconds: float) -> AsyncIterator[int]:
    """Yield 0, 1, 2 … at a fixed rate. If a number is already late, yield it immediately."""
    started = time.perf_counter()
    for number in range(int(per_second * seconds)):
        await asyncio.sleep(max(0.0, started + number / per_second - time.perf_counter()))
        yield number


async def open_loop(port: int, request: bytes, per_second: float, seconds: float) -> list[float]:
    """Send calls at a fixed rate without waiting for responses.

    Return the duration of every answered call in milliseconds.
    """
    idle: list[Connection] = []
    durations: list[float] = []

    async def call() -> None:
        # The server closes idle connections, so they cannot be used again.
        while idle and idle[-1].transport.is_closing():
            idle.pop()
        connection = idle.pop() if idle else await connect(port)
        started = time.perf_counter()
        if await connection.ask(request) == 200:
            durations.append((time.perf_counter() - started) * 1000)
        idle.append(connection)

    await asyncio.gather(*[asyncio.ensure_future(call()) async for _ in fixed_rate(per_second, seconds)])
    for connection in idle:
        connection.transport.close()
    return durations
