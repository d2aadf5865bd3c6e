"""Copy the bytes of artifacts from one store to another, by hash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from django.conf import settings

from artifacts.core.bucket import BucketAddressError, parse_bucket
from artifacts.core.store import ByteStore
from artifacts.models import Artifact
from artifacts.storage.content import byte_store, open_store
from capabilities.core.message import UnreadableError
from routing_admin.console.backups.data_transfer.target import MoveError

FILES = "files"
"""Value of `--artifacts` for the data directory."""


def open_target_store(address: str) -> ByteStore:
    """Return the store at a bucket's address, or in the data directory for `files`, after checking that it responds.

    Raise `MoveError` if the address is invalid or is the store that the installation already uses.
    """
    try:
        bucket = None if address == FILES else parse_bucket(address)
    except BucketAddressError as error:
        raise MoveError(f"--artifacts must be files or a bucket. {error}") from None
    if bucket == settings.ARTIFACTS_BUCKET:
        raise MoveError("The artifacts are already there. Leave out --artifacts.")
    store = open_store(bucket, Path(settings.DATA_DIR) / "artifacts")
    store.check()
    return store


def list_digests() -> Iterator[str]:
    """Yield the hash of every artifact once. Deleted artifacts are included, since they can be restored."""
    return Artifact.objects.order_by("sha256").values_list("sha256", flat=True).distinct().iterator()


def check_store(store: ByteStore) -> None:
    """Raise `MoveError` if the store contains anything but the installation's artifacts."""
    for sha256 in store.digests():
        if not Artifact.objects.filter(sha256=sha256).exists():
            raise MoveError("The target of --artifacts is not empty: it contains other files.")


def copy_files(store: ByteStore, report: Callable[[int], None]) -> list[str]:
    """Copy missing files and return the hashes of files that cannot be read. `report` receives the count so far."""
    source, unreadable = byte_store(), []
    for count, sha256 in enumerate(list_digests(), 1):
        try:
            if not store.exists(sha256):
                store.put(source.open_blocks(sha256))
        except UnreadableError:
            unreadable.append(sha256)
        report(count)
    return unreadable


def verify_files(store: ByteStore, unreadable: list[str]) -> int:
    """Read every copied file and return the number of files. Raise `MoveError` if a file is damaged."""
    count = 0
    for sha256 in list_digests():
        if sha256 in unreadable:
            continue
        try:
            store.verify(sha256)
        except UnreadableError:
            raise MoveError(
                f"The file with SHA-256 {sha256} is not copied completely. Run the command again."
            ) from None
        count += 1
    return count
