"""Artifacts' bytes, carried from one store to another by their hash."""

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
"""What `--artifacts` calls the data directory."""


def open_target_store(address: str) -> ByteStore:
    """The store of an address, which answers. Raises `MoveError` for one that is none, or the installation's own."""
    try:
        bucket = None if address == FILES else parse_bucket(address)
    except BucketAddressError as problem:
        raise MoveError(f"--artifacts must be files or a bucket. {problem}") from None
    if bucket == settings.ARTIFACTS_BUCKET:
        raise MoveError("The artifacts are already there. Leave out --artifacts.")
    store = open_store(bucket, Path(settings.DATA_DIR) / "artifacts")
    store.check()
    return store


def list_digests() -> Iterator[str]:
    """The hash of every artifact, each once; deleted ones, too: they can be brought back."""
    return Artifact.objects.order_by("sha256").values_list("sha256", flat=True).distinct().iterator()


def check_store(store: ByteStore) -> None:
    """Raises `MoveError` where the store has bytes of anything else than these artifacts."""
    for sha256 in store.digests():
        if not Artifact.objects.filter(sha256=sha256).exists():
            raise MoveError("The target of --artifacts is not empty: it contains other files.")


def copy_files(store: ByteStore, tell: Callable[[int], None]) -> list[str]:
    """Carries what is not there yet; `tell` hears how many are. The hashes of files that cannot be read here either."""
    source, lost = byte_store(), []
    for count, sha256 in enumerate(list_digests(), 1):
        try:
            if not store.exists(sha256):
                store.put(source.open_blocks(sha256))
        except UnreadableError:
            lost.append(sha256)
        tell(count)
    return lost


def verify_files(store: ByteStore, lost: list[str]) -> int:
    """Reads every byte back; how many files. Raises `MoveError` for one that is not what it was."""
    count = 0
    for sha256 in list_digests():
        if sha256 in lost:
            continue
        try:
            store.verify(sha256)
        except UnreadableError:
            raise MoveError(
                f"The file with SHA-256 {sha256} is not copied completely. Run the command again."
            ) from None
        count += 1
    return count
