"""Where bytes and artifacts are kept, as ports: in files, or in an object store.

`ByteStore` knows bytes by their SHA-256 and nothing else; `ArtifactStore` is the seed's view of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import IO, TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from artifacts.core.artifact import StoredArtifact

ReadAt = Callable[[int, int], bytes]
"""`read_at(offset, length)`: at most that many bytes from there, fewer only at the end."""

BLOCK = 256 * 1024
"""Bytes a pass over a file holds at a time, so that memory is flat whatever the file's size."""


_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(name: str) -> bool:
    """Whether a name is a hash, as bytes are kept under one."""
    return bool(_DIGEST.fullmatch(name))


def slices(data: bytes) -> ReadAt:
    """Random access to bytes that are in memory."""
    return lambda offset, length: data[max(offset, 0) : max(offset, 0) + max(length, 0)]


def blocks(read_at: ReadAt, size: int) -> Iterator[bytes]:
    """The whole file, block by block."""
    for offset in range(0, size, BLOCK):
        yield read_at(offset, BLOCK)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a finished upload is known by: lower-case hex SHA-256 and size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class StoreOutage:
    """Since when a store does not answer, or lets us do nothing, and what is wrong with it."""

    since: datetime
    sentence: str


class LocalFile(Protocol):
    """A file on this machine that can be opened to be read; a path is one."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """The file from its beginning, with a descriptor of its own."""


class Upload(Protocol):
    """An upload on its way; used as a context manager it is given up unless `finish` was reached."""

    @property
    def sha256(self) -> str:
        """The hash of what was written so far."""

    def write(self, block: bytes) -> None:
        """Takes the next bytes; `TooLargeError` at the first one over the limit, `StorageFullError`."""

    def finish(self) -> Stored:
        """Makes the bytes durable under their hash and returns it; equal bytes are kept once."""

    def abort(self) -> None:
        """Forgets the bytes; harmless after `finish`."""

    def __enter__(self) -> Upload: ...

    def __exit__(self, *exc: object) -> None: ...


class ByteStore(Protocol):
    """Bytes by their SHA-256. Bytes that do not have the hash they are kept under are never handed out.

    Where the store is on another machine, `is_remote`, every call may raise `StoreAwayError`.
    """

    is_remote: bool

    @property
    def outage(self) -> StoreOutage | None:
        """What is wrong with a remote store since it last failed; None while it answers. Asks nobody."""

    def begin_upload(self, max_bytes: int | None = None) -> Upload:
        """An upload to push blocks into, for callers that are handed blocks."""

    def put(self, blocks: Iterable[bytes], max_bytes: int | None = None) -> Stored:
        """Keeps what the blocks hold; the limit is enforced while reading, whatever length was announced."""

    def open_blocks(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes from `offset` on, checked before the first is given; `MissingError`, `CorruptError` at once."""

    def reader(self, sha256: str) -> AbstractContextManager[ReadAt]:
        """Random access to checked bytes, for detection; errors as `open_blocks`."""

    def local_file(self, sha256: str) -> AbstractContextManager[LocalFile]:
        """The checked bytes as a file to read for as long as the context lasts; errors as `open_blocks`, when it is
        entered or when the file is opened.
        """

    def exists(self, sha256: str) -> bool:
        """Whether something is kept under that hash; says nothing of its health."""

    def size(self, sha256: str) -> int:
        """The size in bytes of what is kept; `MissingError` when nothing is."""

    def verify(self, sha256: str) -> None:
        """Reads every byte again; raises `MissingError` or `CorruptError` when they cannot be served."""

    def delete(self, sha256: str) -> bool:
        """Removes the bytes; whether there were any."""

    def check(self) -> None:
        """Asks the store whether it is there and lets us in; raises `StoreAwayError`."""

    def sweep(self) -> int:
        """Removes what uploads left behind that were never finished; how many there were."""

    def digests(self, before: float | None = None) -> Iterator[str]:
        """Every hash something is kept under; with a moment (seconds since 1970) those nobody has stored since."""


class ArtifactStore(Protocol):
    """The seed's artifact store: an artifact by its reference."""

    def get_artifact(self, ref: str) -> StoredArtifact | None:
        """The artifact, or None when no such artifact may be seen (ABR-8.1); `artifact:` in front is optional."""
