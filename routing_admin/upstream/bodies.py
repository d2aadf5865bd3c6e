"""Bodies on their way: a request's files as base64 in blocks, an answer's bytes within bounds."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

import pybase64

from capabilities.core.message import Blob
from capabilities.core.wire import BodyPiece, MediaData, piece_length

BLOCK = 3 * 64 * 1024
"""Bytes of a file encoded at once: a multiple of three, so that blocks join without padding between them."""
ANSWER_BYTES = 48 * 1024 * 1024
"""The most that is read of an answer: an image as large as an artifact may be by default, as base64, and its words."""
STREAM_BYTES = 64 * 1024 * 1024
LINE_BYTES = ANSWER_BYTES
PACKED_BLOCK = 64 * 1024
"""Packed bytes unpacked at once: what is left of a block after a member's end is copied."""
MAX_MEMBERS = 10_000
"""Members of one gzip: those of a file that was packed in parallel, and of no flood of empty ones."""


Blocks = tuple[bytes, ...]
"""A body that is all in memory, in the order in which it is written."""


class AnswerTooLargeError(Exception):
    """An answer, or one line of a stream, is larger than is read."""


class BadEncodingError(Exception):
    """An answer's content encoding is one we did not ask for and do not read, or its bytes are broken."""


def request_blocks(pieces: Iterable[BodyPiece]) -> Iterator[bytes]:
    """The request's body in order; a file is read and encoded block by block, so memory stays flat."""
    for piece in pieces:
        if isinstance(piece, MediaData):
            yield from media_blocks(piece.blob)
        elif isinstance(piece, Blob):
            yield from piece.blocks()
        else:
            yield piece


def media_blocks(blob: Blob) -> Iterator[bytes]:
    """A file's base64, whatever the sizes of its own blocks."""
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
    """A request's body as the client sends it, `length` bytes long; `error` is kept when reading a file failed."""

    def __init__(self, pieces: Sequence[BodyPiece]) -> None:
        self._pieces = pieces
        self.length = sum(map(piece_length, pieces))
        self.error: Exception | None = None

    @property
    def is_remote(self) -> bool:
        """Whether a file of it comes from another machine, so that it is read in a thread."""
        blobs = (each.blob if isinstance(each, MediaData) else each for each in self._pieces)
        return any(isinstance(each, Blob) and each.is_remote for each in blobs)

    def blocks(self) -> Blocks:
        """All of it, in blocks that nobody has to join. Raises what reading a file raises."""
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
    """The bytes end before their content encoding does."""


class Decompressor:
    """Undo a content encoding and count the bytes, so that a small body cannot unfold into a flood.

    gzip may have several members, one after another (RFC 1952, 2.2).
    """

    def __init__(self, encoding: str, most: int) -> None:
        self._remaining, self._members = most, 0
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BadEncodingError(name)
        self._max_members = {"": 0, "identity": 0, "deflate": 1}.get(name, MAX_MEMBERS)
        self._member: zlib._Decompress | None = None

    def feed(self, block: bytes) -> bytes:
        """Return this block's plain bytes.

        Raise `AnswerTooLargeError` beyond the bound, `BadEncodingError` where it is broken or goes on after its end.
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
        """Raise `CutEncodingError` where more must have come; of a body without any byte nothing is expected."""
        if self._member is not None and not self._member.eof:
            raise CutEncodingError

    def _unpack(self, packed: bytes) -> bytes:
        if self._member is None or self._member.eof:
            if self._members == self._max_members:
                raise BadEncodingError
            self._members += 1
            self._member = zlib.decompressobj(zlib.MAX_WBITS | 32)
        try:
            return self._member.decompress(packed, self._remaining + 1)
        except zlib.error as error:
            raise BadEncodingError from error

    def _count(self, text: bytes) -> None:
        self._remaining -= len(text)
        if self._remaining < 0:
            raise AnswerTooLargeError


def decompress(encoding: str, body: bytes, most: int) -> bytes:
    """Return a whole body plain. Raise what a `Decompressor` raises."""
    decompressor = Decompressor(encoding, most)
    text = decompressor.feed(body)
    decompressor.end()
    return text


class LineLengthGuard:
    """Watches that no line of a stream grows without end."""

    def __init__(self) -> None:
        self._length = 0

    def feed(self, block: bytes) -> None:
        """Raises `AnswerTooLargeError` when the line that is open is too long."""
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
