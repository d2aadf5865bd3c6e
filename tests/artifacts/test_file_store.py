"""Bytes by their hash in files: whole or not at all, told when missing or damaged, never served then."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.core.errors import CorruptError, MissingError, StorageFullError, TooLargeError
from artifacts.core.store import BLOCK, Stored
from artifacts.storage.files import FileStore
from capabilities.core.message import UnreadableError

MISSING = hashlib.sha256(b"never stored").hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "artifacts")


def files_of(store: FileStore) -> list[Path]:
    return [path for path in store.root.rglob("*") if path.is_file()]


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(0, 100))
def test_what_is_put_comes_back_from_any_offset(tmp_path_factory, blocks: list[bytes], offset: int) -> None:
    """The hash and size are those of all blocks; reading starts where asked."""
    store = FileStore(tmp_path_factory.getbasetemp() / "roundtrip")
    data = b"".join(blocks)
    stored = store.put(blocks)
    assert stored == Stored(hashlib.sha256(data).hexdigest(), len(data))
    assert b"".join(store.open_blocks(stored.sha256, offset)) == data[offset:]


def test_equal_bytes_are_kept_once_under_their_hash_with_private_modes(store: FileStore) -> None:
    """`obj/ab/cd/<sha256>`, directories 0700, files 0600, nothing left behind."""
    first, second = store.put([b"same"]), store.put([b"sa", b"me"])
    assert first == second
    (path,) = files_of(store)
    digest = first.sha256
    assert path.relative_to(store.root) == Path("obj", digest[:2], digest[2:4], digest)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(p.stat().st_mode) for p in (store.root, store.tmp, path.parent)} == {0o700}
    assert list(store.digests()) == [digest]


def test_an_upload_over_the_limit_stops_while_reading_and_leaves_nothing(store: FileStore) -> None:
    """The first block over the limit is the last one read, whatever length was announced."""
    read: list[int] = []

    def endless() -> Iterator[bytes]:
        for number in range(1000):
            read.append(number)
            yield b"x" * 10

    with pytest.raises(TooLargeError) as told:
        store.put(endless(), max_bytes=25)
    assert told.value.limit == 25
    assert len(read) == 3
    assert files_of(store) == []
    assert store.put([b"x" * 25], max_bytes=25).size == 25


def test_an_upload_that_is_given_up_or_breaks_leaves_nothing(store: FileStore) -> None:
    """A client that goes away, an abort, an exception in the source: no object, no temporary file."""
    with store.begin_upload() as upload:
        upload.write(b"half")

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        store.put(broken())
    assert files_of(store) == []


class FullDisk(FileStore):
    """A store whose disk is full when the file gets its name."""

    def adopt(self, temporary: Path, sha256: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_and_the_temporary_file_removed(tmp_path: Path) -> None:
    """Storage full is an error of its own, and nothing half done stays."""
    store = FullDisk(tmp_path)
    with pytest.raises(StorageFullError):
        store.put([b"x"])
    assert files_of(store) == []


def test_a_disk_that_fills_while_writing_is_told(tmp_path: Path) -> None:
    """A real write that the kernel refuses: this process may write no file of more than ten bytes for a moment."""
    store = FileStore(tmp_path)
    upload, (soft, hard) = store.begin_upload(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(StorageFullError):
            upload.write(b"eleven byte")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files_of(store) == []


@pytest.mark.requirement("ABR-8.1", "MCR-E4")
@pytest.mark.parametrize("name", [MISSING, "../../etc/passwd", "", "A" * 64, "0" * 63, MISSING + "/x", MISSING + "\n"])
def test_bytes_that_are_not_there_are_missing_whatever_the_name(store: FileStore, name: str) -> None:
    """Only a hash ever reaches the file system; everything else is simply not found (decision 14)."""
    with pytest.raises(MissingError) as told:
        store.open_blocks(name)
    assert isinstance(told.value, UnreadableError)
    assert told.value.reason == "artifact_missing"
    assert not store.exists(name)
    assert not store.delete(name)


def test_damaged_bytes_are_never_served(store: FileStore) -> None:
    """Same size, another byte: the error comes before the first block, from every way of reading."""
    stored = store.put([b"precious " * 1000])
    (path,) = files_of(store)
    list(store.open_blocks(stored.sha256))
    with path.open("r+b") as file:
        file.seek(4000)
        file.write(b"X")
    with pytest.raises(CorruptError) as told:
        store.open_blocks(stored.sha256)
    assert told.value.reason == "artifact_corrupt"
    for read in (store.reader, store.local_path):
        with pytest.raises(CorruptError), read(stored.sha256):
            pass
    with pytest.raises(CorruptError):
        store.verify(stored.sha256)


def test_damage_that_keeps_size_and_time_is_found_too(store: FileStore) -> None:
    """Setting the time of change back does not hide a change: the inode's own time moved."""
    stored = store.put([b"precious"])
    list(store.open_blocks(stored.sha256))
    (path,) = files_of(store)
    before = path.stat()
    path.write_bytes(b"Precious")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(CorruptError):
        store.open_blocks(stored.sha256)


