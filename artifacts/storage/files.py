"""The byte store in files: `obj/ab/cd/<sha256>` below a directory. A crash at any moment is harmless.

An upload is hashed while it is written to a temporary file on the same file system. The file is synced and renamed to
its hash, and then the directory is synced. Untrusted names are never part of a path. Bytes are hashed before they are
returned (about 1.5 GB/s), and the result is cached as long as the inode, size and times of the file are the same.
Damaged bytes are therefore reported and never returned.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from artifacts.core.errors import CorruptError, MissingError, StorageFullError, StoreUnavailableError, TooLargeError
from artifacts.core.store import BLOCK, ReadAt, Stored, is_digest
from capabilities.core.translatable import translatable

STALE_SECONDS = 3600
"""Age in seconds after which a temporary file is treated as the remains of an abandoned upload."""

MAX_REMEMBERED = 10_000
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_Identity = tuple[int, int, int, int]


class FileUpload:
    """An `Upload` to a temporary file."""

    def __init__(self, store: FileStore, max_bytes: int | None) -> None:
        self._store, self._limit, self._size = store, max_bytes, 0
        self._hash = hashlib.sha256()
        self._path = store.tmp / f"{secrets.token_hex(16)}.part"
        self._fd: int | None = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, block: bytes) -> None:
        """Append a block.

        Raise `TooLargeError` or `StorageFullError`, which discard the upload, and `ValueError` after `finish`.
        """
        if self._fd is None:
            raise ValueError("The upload is finished already.")
        self._size += len(block)
        if self._limit is not None and self._size > self._limit:
            self.abort()
            raise TooLargeError(self._limit)
        with self._storage_full_errors():
            view = memoryview(block)
            # A call to os.write may write only some of the bytes.
            while view:
                view = view[os.write(self._fd, view) :]
        self._hash.update(block)

    def finish(self) -> Stored:
        if self._fd is None:
            raise ValueError("The upload is finished already.")
        with self._storage_full_errors():
            os.fsync(self._fd)
        stored = Stored(self._hash.hexdigest(), self._size)
        with self._storage_full_errors():
            self._store.adopt(self._path, stored.sha256)
        os.close(self._fd)
        self._fd = None
        return stored

    def abort(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> FileUpload:
        return self

    def __exit__(self, *exc: object) -> None:
        self.abort()

    @contextmanager
    def _storage_full_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.abort()
            if error.errno in _FULL:
                raise StorageFullError from error
            raise


class FileStore:
    """A `ByteStore` in a directory, safe for concurrent use by several processes and threads."""

    is_remote = False
    outage = None

    def __init__(self, root: Path) -> None:
        self.root, self.objects, self.tmp = root, root / "obj", root / "tmp"
        self._healthy: dict[str, _Identity] = {}
        for directory in (root, self.objects, self.tmp):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def begin_upload(self, max_bytes: int | None = None) -> FileUpload:
        try:
            return FileUpload(self, max_bytes)
        except OSError as error:
            if error.errno in _FULL:
                raise StorageFullError from error
            raise

    def put(self, blocks: Iterable[bytes], max_bytes: int | None = None) -> Stored:
        with self.begin_upload(max_bytes) as upload:
            for block in blocks:
                upload.write(block)
            return upload.finish()

    def open_blocks(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        file = os.fdopen(self._open_checked(sha256), "rb", buffering=0)
        file.seek(max(offset, 0))
        return _stream(file)

    @contextmanager
    def reader(self, sha256: str) -> Iterator[ReadAt]:
        fd = self._open_checked(sha256)
        try:
            yield lambda offset, length: os.pread(fd, max(length, 0), max(offset, 0))
        finally:
            os.close(fd)

    @contextmanager
    def local_file(self, sha256: str) -> Iterator[Path]:
        os.close(self._open_checked(sha256))
        yield self._path(sha256)

    def exists(self, sha256: str) -> bool:
        return is_digest(sha256) and self._path(sha256).is_file()

    def size(self, sha256: str) -> int:
        fd = self._open(sha256)
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def is_remembered(self, sha256: str) -> bool:
        """Return whether the bytes were verified since the file last changed. Raise `MissingError` if there is none."""
        fd = self._open(sha256)
        try:
            return self._healthy.get(sha256) == _identity(fd)
        finally:
            os.close(fd)

    def verify(self, sha256: str) -> None:
        self._healthy.pop(sha256, None)
        os.close(self._open_checked(sha256))

    def delete(self, sha256: str) -> bool:
        self._healthy.pop(sha256, None)
        if not self.exists(sha256):
            return False
        path = self._path(sha256)
        path.unlink(missing_ok=True)
        _sync_directory(path.parent)
        return True

    def digests(self, before: float | None = None) -> Iterator[str]:
        for path in self.objects.glob("??/??/*"):
            with suppress(FileNotFoundError):
                if is_digest(path.name) and (before is None or path.stat().st_mtime < before):
                    yield path.name

    def check(self) -> None:
        if not os.access(self.objects, os.R_OK | os.W_OK | os.X_OK):
            raise StoreUnavailableError(
                translatable("The artifact directory %(path)s is missing or not writable.", path=str(self.objects))
            )

    def sweep(self, now: float | None = None, older_than: float = STALE_SECONDS) -> int:
        """Remove temporary files that were last written more than `older_than` seconds ago, and return their number."""
        limit, count = (time.time() if now is None else now) - older_than, 0
        for path in self.tmp.glob("*.part"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < limit:
                    path.unlink()
                    count += 1
        return count

    def adopt(self, temporary: Path, sha256: str) -> None:
        """Rename a synced temporary file to its hash and sync the directory. Damaged bytes are replaced."""
        path = self._path(sha256)
        for directory in (path.parent.parent, path.parent):
            if not directory.is_dir():
                directory.mkdir(mode=0o700, exist_ok=True)
                _sync_directory(directory.parent)
        if self._is_kept(sha256):
            temporary.unlink()
            return
        os.replace(temporary, path)
        _sync_directory(path.parent)

    def _is_kept(self, sha256: str) -> bool:
        # Keep identical bytes if they are undamaged, but update their time stamp, so that they are not swept as
        # orphans.
        try:
            fd = self._open_checked(sha256)
        except (MissingError, CorruptError):
            return False
        try:
            os.utime(fd)
            self._remember(sha256, _identity(fd))
        finally:
            os.close(fd)
        return True

    def _path(self, sha256: str) -> Path:
        return self.objects / sha256[:2] / sha256[2:4] / sha256

    def _open(self, sha256: str) -> int:
        # A name that is not a hash must never reach the file system.
        if not is_digest(sha256):
            raise MissingError(sha256)
        try:
            return os.open(self._path(sha256), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise MissingError(sha256) from None
        except OSError as error:
            raise CorruptError(sha256) from error

    def _open_checked(self, sha256: str) -> int:
        # Verify and read through the same descriptor, so that the file cannot be replaced in between.
        fd = self._open(sha256)
        try:
            identity = _identity(fd)
            if self._healthy.get(sha256) != identity:
                if _hash(fd) != sha256:
                    raise CorruptError(sha256)
                self._remember(sha256, identity)
        except OSError as error:
            os.close(fd)
            raise CorruptError(sha256) from error
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _remember(self, sha256: str, identity: _Identity) -> None:
        if len(self._healthy) >= MAX_REMEMBERED:
            self._healthy.clear()
        self._healthy[sha256] = identity


def _identity(fd: int) -> _Identity:
    # Writing to a file or replacing it changes at least one of these values.
    stat = os.fstat(fd)
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _hash(fd: int) -> str:
    digest, offset = hashlib.sha256(), 0
    while block := os.pread(fd, BLOCK, offset):
        digest.update(block)
        offset += len(block)
    return digest.hexdigest()


def _stream(file: FileIO) -> Iterator[bytes]:
    with file:
        while block := file.read(BLOCK):
            yield block


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
