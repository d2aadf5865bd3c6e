"""Interfaces of byte stores and artifact stores.

A `ByteStore` (in a file system or an object store) finds bytes by their SHA-256. `ArtifactStore` is the interface that
the specification defines.
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
"""Function `read_at(offset, length)` that returns `length` bytes, or fewer at the end of the data."""

BLOCK = 256 * 1024
"""Number of bytes in a block. Files are processed block by block, so that memory use does not depend on their size."""


_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(name: str) -> bool:
    return bool(_DIGEST.fullmatch(name))


def read_slices(data: bytes) -> ReadAt:
    """Return a function for random access to bytes in memory."""
    return lambda offset, length: data[max(offset, 0) : max(offset, 0) + max(length, 0)]


def read_blocks(read_at: ReadAt, size: int) -> Iterator[bytes]:
    for offset in range(0, size, BLOCK):
        yield read_at(offset, BLOCK)


@dataclass(frozen=True, slots=True)
class Stored:
    """A finished upload: its SHA-256 in lower-case hex, and its size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class StoreOutage:
    """A store's outage: when it began, and a sentence that describes the cause."""

    since: datetime
    sentence: str


class LocalFile(Protocol):
    """A file on this machine that can be opened for reading, such as a `Path`."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """Open the file with a new descriptor, positioned at the start."""


class Upload(Protocol):
    """An upload in progress. As a context manager, it aborts on exit unless `finish` was called."""

    @property
    def sha256(self) -> str: ...

    def write(self, block: bytes) -> None:
        """Append a block of bytes.

        Raise `TooLargeError` if the upload exceeds its size limit, or `StorageFullError`.
        """

    def finish(self) -> Stored:
        """Store the bytes durably under their hash. Identical bytes are stored only once."""

    def abort(self) -> None:
        """Discard the uploaded bytes. After `finish`, this does nothing."""

    def __enter__(self) -> Upload: ...

    def __exit__(self, *exc: object) -> None: ...


class ByteStore(Protocol):
    """Stores bytes under their SHA-256. Bytes that do not match their hash are never returned.

    `is_remote` is True for a store on another machine. Each method of a remote store may raise `StoreUnavailableError`.
    """

    is_remote: bool

    @property
    def outage(self) -> StoreOutage | None:
        """Return the remote store's last failure, or None if the last call succeeded. This does not call the store."""

    def begin_upload(self, max_bytes: int | None = None) -> Upload:
        """Begin an upload for callers that receive the bytes in blocks."""

    def put(self, blocks: Iterable[bytes], max_bytes: int | None = None) -> Stored:
        """Store the blocks. `max_bytes` limits how many bytes are read, whatever length was announced."""

    def open_blocks(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        """Return the bytes from `offset` on. Raise `MissingError` or `CorruptError` before the first block."""

    def reader(self, sha256: str) -> AbstractContextManager[ReadAt]:
        """Return a context manager for random access to the verified bytes. Raise `MissingError` or `CorruptError`."""

    def local_file(self, sha256: str) -> AbstractContextManager[LocalFile]:
        """Provide the verified bytes as a local file within a context.

        Raise `MissingError` or `CorruptError` on entry or when the file is opened.
        """

    def exists(self, sha256: str) -> bool:
        """Return whether bytes are stored under the hash. This does not verify them."""

    def size(self, sha256: str) -> int:
        """Return the stored size in bytes. Raise `MissingError`."""

    def verify(self, sha256: str) -> None:
        """Hash all stored bytes again. Raise `MissingError` or `CorruptError`."""

    def delete(self, sha256: str) -> bool:
        """Delete the bytes. Return whether any were stored."""

    def check(self) -> None:
        """Raise `StoreUnavailableError` unless the store responds and accepts the credentials."""

    def sweep(self) -> int:
        """Delete the remains of unfinished uploads, and return their number."""

    def digests(self, before: float | None = None) -> Iterator[str]:
        """Yield every hash under which bytes are stored, or only hashes last stored before `before` (Unix seconds)."""


class ArtifactStore(Protocol):
    """The artifact store interface of the specification. It finds artifacts by reference."""

    def get_artifact(self, ref: str) -> StoredArtifact | None:
        """Return the artifact, or None if it is not visible to the caller (ABR-8.1).

        `ref` may omit the prefix `artifact:`.
        """