def test_truncated_and_linked_away_bytes_are_corrupt(store: FileStore, tmp_path: Path) -> None:
    """A cut file, and a symbolic link in an object's place, are not what was stored."""
    stored = store.put([b"precious"])
    (path,) = files_of(store)
    path.write_bytes(b"prec")
    with pytest.raises(CorruptError):
        store.open_blocks(stored.sha256)
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(CorruptError):
        store.open_blocks(stored.sha256)


def test_sending_damaged_bytes_again_heals_them(store: FileStore) -> None:
    """An upload of the same content replaces what no longer has its hash."""
    stored = store.put([b"precious"])
    (path,) = files_of(store)
    path.write_bytes(b"damaged!")
    assert store.put([b"precious"]) == stored
    assert b"".join(store.open_blocks(stored.sha256)) == b"precious"


def test_deleting_removes_the_bytes_once(store: FileStore) -> None:
    """True, then False; a reader that has begun still ends."""
    stored = store.put([b"x" * (BLOCK + 1)])
    blocks = store.open_blocks(stored.sha256)
    assert len(next(blocks)) == BLOCK
    assert store.delete(stored.sha256)
    assert not store.delete(stored.sha256)
    assert b"".join(blocks) == b"x"
    with pytest.raises(MissingError):
        store.verify(stored.sha256)


def test_random_access_reads_what_is_there(store: FileStore) -> None:
    """Fewer bytes only at the end; nonsense offsets are no error."""
    stored = store.put([b"0123456789"])
    with store.reader(stored.sha256) as read_at:
        assert (read_at(2, 3), read_at(8, 5), read_at(50, 5), read_at(-4, 2)) == (b"234", b"89", b"", b"01")
    with store.local_path(stored.sha256) as path:
        assert path.read_bytes() == b"0123456789"
    assert store.size(stored.sha256) == 10


def test_only_stale_temporary_files_are_swept(store: FileStore) -> None:
    """An upload of an hour ago died; one of now is on its way."""
    dead, alive = store.begin_upload(), store.begin_upload()
    dead.write(b"dead")
    alive.write(b"alive")
    now = 1_000_000_000.0
    first, second = sorted(store.tmp.iterdir(), key=lambda path: path.read_bytes() != b"dead")
    os.utime(first, (now - 3601, now - 3601))
    os.utime(second, (now - 3599, now - 3599))
    assert store.sweep(now) == 1
    assert not first.exists()
    assert alive.finish().size == 5
    dead.abort()


def test_memory_stays_flat_whatever_the_size(store: FileStore) -> None:
    """24 MiB in and out again with less than 2 MiB held."""
    block = bytes(BLOCK)
    tracemalloc.start()
    stored = store.put(block for _ in range(96))
    total = sum(len(part) for part in store.open_blocks(stored.sha256))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == stored.size == 96 * BLOCK
    assert peak < 2 * 1024 * 1024


def test_every_error_says_what_to_do_and_names_no_path() -> None:
    """What, where, what next; no traceback, no directory, no content."""
    for error in (TooLargeError(5), StorageFullError(), MissingError(MISSING), CorruptError(MISSING)):
        assert str(error).count(".") >= 2
        assert "/" not in str(error)
        assert error.code.isidentifier()
