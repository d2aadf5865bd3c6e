"""Bytes in files: `obj/ab/cd/<sha256>` below one directory, written so that a crash at any moment loses nothing.

An upload goes into a temporary file on the same file system while it is hashed; the file is synced, renamed to its
hash and the directory synced. Nobody's name is ever part of a path. Before bytes are served they are hashed (about
1.5 GB/s) and the result is remembered for as long as the file's inode, size and time of change stay the same, so that
damaged bytes are told of and never handed out.
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

from artifacts.core.errors import CorruptError, MissingError, StorageFullError, StoreAwayError, TooLargeError
from artifacts.core.store import BLOCK, ReadAt, Stored, is_digest
from capabilities.core.translatable import translatable

STALE_SECONDS = 3600
"""After so long a temporary file belongs to an upload that died."""

REMEMBERED = 10_000
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_Identity = tuple[int, int, int, int]


class FileUpload:
    """One upload into a temporary file; see the `Upload` port."""

    def __init__(self, store: FileStore, max_bytes: int | None) -> None:
        self._store, self._limit, self._size = store, max_bytes, 0
        self._hash = hashlib.sha256()
        self._path = store.tmp / f"{secrets.token_hex(16)}.part"
        self._fd: int | None = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)

    @property
    def sha256(self) -> str:
        """The hash of what was written so far."""
        return self._hash.hexdigest()

    def write(self, block: bytes) -> None:
        """Takes the next bytes.

        Raises `TooLargeError` or `StorageFullError`, which remove what was written so far, `ValueError` after `finish`.
        """
        if self._fd is None:
            raise ValueError("The upload is finished already.")
        self._size += len(block)
        if self._limit is not None and self._size > self._limit:
            self.abort()
            raise TooLargeError(self._limit)
        with self._told_when_full():
            view = memoryview(block)
            while view:
                view = view[os.write(self._fd, view) :]
        self._hash.update(block)

    def finish(self) -> Stored:
        """Makes the bytes durable and returns their hash and size; healthy equal bytes are kept as they are.

        Raises `StorageFullError` when the disk is full, `ValueError` for an upload that is finished or was removed.
        """
        if self._fd is None:
            raise ValueError("The upload is finished already.")
        with self._told_when_full():
            os.fsync(self._fd)
        stored = Stored(self._hash.hexdigest(), self._size)
        with self._told_when_full():
            self._store.adopt(self._path, stored.sha256)
        os.close(self._fd)
        self._fd = None
        return stored

    def abort(self) -> None:
        """Removes the temporary file; harmless after `finish`."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> FileUpload:
        return self

    def __exit__(self, *exc: object) -> None:
        self.abort()

    @contextmanager
    def _told_when_full(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.abort()
            if error.errno in _FULL:
                raise StorageFullError from error
            raise


class FileStore:
    """The `ByteStore` port over a directory; safe for several processes, and for threads."""

    is_remote = False
    outage = None

    def __init__(self, root: Path) -> None:
        self.root, self.objects, self.tmp = root, root / "obj", root / "tmp"
        self._healthy: dict[str, _Identity] = {}
        for directory in (root, self.objects, self.tmp):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def begin_upload(self, max_bytes: int | None = None) -> FileUpload:
        """An upload to push blocks into; at most `max_bytes` bytes. Raises `StorageFullError` when the disk is full."""
        try:
            return FileUpload(self, max_bytes)
        except OSError as error:
            if error.errno in _FULL:
                raise StorageFullError from error
            raise

    def put(self, blocks: Iterable[bytes], max_bytes: int | None = None) -> Stored:
        """Keeps what the blocks hold, reading no further than the limit."""
        with self.begin_upload(max_bytes) as upload:
            for block in blocks:
                upload.write(block)
            return upload.finish()

    def open_blocks(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes from `offset` on; checked as a whole before this returns, so errors come at once."""
        file = os.fdopen(self._open_checked(sha256), "rb", buffering=0)
        file.seek(max(offset, 0))
        return _stream(file)

    @contextmanager
    def reader(self, sha256: str) -> Iterator[ReadAt]:
        """Random access to the checked bytes."""
        fd = self._open_checked(sha256)
        try:
            yield lambda offset, length: os.pread(fd, max(length, 0), max(offset, 0))
        finally:
            os.close(fd)

    @contextmanager
    def local_file(self, sha256: str) -> Iterator[Path]:
        """The checked file itself; only to be read."""
        os.close(self._open_checked(sha256))
        yield self._path(sha256)

    def exists(self, sha256: str) -> bool:
        """Whether a file is there under that hash."""
        return is_digest(sha256) and self._path(sha256).is_file()

    def size(self, sha256: str) -> int:
        """The size in bytes of what is there; `MissingError` when nothing is."""
        fd = self._open(sha256)
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def is_remembered(self, sha256: str) -> bool:
        """Whether the bytes were found healthy since their file last changed; `MissingError` when nothing is there."""
        fd = self._open(sha256)
        try:
            return self._healthy.get(sha256) == _identity(fd)
        finally:
            os.close(fd)

    def verify(self, sha256: str) -> None:
        """Hashes the bytes again, whatever is remembered."""
        self._healthy.pop(sha256, None)
        os.close(self._open_checked(sha256))

    def delete(self, sha256: str) -> bool:
        """Removes the bytes; False when there were none."""
        self._healthy.pop(sha256, None)
        if not self.exists(sha256):
            return False
        path = self._path(sha256)
        path.unlink(missing_ok=True)
        _sync_directory(path.parent)
        return True

    def digests(self, before: float | None = None) -> Iterator[str]:
        """Every hash a file is there for; with a moment (seconds since 1970) those nobody has stored since."""
        for path in self.objects.glob("??/??/*"):
            with suppress(FileNotFoundError):
                if is_digest(path.name) and (before is None or path.stat().st_mtime < before):
                    yield path.name

    def check(self) -> None:
        """Looks whether the directory is there and may be written to. Raises `StoreAwayError`."""
        if not os.access(self.objects, os.R_OK | os.W_OK | os.X_OK):
            raise StoreAwayError(
                translatable("The artifact directory %(path)s is missing or not writable.", path=str(self.objects))
            )

    def sweep(self, now: float | None = None, older_than: float = STALE_SECONDS) -> int:
        """Removes temporary files not written to for `older_than` seconds; how many there were."""
        limit, swept = (time.time() if now is None else now) - older_than, 0
        for path in self.tmp.glob("*.part"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < limit:
                    path.unlink()
                    swept += 1
        return swept

    def adopt(self, temporary: Path, sha256: str) -> None:
        """Moves a synced temporary file to its hash, replacing damaged bytes there, and makes the name durable."""
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
        """Whether healthy bytes are there; they count as stored now, so that no sweep takes them for forgotten ones."""
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
        """A descriptor of the file; a name that is no hash never reaches the file system."""
        if not is_digest(sha256):
            raise MissingError(sha256)
        try:
            return os.open(self._path(sha256), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise MissingError(sha256) from None
        except OSError as error:
            raise CorruptError(sha256) from error

    def _open_checked(self, sha256: str) -> int:
        """A descriptor of bytes that have their hash, read through that same descriptor."""
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
        if len(self._healthy) >= REMEMBERED:
            self._healthy.clear()
        self._healthy[sha256] = identity


def _identity(fd: int) -> _Identity:
    """What changes when the file is written to or replaced."""
    stat = os.fstat(fd)
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _hash(fd: int) -> str:
    digest, offset = hashlib.sha256(), 0
    while block := os.pread(fd, BLOCK, offset):
        digest.update(block)
        offset += len(block)
    return digest.hexdigest()


def _stream(file: FileIO) -> Iterator[bytes]:
    """The blocks of an open file, which is closed when they end."""
    with file:
        while block := file.read(BLOCK):
            yield block


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
