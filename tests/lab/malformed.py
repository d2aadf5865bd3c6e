"""Responses that violate HTTP itself, written as bytes: without a status line, or with an invalid head or body.

In docs/faults.md, they belong to row 72, `bad_http`.
"""

from __future__ import annotations

from capabilities.core.wire import Fault
from tests.lab.scenarios import SSE, ScriptedExchange, scenario

LINE = b"HTTP/1.1 200 OK\r\n"
SIZED = LINE + b"content-type: application/json\r\n"
BROKEN: dict[str, tuple[str, bytes]] = {
    "head_garbage": ("a status line that is none", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\r\n"),
    "head_binary": ("bytes that are no text", bytes(range(128, 256)) + b"\r\n\r\n"),
    "head_body_only": ("an answer without any head", b'{"choices": []}\r\n\r\n'),
    "head_status_99": ("a status of two digits", b"HTTP/1.1 99 Odd\r\ncontent-length: 2\r\n\r\n{}"),
    "head_status_1000": ("a status of four digits", b"HTTP/1.1 1000 Odd\r\ncontent-length: 2\r\n\r\n{}"),
    "head_status_word": ("a word for a status", b"HTTP/1.1 fine OK\r\ncontent-length: 2\r\n\r\n{}"),
    "head_version": ("an unknown version", b"HTTP/9.9 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
    "head_no_colon": ("a header without a colon", SIZED + b"content-length 2\r\n\r\n{}"),
    "head_nul": ("a header with a NUL in it", SIZED + b"x-odd: a\x00b\r\ncontent-length: 2\r\n\r\n{}"),
    "head_many": ("a thousand headers", LINE + b"".join(b"x-%d: 1\r\n" % at for at in range(1000)) + b"\r\n"),
    "length_twice": ("two lengths", SIZED + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}"),
    "length_word": ("a word for a length", SIZED + b"content-length: two\r\n\r\n{}"),
    "length_negative": ("a length below zero", SIZED + b"content-length: -1\r\n\r\n{}"),
    "length_huge": ("a length of thirty digits", SIZED + b"content-length: " + b"9" * 30 + b"\r\n\r\n{}"),
    "length_empty": ("a length without a value", SIZED + b"content-length:\r\n\r\n{}"),
    "length_and_chunks": (
        "a length and chunks at once",
        SIZED + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ),
}
"""Maps each scenario with an invalid response head to its description and the head's bytes."""
LARGE: dict[str, tuple[str, bytes]] = {
    "head_large_line": ("a status line of 100 KB", LINE.rstrip() + b"x" * 100_000 + b"\r\n\r\n"),
    "head_large_header": ("a header of 100 KB", LINE + b"x-odd: " + b"x" * 100_000 + b"\r\n\r\n"),
}
"""Maps each scenario with an oversized response head to its description and the head's bytes."""
CHUNKS: dict[str, tuple[str, bytes]] = {
    "chunk_size_word": ("a chunk whose size is no number", b"size\r\n{}\r\n"),
    "chunk_size_negative": ("a chunk of less than nothing", b"-2\r\n{}\r\n"),
    "chunk_size_huge": ("a chunk whose size no number holds", b"f" * 30 + b"\r\n{}\r\n"),
    "chunk_unended": ("a chunk longer than it said", b"2\r\n{}and more\r\n"),
    "chunk_trailer": ("a trailer that is none", b"2\r\n{}\r\n0\r\nno trailer at all\r\n\r\n"),
}
"""Maps each scenario with a valid head and an invalid chunked body to its description and the body's bytes."""


def _head(name: str, meaning: str, data: bytes, fault: Fault, row: str) -> None:
    @scenario(name, meaning, fault, row=row)
    async def _(exchange: ScriptedExchange) -> None:
        await exchange.connection.send(data)
        await exchange.connection.hold()


def _chunk(name: str, meaning: str, data: bytes) -> None:
    @scenario(name, meaning, Fault.BAD_HTTP, row="72")
    async def _(exchange: ScriptedExchange) -> None:
        await exchange.connection.start(200, SSE if exchange.request.stream else "application/json")
        await exchange.connection.wait(exchange.number("after", 0.05))
        await exchange.connection.send(data)
        await exchange.connection.hold()


for _name, (_meaning, _data) in BROKEN.items():
    _head(_name, _meaning, _data, Fault.BAD_HTTP, "72")
for _name, (_meaning, _data) in LARGE.items():
    _head(_name, _meaning, _data, Fault.TOO_LARGE, "38")
for _name, (_meaning, _data) in CHUNKS.items():
    _chunk(_name, _meaning, _data)

MALFORMED = (*BROKEN, *LARGE, *CHUNKS)
