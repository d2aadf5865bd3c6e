"""The byte store in an S3 bucket, with keys `obj/<sha256>` below the prefix. Objects are always complete.

An upload that fits into one part is held in memory until its hash is known. A larger one is sent in parts to a key in
`tmp/`, then copied to the key with its hash, and the original is deleted. The S3 service verifies the hash of each
part. Bytes are hashed before they are returned, and the result is cached as long as the object's ETag is the same.
Damaged bytes are therefore reported and never returned.
"""

from __future__ import annotations

import hashlib
import secrets
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from artifacts.core.bucket import Bucket
from artifacts.core.errors import ArtifactError, CorruptError, MissingError, TooLargeError
from artifacts.core.store import BLOCK, LocalFile, ReadAt, Stored, StoreOutage, is_digest
from artifacts.storage.bucket_client import (
    MAX_COPY_BYTES,
    PART,
    BucketClient,
    ObjectChangedError,
    ObjectFacts,
    ObjectWriter,
    object_key,
)


class BucketUpload:
    """An `Upload` to a bucket. No object appears under a hash until all bytes are received and hashed."""

    def __init__(self, store: BucketStore, max_bytes: int) -> None:
        self._store, self._limit, self._size = store, max_bytes, 0
        self._hash = hashlib.sha256()
        self._waiting = bytearray()
        self._writer: ObjectWriter | None = None
        self._key = f"tmp/{secrets.token_hex(16)}"
        self._is_open = True

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, block: bytes) -> None:
        """Append a block. An error discards the upload.

        Raise `TooLargeError`, `StorageFullError` or `StoreUnavailableError`, and `ValueError` after `finish`.
        """
        if not self._is_open:
            raise ValueError("The upload is finished already.")
        self._size += len(block)
        if self._size > self._limit:
            self.abort()
            raise TooLargeError(self._limit)
        self._hash.update(block)
        self._waiting += block
        if len(self._waiting) > PART:
            try:
                self._send()
            except ArtifactError:
                self.abort()
                raise

    def finish(self) -> Stored:
        if not self._is_open:
            raise ValueError("The upload is finished already.")
        stored = Stored(self.sha256, self._size)
        try:
            # If identical bytes were stored recently, discard the new ones.
            if self._store.is_fresh(stored.sha256):
                self.abort()
            elif self._writer is None:
                tag = self._store.client.put(object_key(stored.sha256), self._waiting)
                self._store.remember(stored.sha256, tag, stored.size)
            else:
                self._move(stored, self._writer)
        except ArtifactError:
            self.abort()
            raise
        self._is_open = False
        self._waiting = bytearray()
        return stored

    def abort(self) -> None:
        self._is_open = False
        self._waiting = bytearray()
        if self._writer is not None:
            self._writer.abort()
            self._writer = None

    def __enter__(self) -> BucketUpload:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._is_open:
            self.abort()

    def _send(self) -> None:
        if self._writer is None:
            self._writer = self._store.client.begin(self._key)
        self._writer.write(self._waiting)
        self._waiting = bytearray()

    def _move(self, stored: Stored, writer: ObjectWriter) -> None:
        # Objects cannot be renamed, so copy the object to the key with its hash and delete the original.
        self._send()
        writer.close()
        self._writer = None
        try:
            self._store.client.copy(self._key, object_key(stored.sha256))
            facts = self._store.client.find(object_key(stored.sha256))
        finally:
            with suppress(ArtifactError):  # If the deletion fails, a later sweep removes the object.
                self._store.client.delete(self._key)
        if facts is not None and facts.size == stored.size:
            self._store.remember(stored.sha256, facts.tag, facts.size)


STALE_SECONDS = 24 * 3600
"""Age in seconds after which an object in `tmp/` is treated as the remains of an abandoned upload."""
FRESH_SECONDS = 1800
"""If identical bytes were stored less than this many seconds ago, they are not stored again. A sweep keeps such a
recent object even if its database row does not exist yet."""
WINDOWS = 4
"""Number of ranges held in memory while an object is read at random positions."""
MAX_REMEMBERED = 10_000
_Identity = tuple[str, int]


