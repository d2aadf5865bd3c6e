"""The lab's side of a connection: HTTP/1.1 is written by hand, so that any part of it can be invalid."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

TLS_GREETING = b"\x16"
"""The first byte of a TLS handshake. No HTTP method begins with it."""

NAMED = frozenset(HTTPStatus)
"""The HTTP statuses that have a standard reason phrase."""


class Watched(asyncio.StreamReaderProtocol):
    """Records when the client disconnects, even while nothing is being read from the connection."""

    closed_at: float | None = None

    def note(self) -> None:
        """Record when the client disconnected. Calling this again changes nothing."""
        if self.closed_at is None:
            self.closed_at = time.monotonic()
            self.disconnected.set()

    def connection_made(self, transport: Any) -> None:
        self.disconnected = asyncio.Event()
        super().connection_made(transport)

    def eof_received(self) -> bool | None:
        self.note()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.note()
        super().connection_lost(exc)


class Connection:
    """A connection whose request has been read. Each method does one thing that the client can observe."""

    def __init__(self, writer: asyncio.StreamWriter, watched: Watched) -> None:
        self.writer, self.watched = writer, watched
        self.sent = 0
        self.keep = True
        self.started = False
        self.on_start: Callable[[], None] = lambda: None

    @property
    def gone(self) -> bool:
        return self.watched.disconnected.is_set()

    def gone_away(self) -> None:
        """Treat a failed write as a disconnect by the client."""
        self.watched.note()
        self.keep = False

    def now(self) -> float:
        return time.time()

    async def wait(self, seconds: float) -> bool:
        """Wait for the given seconds or until the client disconnects. Return whether it disconnected."""
        try:
            await asyncio.wait_for(self.watched.disconnected.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def hold(self) -> None:
        """Keep the connection open until the client disconnects."""
        await self.watched.disconnected.wait()
        self.close()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()
        self.sent += len(data)

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        reason = HTTPStatus(status).phrase if status in NAMED else "Unknown"
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(self.now()))
        lines = [f"HTTP/1.1 {status} {reason}", f"date: {date}", *(f"{k}: {v}" for k, v in headers.items())]
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))
        self.started = True
        self.on_start()

    async def reply(
        self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None, slow: float | None = None
    ) -> None:
        """Send a complete response. If `slow` is given, wait this many seconds after each byte of the body."""
        fixed = {"content-type": kind, "content-length": str(len(body)), "x-request-id": "lab-request"}
        await self.head(status, {**fixed, **(headers or {})})
        if slow is None:
            await self.send(body)
            return
        for byte in body:
            await self.send(bytes([byte]))
            await asyncio.sleep(slow)

    async def start(self, status: int, kind: str) -> None:
        """Send the head of a chunked response, unless it has been sent already."""
        if not self.started:
            await self.head(status, {"content-type": kind, "transfer-encoding": "chunked"})

    async def chunk(self, data: bytes) -> None:
        if self.gone:
            raise ConnectionResetError("the caller is gone")
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.send(b"0\r\n\r\n")

    def close(self) -> None:
        """Close the connection properly (FIN)."""
        self.keep = False
        self.writer.close()

    def reset(self) -> None:
        """Close the connection with a reset (RST)."""
        self.keep = False
        raw = self.writer.get_extra_info("socket")
        # With a linger time of zero, closing the socket sends a reset.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


async def read_request(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes] | None:
    """Return the method, path, headers (names in lower case) and body of the next request. Return None if the
    connection ended.

    Raise `ConnectionAbortedError` if the client starts a TLS handshake on a plain connection.
    """
    try:
        first = await reader.readexactly(1)
        if first == TLS_GREETING:
            raise ConnectionAbortedError("TLS is not spoken here")
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    return method, path, headers, await _body(reader, headers)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body
