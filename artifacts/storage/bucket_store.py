"""Bytes in a bucket: `obj/<sha256>` below the prefix, each there whole or not at all.

What fits into one part waits in memory until its hash is known and is stored under it at once; a larger upload goes in
parts to `tmp/`, is copied to its hash within the service and removed. The service checks the hash of every part that
it is sent. Before bytes are served they are hashed, and the result is remembered for as long as the object keeps its
tag, so that damaged bytes are told of and never handed out.
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
    LARGEST,
    PART,
    BucketClient,
    ObjectChangedError,
    ObjectFacts,
    ObjectWriter,
    key_of,
)

# One upload into a bucket: in memory while it fits into a part, else in parts to `tmp/`, then to its hash.


class BucketUpload:
    """See the `Upload` port; nothing is under its hash before the whole is hashed and has come in whole."""

    def __init__(self, store: BucketStore, max_bytes: int) -> None:
        self._store, self._limit, self._size = store, max_bytes, 0
        self._hash = hashlib.sha256()
        self._waiting = bytearray()
        self._writer: ObjectWriter | None = None
        self._key = f"tmp/{secrets.token_hex(16)}"
        self._is_open = True

    @property
    def sha256(self) -> str:
        """The hash of what was written so far."""
        return self._hash.hexdigest()

    def write(self, block: bytes) -> None:
        """Takes the next bytes.

        Raises `TooLargeError`, `StorageFullError` or `StoreAwayError`, which forget what was written so far,
        `ValueError` after `finish`.
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
        """Makes the bytes be there under their hash; equal ones that were stored just now are left as they are.

        Raises `StorageFullError` or `StoreAwayError`, `ValueError` for an upload that is finished or given up.
        """
        if not self._is_open:
            raise ValueError("The upload is finished already.")
        stored = Stored(self.sha256, self._size)
        try:
            if self._store.is_fresh(stored.sha256):
                self.abort()
            elif self._writer is None:
                tag = self._store.client.put(key_of(stored.sha256), self._waiting)
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
        """Forgets the bytes; harmless after `finish`."""
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
        """Hands on what waits; the package sends it when a part is full."""
        if self._writer is None:
            self._writer = self._store.client.begin(self._key)
        self._writer.write(self._waiting)
        self._waiting = bytearray()

    def _move(self, stored: Stored, writer: ObjectWriter) -> None:
        """Completes the object in `tmp/` and copies it to its hash."""
        self._send()
        writer.close()
        self._writer = None
        try:
            self._store.client.copy(self._key, key_of(stored.sha256))
            found = self._store.client.find(key_of(stored.sha256))
        finally:
            with suppress(ArtifactError):  # a sweep removes it
                self._store.client.delete(self._key)
        if found is not None and found.size == stored.size:
            self._store.remember(stored.sha256, found.tag, found.size)


STALE_SECONDS = 24 * 3600
"""After so long a part of an upload in `tmp/` belongs to one that died."""
FRESH_SECONDS = 1800
"""An object stored less than this ago is not stored again: no sweep takes it before its row is there."""
WINDOWS = 4
"""Blocks of a file that random access keeps."""
REMEMBERED = 10_000
_Identity = tuple[str, int]