class BucketStore:
    """A `ByteStore` in an S3 bucket, safe for concurrent use by several machines, processes and threads.

    `scratch` is a directory for temporary local files.
    """

    is_remote = True

    def __init__(self, bucket: Bucket, scratch: Path) -> None:
        self.bucket, self._scratch = bucket, scratch
        self.client = BucketClient(bucket)
        self._healthy: dict[str, _Identity] = {}

    @property
    def outage(self) -> StoreOutage | None:
        return self.client.outage

    def begin_upload(self, max_bytes: int | None = None) -> BucketUpload:
        # A larger object could not be copied to the key with its hash in one call.
        return BucketUpload(self, min(MAX_COPY_BYTES, MAX_COPY_BYTES if max_bytes is None else max_bytes))

    def put(self, blocks: Iterable[bytes], max_bytes: int | None = None) -> Stored:
        with self.begin_upload(max_bytes) as upload:
            for block in blocks:
                upload.write(block)
            return upload.finish()

    def open_blocks(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        tag, size = self._healthy.get(sha256) or self._check(sha256)
        start = max(offset, 0)
        if start >= size:
            self._find(sha256)
            return iter(())
        try:
            return self.client.read(object_key(sha256), start, tag)[1]
        except FileNotFoundError:
            raise MissingError(sha256) from None
        except ObjectChangedError:  # The object was either stored again or damaged.
            self._check(sha256)
            return self.client.read(object_key(sha256), start)[1]

    @contextmanager
    def reader(self, sha256: str) -> Iterator[ReadAt]:
        _, size = self._check(sha256)
        windows: deque[tuple[int, bytes]] = deque(maxlen=WINDOWS)

        def read_at(offset: int, length: int) -> bytes:
            start = max(offset, 0)
            stop = min(start + max(length, 0), size)
            if start >= stop:
                return b""
            for begin, data in windows:
                if begin <= start and stop <= begin + len(data):
                    return data[start - begin : stop - begin]
            try:
                data = self.client.read_range(object_key(sha256), start, min(max(stop, start + BLOCK), size))
            except FileNotFoundError:
                raise MissingError(sha256) from None
            windows.append((start, data))
            return data[: stop - start]

        yield read_at

    @contextmanager
    def local_file(self, sha256: str) -> Iterator[LocalFile]:
        check_digest(sha256)
        yield _Download(self, sha256, self._scratch)

    def exists(self, sha256: str) -> bool:
        return is_digest(sha256) and self.client.find(object_key(sha256)) is not None

    def size(self, sha256: str) -> int:
        return self._find(sha256).size

    def is_remembered(self, sha256: str) -> bool:
        """Return whether the bytes were verified since the object last changed. Raise `MissingError` if absent."""
        return self._healthy.get(sha256) == _identity(self._find(sha256))

    def verify(self, sha256: str) -> None:
        self._healthy.pop(sha256, None)
        self._check(sha256)

    def delete(self, sha256: str) -> bool:
        self._healthy.pop(sha256, None)
        if not self.exists(sha256):
            return False
        self.client.delete(object_key(sha256))
        return True

    def digests(self, before: float | None = None) -> Iterator[str]:
        for stored_object in self.client.list("obj"):
            name = stored_object.key.rpartition("/")[2]
            if is_digest(name) and (before is None or stored_object.modified < before):
                yield name

    def sweep(self, now: float | None = None, older_than: float = STALE_SECONDS) -> int:
        """Remove objects in `tmp/` that are older than `older_than` seconds, and return their number."""
        limit = (time.time() if now is None else now) - older_than
        stale = [stored_object.key for stored_object in self.client.list("tmp") if stored_object.modified < limit]
        for key in stale:
            self.client.delete(key)
        return len(stale)

    def check(self) -> None:
        self.client.check()

    def is_fresh(self, sha256: str) -> bool:
        """Return whether these bytes were verified and stored so recently that they need not be stored again."""
        if sha256 not in self._healthy:
            return False
        facts = self.client.find(object_key(sha256))
        is_healthy = facts is not None and self._healthy[sha256] == _identity(facts)
        return is_healthy and facts is not None and facts.modified > time.time() - FRESH_SECONDS

    def remember(self, sha256: str, tag: str, size: int) -> None:
        """Record that the object with this ETag contains the right bytes."""
        if len(self._healthy) >= MAX_REMEMBERED:
            self._healthy.clear()
        self._healthy[sha256] = (tag, size)

    def read_hashed(self, sha256: str) -> Iterator[bytes]:
        """Yield all bytes of an object, and record it as verified at the end.

        Raise `MissingError`, or `CorruptError` after the last byte.
        """
        try:
            facts, blocks = self.client.read(object_key(sha256))
        except FileNotFoundError:
            self._healthy.pop(sha256, None)
            raise MissingError(sha256) from None
        digest = hashlib.sha256()
        for block in blocks:
            digest.update(block)
            yield block
        if digest.hexdigest() != sha256:
            raise CorruptError(sha256)
        self.remember(sha256, *_identity(facts))

    def _check(self, sha256: str) -> _Identity:
        identity = _identity(self._find(sha256))
        if self._healthy.get(sha256) != identity:
            for _ in self.read_hashed(sha256):
                pass
        return self._healthy[sha256]

    def _find(self, sha256: str) -> ObjectFacts:
        # A name that is not a hash must never reach the S3 service.
        check_digest(sha256)
        facts = self.client.find(object_key(sha256))
        if facts is None:
            self._healthy.pop(sha256, None)
            raise MissingError(sha256)
        return facts


class _Download:
    """An object that is downloaded to a temporary file when it is opened.

    The file has no name, so it never remains on the disk.
    """

    def __init__(self, store: BucketStore, sha256: str, scratch: Path) -> None:
        self._store, self._sha256, self._scratch = store, sha256, scratch

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = tempfile.TemporaryFile(dir=self._scratch)  # noqa: SIM115 - the caller closes it
        try:
            for block in self._store.read_hashed(self._sha256):
                file.write(block)
            file.flush()
            file.seek(0)
        except BaseException:
            with suppress(OSError):
                file.close()
            raise
        return file


def check_digest(sha256: str) -> None:
    if not is_digest(sha256):
        raise MissingError(sha256)


def _identity(facts: ObjectFacts) -> _Identity:
    return facts.tag or str(facts.modified), facts.size
