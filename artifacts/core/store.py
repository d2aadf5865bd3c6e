"""Interfaces of the stores of bytes and artifacts, over files or an object store.

`ByteStore` knows bytes only by their SHA-256; `ArtifactStore` is the seed's view of it.
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
"""`read_at(offset, length)` returns that many bytes, fewer only at the end."""

BLOCK = 256 * 1024
"""Bytes of a file held at a time, so that memory does not grow with the file's size."""


_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(name: str) -> bool:
    return bool(_DIGEST.fullmatch(name))


def slices(data: bytes) -> ReadAt:
    """Return random access to bytes in memory."""
    return lambda offset, length: data[max(offset, 0) : max(offset, 0) + max(length, 0)]


def blocks(read_at: ReadAt, size: int) -> Iterator[bytes]:
    for offset in range(0, size, BLOCK):
        yield read_at(offset, BLOCK)


@dataclass(frozen=True, slots=True)
class Stored:
    """A finished upload: lower-case hex SHA-256 and size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class StoreOutage:
    """An outage of a store: since when, and its cause."""

    since: datetime
    sentence: str


class LocalFile(Protocol):
    """A file on this machine that can be opened for reading, such as a path."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """Open the file at its beginning, with its own descriptor."""


class Upload(Protocol):
    """An upload in progress; as a context manager it is aborted unless `finish` was called."""

    @property
    def sha256(self) -> str: ...

    def write(self, block: bytes) -> None:
        """Append a block; raise `TooLargeError` at the first byte over the limit, or `StorageFullError`."""

    def finish(self) -> Stored:
        """Make the bytes durable under their hash; equal bytes are stored once."""

    def abort(self) -> None:
        """Discard the bytes; does nothing after `finish`."""

    def __enter__(self) -> Upload: ...

    def __exit__(self, *exc: object) -> None: ...


class ByteStore(Protocol):
    """Bytes by their SHA-256; bytes that do not match their hash are never returned.

    A store on another machine has `is_remote`, and each of its methods may raise `StoreAwayError`.
    """

    is_remote: bool

    @property
    def outage(self) -> StoreOutage | None:
        """The last failure of a remote store, None if the last call succeeded; makes no call itself."""

    def begin_upload(self, max_bytes: int | None = None) -> Upload:
        """Begin an upload for callers that receive the bytes in blocks."""

    def put(self, blocks: Iterable[bytes], max_bytes: int | None = None) -> Stored:
        """Store the blocks; the limit is enforced while reading, whatever length was announced."""

    def open_blocks(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        """Return the bytes from `offset` on; raise `MissingError` or `CorruptError` before the first block."""

    def reader(self, sha256: str) -> AbstractContextManager[ReadAt]:
        """Open random access to the verified bytes; raise as `open_blocks` does."""

    def local_file(self, sha256: str) -> AbstractContextManager[LocalFile]:
        """Provide the verified bytes as a local file while the context lasts.

        Raise as `open_blocks` does, on entry or when the file is opened.
        """

    def exists(self, sha256: str) -> bool:
        """Return whether bytes are stored under that hash, healthy or not."""

    def size(self, sha256: str) -> int:
        """Return the stored size in bytes; raise `MissingError`."""

    def verify(self, sha256: str) -> None:
        """Hash every byte again; raise `MissingError` or `CorruptError`."""

    def delete(self, sha256: str) -> bool:
        """Delete the bytes and return whether there were any."""

    def check(self) -> None:
        """Raise `StoreAwayError` unless the store answers and accepts our credentials."""

    def sweep(self) -> int:
        """Remove remains of unfinished uploads and return their number."""

    def digests(self, before: float | None = None) -> Iterator[str]:
        """Yield every stored hash, or those last stored before a moment in seconds since 1970."""


class ArtifactStore(Protocol):
    """The seed's artifact store, by reference."""

    def get_artifact(self, ref: str) -> StoredArtifact | None:
        """Return the artifact, or None if it is not visible (ABR-8.1); the prefix `artifact:` is optional."""