class BucketStore:
    """The `ByteStore` port over a bucket; safe for several machines, processes and threads.

    `scratch` is a directory for what has to be a file on this machine for a moment.
    """

    is_remote = True

    def __init__(self, bucket: Bucket, scratch: Path) -> None:
        self.bucket, self._scratch = bucket, scratch
        self.client = BucketClient(bucket)
        self._healthy: dict[str, _Identity] = {}

    @property
    def outage(self) -> StoreOutage | None:
        """What was wrong with the service when it was last asked."""
        return self.client.outage

    def begin_upload(self, max_bytes: int | None = None) -> BucketUpload:
        """An upload to push blocks into; at most `max_bytes` bytes, and no more than the service copies at once."""
        return BucketUpload(self, min(LARGEST, LARGEST if max_bytes is None else max_bytes))

    def put(self, blocks: Iterable[bytes], max_bytes: int | None = None) -> Stored:
        """Keeps what the blocks hold, reading no further than the limit."""
        with self.begin_upload(max_bytes) as upload:
            for block in blocks:
                upload.write(block)
            return upload.finish()

    def open_blocks(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes from `offset` on; checked as a whole before this returns. Raises `MissingError`, `CorruptError`."""
        tag, size = self._healthy.get(sha256) or self._check(sha256)
        start = max(offset, 0)
        if start >= size:
            self._find(sha256)
            return iter(())
        try:
            return self.client.read(key_of(sha256), start, tag)[1]
        except FileNotFoundError:
            raise MissingError(sha256) from None
        except ObjectChangedError:  # somebody stored it again, or it is damaged
            self._check(sha256)
            return self.client.read(key_of(sha256), start)[1]

    @contextmanager
    def reader(self, sha256: str) -> Iterator[ReadAt]:
        """Random access to the checked bytes, some of which are kept for the next look."""
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
                data = self.client.read_range(key_of(sha256), start, min(max(stop, start + BLOCK), size))
            except FileNotFoundError:
                raise MissingError(sha256) from None
            windows.append((start, data))
            return data[: stop - start]

        yield read_at

    @contextmanager
    def local_file(self, sha256: str) -> Iterator[LocalFile]:
        """The checked bytes, which come here when the file is opened and go when it is closed."""
        check_digest(sha256)
        yield _Download(self, sha256, self._scratch)

    def exists(self, sha256: str) -> bool:
        """Whether an object is there under that hash."""
        return is_digest(sha256) and self.client.find(key_of(sha256)) is not None

    def size(self, sha256: str) -> int:
        """The size in bytes of what is there; `MissingError` when nothing is."""
        return self._find(sha256).size

    def is_remembered(self, sha256: str) -> bool:
        """Whether the bytes were found healthy since their object changed; `MissingError` when nothing is there."""
        return self._healthy.get(sha256) == _identity(self._find(sha256))

    def verify(self, sha256: str) -> None:
        """Hashes the bytes again, whatever is remembered."""
        self._healthy.pop(sha256, None)
        self._check(sha256)

    def delete(self, sha256: str) -> bool:
        """Removes the bytes; False when there were none."""
        self._healthy.pop(sha256, None)
        if not self.exists(sha256):
            return False
        self.client.delete(key_of(sha256))
        return True

    def digests(self, before: float | None = None) -> Iterator[str]:
        """Every hash an object is there for; with a moment (seconds since 1970) those nobody has stored since."""
        for each in self.client.list("obj"):
            name = each.key.rpartition("/")[2]
            if is_digest(name) and (before is None or each.modified < before):
                yield name

    def sweep(self, now: float | None = None, older_than: float = STALE_SECONDS) -> int:
        """Removes what uploads left in `tmp/` more than `older_than` seconds ago; how many there were."""
        limit = (time.time() if now is None else now) - older_than
        stale = [each.key for each in self.client.list("tmp") if each.modified < limit]
        for key in stale:
            self.client.delete(key)
        return len(stale)

    def check(self) -> None:
        """Asks the service whether the bucket is there and may be listed."""
        self.client.check()

    def is_fresh(self, sha256: str) -> bool:
        """Whether healthy bytes were stored so lately that an upload of equal ones need not store them again."""
        if sha256 not in self._healthy:
            return False
        found = self.client.find(key_of(sha256))
        is_healthy = found is not None and self._healthy[sha256] == _identity(found)
        return is_healthy and found is not None and found.modified > time.time() - FRESH_SECONDS

    def remember(self, sha256: str, tag: str, size: int) -> None:
        """Notes that the object with that tag has the bytes of its hash."""
        if len(self._healthy) >= REMEMBERED:
            self._healthy.clear()
        self._healthy[sha256] = (tag, size)

    def read_hashed(self, sha256: str) -> Iterator[bytes]:
        """Every byte of the object, which is remembered as healthy at its end.

        Raises `MissingError`, and `CorruptError` behind the last byte.
        """
        try:
            found, blocks = self.client.read(key_of(sha256))
        except FileNotFoundError:
            self._healthy.pop(sha256, None)
            raise MissingError(sha256) from None
        digest = hashlib.sha256()
        for block in blocks:
            digest.update(block)
            yield block
        if digest.hexdigest() != sha256:
            raise CorruptError(sha256)
        self.remember(sha256, *_identity(found))

    def _check(self, sha256: str) -> _Identity:
        """What the object is known by, once its bytes have their hash."""
        identity = _identity(self._find(sha256))
        if self._healthy.get(sha256) != identity:
            for _ in self.read_hashed(sha256):
                pass
        return self._healthy[sha256]

    def _find(self, sha256: str) -> ObjectFacts:
        """The object; a name that is no hash never reaches the service."""
        check_digest(sha256)
        found = self.client.find(key_of(sha256))
        if found is None:
            self._healthy.pop(sha256, None)
            raise MissingError(sha256)
        return found


class _Download:
    """An object as a file of this machine, made when it is opened; it has no name, so nothing of it can stay."""

    def __init__(self, store: BucketStore, sha256: str, scratch: Path) -> None:
        self._store, self._sha256, self._scratch = store, sha256, scratch

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """The checked bytes. Raises `MissingError`, `CorruptError`."""
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = tempfile.TemporaryFile(dir=self._scratch)  # noqa: SIM115 - whoever opens it closes it
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
    """Raises `MissingError` for a name that is no hash."""
    if not is_digest(sha256):
        raise MissingError(sha256)


def _identity(facts: ObjectFacts) -> _Identity:
    return facts.tag or str(facts.modified), facts.size
