"""File and bucket byte stores: bytes are stored completely or not at all, and never returned if damaged.

The bucket is on a real S3 server on this machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from artifacts.core.errors import CorruptError, MissingError, StorageFullError, StoreUnavailableError, TooLargeError
from artifacts.core.store import BLOCK, ByteStore, Stored
from artifacts.storage.bucket_store import BucketStore
from artifacts.storage.files import FileStore
from capabilities.core.message import UnreadableError
from tests.engines.s3 import s3_server
from tests.stored_bytes import list_places, overwrite

MISSING = hashlib.sha256(b"never stored").hexdigest()
# A size that needs more than one part in a multipart upload.
LARGE = 6 * 1024 * 1024

STORES: dict[str, Callable[[Path], ByteStore]] = {
    "files": lambda path: FileStore(path / "artifacts"),
    "s3": lambda path: BucketStore(s3_server().new_prefix(), path / "downloads"),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ByteStore:
    return STORES[request.param](tmp_path)


@pytest.mark.parametrize("kind", STORES)
def test_stored_bytes_can_be_read_from_any_offset(tmp_path_factory: pytest.TempPathFactory, kind: str) -> None:
    store = STORES[kind](tmp_path_factory.getbasetemp() / "roundtrip")

    # The bucket is slower and is therefore tested with fewer examples.
    @examples(max_examples=200 if kind == "files" else 25)
    @given(st.lists(st.binary(max_size=50), max_size=20), st.integers(0, 100))
    def check_roundtrip(blocks: list[bytes], offset: int) -> None:
        data = b"".join(blocks)
        stored = store.put(blocks)
        assert stored == Stored(hashlib.sha256(data).hexdigest(), len(data))
        assert b"".join(store.open_blocks(stored.sha256, offset)) == data[offset:]

    check_roundtrip()


def test_large_upload_is_one_object_named_by_its_hash(store: ByteStore) -> None:
    blocks = [bytes([number % 251]) * BLOCK for number in range(LARGE // BLOCK)]
    stored = store.put(blocks)
    assert stored.size == LARGE
    assert b"".join(store.open_blocks(stored.sha256)) == b"".join(blocks)
    assert b"".join(store.open_blocks(stored.sha256, LARGE - 3)) == blocks[-1][:3]
    assert store.put([b"".join(blocks)]) == stored
    assert [path.rpartition("/")[2] for path in list_places(store)] == [stored.sha256]
    assert list(store.digests()) == [stored.sha256]


@pytest.mark.parametrize("block", [10, LARGE], ids=["small", "large"])
def test_upload_over_the_limit_stops_reading_and_leaves_no_files(store: ByteStore, block: int) -> None:
    read: list[int] = []

    def endless() -> Iterator[bytes]:
        for number in range(1000):
            read.append(number)
            yield b"x" * block

    with pytest.raises(TooLargeError) as error:
        store.put(endless(), max_bytes=block * 2 + 5)
    assert error.value.limit == block * 2 + 5
    assert len(read) == 3
    assert list_places(store) == []
    assert store.put([b"x" * 25], max_bytes=25).size == 25


@pytest.mark.parametrize("size", [4, LARGE], ids=["small", "large"])
def test_aborted_or_failed_upload_leaves_no_files(store: ByteStore, size: int) -> None:
    before = s3_server().unfinished()
    with store.begin_upload() as upload:
        upload.write(bytes(size))

    def broken() -> Iterator[bytes]:
        yield bytes(size)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        store.put(broken())
    assert list_places(store) == []
    assert s3_server().unfinished() == before


def test_upload_can_be_finished_only_once(store: ByteStore) -> None:
    upload = store.begin_upload()
    upload.write(b"x")
    assert upload.sha256 == hashlib.sha256(b"x").hexdigest()
    stored = upload.finish()
    for call in (upload.finish, lambda: upload.write(b"y")):
        with pytest.raises(ValueError, match="finished"):
            call()
    upload.abort()
    store.verify(stored.sha256)


@pytest.mark.requirement("ABR-8.1", "MCR-E4")
@pytest.mark.parametrize("name", [MISSING, "../../etc/passwd", "", "A" * 64, "0" * 63, MISSING + "/x", MISSING + "\n"])
def test_unknown_hash_raises_missing_error_in_every_call(store: ByteStore, name: str) -> None:
    with pytest.raises(MissingError) as error:
        store.open_blocks(name)
    assert isinstance(error.value, UnreadableError)
    assert error.value.reason == "artifact_missing"
    assert not store.exists(name)
    assert not store.delete(name)
    for call in (store.size, store.verify):
        with pytest.raises(MissingError):
            call(name)
    for read in (store.reader, read_locally):
        with pytest.raises(MissingError), read(*([name] if read == store.reader else [store, name])):
            pass


def read_locally(store: ByteStore, sha256: str):  # type: ignore[no-untyped-def]
    return _LocalBytes(store, sha256)


class _LocalBytes:
    def __init__(self, store: ByteStore, sha256: str) -> None:
        self.store, self.sha256 = store, sha256

    def __enter__(self) -> bytes:
        with self.store.local_file(self.sha256) as path, path.open("rb") as file:
            return file.read()

    def __exit__(self, *exc: object) -> None:
        return None


def test_damaged_bytes_are_never_served(store: ByteStore) -> None:
    data = b"precious " * 1000
    stored = store.put([data])
    list(store.open_blocks(stored.sha256))
    overwrite(store, stored.sha256, data[:4000] + b"X" + data[4001:])
    with pytest.raises(CorruptError) as error:
        store.open_blocks(stored.sha256)
    assert error.value.reason == "artifact_corrupt"
    with pytest.raises(CorruptError), store.reader(stored.sha256):
        pass
    with pytest.raises(CorruptError), read_locally(store, stored.sha256):
        pass
    with pytest.raises(CorruptError):
        store.verify(stored.sha256)


def test_uploading_damaged_bytes_again_repairs_them(store: ByteStore) -> None:
    stored = store.put([b"precious"])
    overwrite(store, stored.sha256, b"damaged!")
    assert store.put([b"precious"]) == stored
    assert b"".join(store.open_blocks(stored.sha256)) == b"precious"


def test_second_delete_returns_false(store: ByteStore) -> None:
    stored = store.put([b"x" * (BLOCK + 1)])
    blocks = store.open_blocks(stored.sha256)
    first = next(blocks)
    assert store.delete(stored.sha256)
    assert not store.delete(stored.sha256)
    assert len(first + b"".join(blocks)) == BLOCK + 1
    with pytest.raises(MissingError):
        store.verify(stored.sha256)
    with pytest.raises(MissingError):
        store.open_blocks(stored.sha256)


def test_random_access_past_the_end_returns_fewer_bytes(store: ByteStore) -> None:
    stored = store.put([b"0123456789"])
    with store.reader(stored.sha256) as read_at:
        assert (read_at(2, 3), read_at(8, 5), read_at(50, 5), read_at(-4, 2)) == (b"234", b"89", b"", b"01")
    with read_locally(store, stored.sha256) as data:
        assert data == b"0123456789"
    assert store.size(stored.sha256) == 10


def test_random_access_reads_any_part_of_a_large_file(store: ByteStore) -> None:
    """The reads are out of order and cross the boundaries between cached blocks."""
    data = b"".join(number.to_bytes(4, "big") for number in range(LARGE // 4))
    stored = store.put([data])
    with store.reader(stored.sha256) as read_at:
        for start in (0, 5, BLOCK - 2, LARGE - 7, 3 * BLOCK, 5 * BLOCK + 1, 2, LARGE - 3 * BLOCK):
            assert read_at(start, 9) == data[start : start + 9]
        assert read_at(1, 2 * BLOCK) == data[1 : 1 + 2 * BLOCK]


def test_local_copy_is_removed_when_closed(store: ByteStore, tmp_path: Path) -> None:
    stored = store.put([b"0123456789"])
    before = sorted(tmp_path.rglob("*"))
    with store.local_file(stored.sha256) as path, path.open("rb") as file:
        assert file.fileno() > 2
        assert file.read() == b"0123456789"
    after = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert after == [path for path in before if path.is_file()]


def test_hash_listing_can_exclude_recently_stored_files(store: ByteStore) -> None:
    stored = store.put([b"x"])
    assert list(store.digests()) == [stored.sha256]
    assert list(store.digests(before=1.0)) == []
    assert list(store.digests(before=9e9)) == [stored.sha256]
    assert store.sweep() == 0
    store.check()


def test_store_error_messages_are_actionable_and_contain_no_path() -> None:
    full = (StorageFullError(), StorageFullError(9, 7), StorageFullError(9, 7, "reader"))
    errors = (TooLargeError(5), *full, MissingError(MISSING), CorruptError(MISSING), StoreUnavailableError("x"))
    for error in errors:
        assert str(error).count(".") >= 2
        assert "/" not in str(error)
        assert error.code.isidentifier()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StorageFullError(), "give it more space"),
        (StorageFullError(9, 7), "7 bytes of the quota of 9"),
        (StorageFullError(9, 7, "reader"), "The agent reader has used 7 of the 9 bytes"),
    ],
)
def test_storage_full_error_names_the_disk_or_the_exceeded_quota(error: StorageFullError, words: str) -> None:
    assert words in str(error)
