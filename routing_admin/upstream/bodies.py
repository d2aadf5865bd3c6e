"""Request bodies, whose files are encoded block by block, and response bodies, which are decoded within limits."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

import pybase64

from capabilities.core.message import Blob
from capabilities.core.wire import BodyPiece, MediaData, piece_length

BLOCK = 3 * 64 * 1024
"""Number of bytes of a file to encode at a time: a multiple of three, so that blocks need no padding."""
ANSWER_BYTES = 48 * 1024 * 1024
"""Maximum size of a response in bytes: enough for text and an image of the default maximum artifact size in base64."""
STREAM_BYTES = 64 * 1024 * 1024
LINE_BYTES = ANSWER_BYTES
PACKED_BLOCK = 64 * 1024
"""Number of compressed bytes to decompress at a time. The limit keeps copying cheap: when a gzip member ends, the rest
of its block is copied."""
MAX_MEMBERS = 10_000
"""Maximum number of members in a gzip body: enough for files compressed in parallel, but a bound on empty members."""


Blocks = tuple[bytes, ...]
"""A body in memory, as the sequence of blocks that are written to the connection."""


class AnswerTooLargeError(Exception):
    """A response, or a line of a stream, exceeds the limit."""


class BadEncodingError(Exception):
    """The content encoding of a response is not supported, or its bytes are invalid."""


def request_blocks(pieces: Iterable[BodyPiece]) -> Iterator[bytes]:
    """Yield the blocks of a body; files are read and encoded block by block, so memory use is constant."""
    for piece in pieces:
        if isinstance(piece, MediaData):
            yield from media_blocks(piece.blob)
        elif isinstance(piece, Blob):
            yield from piece.blocks()
        else:
            yield piece


def media_blocks(blob: Blob) -> Iterator[bytes]:
    """Yield a file in base64, whatever sizes its blocks have."""
    rest = b""
    for block in blob.blocks():
        view = memoryview(rest + block if rest else block)
        cut = len(view) - len(view) % 3
        for start in range(0, cut, BLOCK):
            yield pybase64.b64encode(view[start : min(start + BLOCK, cut)])
        rest = bytes(view[cut:])
    if rest:
        yield pybase64.b64encode(rest)


class RequestBody:
    """A request body of `length` bytes; `error` is set if a file could not be read."""

    def __init__(self, pieces: Sequence[BodyPiece]) -> None:
        self._pieces = pieces
        self.length = sum(map(piece_length, pieces))
        self.error: Exception | None = None

    @property
    def is_remote(self) -> bool:
        """Return whether any file is stored on another machine, so that it must be read in a thread."""
        blobs = (piece.blob if isinstance(piece, MediaData) else piece for piece in self._pieces)
        return any(isinstance(blob, Blob) and blob.is_remote for blob in blobs)

    def blocks(self) -> Blocks:
        """Return the body as blocks; raise the error if a file cannot be read."""
        return tuple(request_blocks(self._pieces))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        blocks = request_blocks(self._pieces)
        try:
            if self.is_remote:
                while (block := await asyncio.to_thread(next, blocks, None)) is not None:
                    yield block
            for block in blocks:
                yield block
        except Exception as error:
            self.error = error
            raise


class CutEncodingError(BadEncodingError):
    """The compressed bytes end too early."""


class Decompressor:
    """Decompresses a body, with a limit on the result as protection against decompression bombs.

    A gzip body may consist of several members, one after another (RFC 1952, 2.2).
    """

    def __init__(self, encoding: str, max_bytes: int) -> None:
        self._remaining, self._members = max_bytes, 0
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BadEncodingError(name)
        self._max_members = {"": 0, "identity": 0, "deflate": 1}.get(name, MAX_MEMBERS)
        self._member: zlib._Decompress | None = None

    def feed(self, block: bytes) -> bytes:
        """Return the decompressed bytes of a block.

        Raise `AnswerTooLargeError` if the limit is exceeded, `BadEncodingError` for invalid bytes or bytes after the
        end.
        """
        if self._max_members == 0:
            self._count(block)
            return block
        texts = []
        for start in range(0, len(block), PACKED_BLOCK):
            rest = block[start : start + PACKED_BLOCK]
            while rest:
                texts.append(text := self._unpack(rest))
                self._count(text)
                rest = self._member.unused_data if self._member is not None else b""
        return texts[0] if len(texts) == 1 else b"".join(texts)

    def end(self) -> None:
        """Raise `CutEncodingError` if the compressed data is incomplete; an empty body is complete."""
        if self._member is not None and not self._member.eof:
            raise CutEncodingError

    def _unpack(self, packed: bytes) -> bytes:
        if self._member is None or self._member.eof:
            if self._members == self._max_members:
                raise BadEncodingError
            self._members += 1
            # `+ 32` makes zlib accept both gzip and zlib headers.
            self._member = zlib.decompressobj(zlib.MAX_WBITS | 32)
        try:
            # Allow one byte more than the limit, so that `_count` raises the error.
            return self._member.decompress(packed, self._remaining + 1)
        except zlib.error as error:
            raise BadEncodingError from error

    def _count(self, text: bytes) -> None:
        self._remaining -= len(text)
        if self._remaining < 0:
            raise AnswerTooLargeError


def decompress(encoding: str, body: bytes, max_bytes: int) -> bytes:
    """Return a decompressed body; raise the same errors as `Decompressor`."""
    decompressor = Decompressor(encoding, max_bytes)
    text = decompressor.feed(body)
    decompressor.end()
    return text


class LineLengthGuard:
    """Raises `AnswerTooLargeError` if a line of a stream exceeds the limit."""

    def __init__(self) -> None:
        self._length = 0

    def feed(self, block: bytes) -> None:
        end = block.find(b"\n")
        if self._length + (len(block) if end == -1 else end) > LINE_BYTES:
            raise AnswerTooLargeError
        if end == -1:
            self._length += len(block)
            return
        longest = max(len(line) for line in block.split(b"\n")) if len(block) > LINE_BYTES else 0
        if longest > LINE_BYTES:
            raise AnswerTooLargeError
        self._length = len(block) - block.rfind(b"\n") - 1
