"""Behaviour that only the file store has: file modes, full disks, links and modification times.

See also test_byte_stores.py.
"""

from __future__ import annotations

import errno
import os
import resource
import stat
import tracemalloc
from pathlib import Path

import pytest

from artifacts.core.errors import CorruptError, StorageFullError
from artifacts.core.store import BLOCK
from artifacts.storage.files import FileStore


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "artifacts")


def list_files(store: FileStore) -> list[Path]:
    return [path for path in store.root.rglob("*") if path.is_file()]


def test_equal_bytes_are_one_file_named_by_their_hash_with_private_modes(store: FileStore) -> None:
    first, second = store.put([b"same"]), store.put([b"sa", b"me"])
    assert first == second
    (path,) = list_files(store)
    digest = first.sha256
    assert path.relative_to(store.root) == Path("obj", digest[:2], digest[2:4], digest)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(p.stat().st_mode) for p in (store.root, store.tmp, path.parent)} == {0o700}
    assert list(store.digests()) == [digest]


class FullDisk(FileStore):
    def adopt(self, temporary: Path, sha256: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_full_disk_at_rename_raises_an_error_and_leaves_no_files(tmp_path: Path) -> None:
    store = FullDisk(tmp_path)
    with pytest.raises(StorageFullError):
        store.put([b"x"])
    assert list_files(store) == []


def test_disk_that_fills_during_a_write_raises_an_error(tmp_path: Path) -> None:
    """The test simulates a full disk by limiting files to ten bytes."""
    store = FileStore(tmp_path)
    upload, (soft, hard) = store.begin_upload(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(StorageFullError):
            upload.write(b"eleven byte")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list_files(store) == []


def test_damage_that_preserves_size_and_modification_time_is_detected(store: FileStore) -> None:
    """Even if a damaged file's modification time is restored, its inode's change time differs."""
    stored = store.put([b"precious"])
    list(store.open_blocks(stored.sha256))
    (path,) = list_files(store)
    before = path.stat()
    path.write_bytes(b"Precious")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(CorruptError):
        store.open_blocks(stored.sha256)


def test_truncated_or_linked_files_are_corrupt(store: FileStore, tmp_path: Path) -> None:
    stored = store.put([b"precious"])
    (path,) = list_files(store)
    path.write_bytes(b"prec")
    with pytest.raises(CorruptError):
        store.open_blocks(stored.sha256)
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(CorruptError):
        store.open_blocks(stored.sha256)


def test_only_stale_temporary_files_are_swept(store: FileStore) -> None:
    """A temporary file that is less than an hour old may be in use."""
    stale, current = store.begin_upload(), store.begin_upload()
    stale.write(b"dead")
    current.write(b"alive")
    now = 1_000_000_000.0
    first, second = sorted(store.tmp.iterdir(), key=lambda path: path.read_bytes() != b"dead")
    os.utime(first, (now - 3601, now - 3601))
    os.utime(second, (now - 3599, now - 3599))
    assert store.sweep(now) == 1
    assert not first.exists()
    assert current.finish().size == 5
    stale.abort()


def test_24_mib_file_is_streamed_with_less_than_2_mib_of_memory(store: FileStore) -> None:
    block = bytes(BLOCK)
    tracemalloc.start()
    stored = store.put(block for _ in range(96))
    total = sum(len(part) for part in store.open_blocks(stored.sha256))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == stored.size == 96 * BLOCK
    assert peak < 2 * 1024 * 1024
