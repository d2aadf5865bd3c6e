"""Copy table rows in resumable batches, copy artifact files, then compare both sides by hash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

from django.conf import settings
from django.db import transaction

from artifacts.core.bucket import BucketAddressError, parse_bucket
from artifacts.core.store import ByteStore
from artifacts.models import Artifact
from artifacts.storage.content import byte_store, open_store
from capabilities.core.message import UnreadableError
from routing_admin.console.backups.data_transfer.rows import DifferenceError, compare
from routing_admin.console.backups.data_transfer.streams import TextDigest, digest_table, read_batches, write_batches
from routing_admin.console.backups.data_transfer.tables import Table, list_references, table_alias
from routing_admin.console.backups.data_transfer.target import ALIASES, Destination, MoveError
from routing_admin.platform.databases.progress import WorkProgress

# Number of batches per transaction. While the target inserts one batch, the next one is formatted.
BATCHES = 10


def copy_rows(target: Destination, table: Table, counter: WorkProgress) -> TextDigest | None:
    """Copy the rows that the target lacks.

    Return their digest, or None if an earlier run already copied some of them.
    """
    target_alias, digest = ALIASES[table_alias(table)], TextDigest()
    mark = target.read_marker(target_alias, table._meta.db_table)
    batches = read_batches(table, table_alias(table), mark)
    # Foreign keys are checked at the end of a transaction, so a table with references to itself needs a single
    # transaction.
    at_once = None if table in list_references(table) else BATCHES - 1
    for batch in batches:
        with transaction.atomic(using=target_alias):
            last = write_batches(table, target_alias, chain([batch], islice(batches, at_once)), digest, counter)
            # The marker is written in the same transaction as the rows, so an interrupted copy resumes after the last
            # stored row.
            target.write_marker(target_alias, table._meta.db_table, last)
    return digest if mark is None else None


def verify_rows(table: Table, digest: TextDigest | None, counter: WorkProgress) -> int:
    """Compare a table's rows in source and target. Return the number of rows. Raise `MoveError` if the rows differ."""
    # A resumed copy has read only some of the rows, so all rows of the source must be read again.
    source_digest = digest_table(table, table_alias(table), counter) if digest is None else digest
    try:
        return compare(table, source_digest, ALIASES[table_alias(table)], counter)
    except DifferenceError as error:
        raise MoveError(f"{error} Empty the target and start again.") from None


FILES = "files"
"""The value of the option `--artifacts` that selects the data directory."""


def open_target_store(address: str) -> ByteStore:
    """Open the store in the bucket at this URL or, for `files`, in the data directory, and test the connection.

    Raise `MoveError` if the URL is invalid or names the store that the installation already uses.
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
    """Yield each artifact's hash once, including deleted artifacts, which can be restored."""
    return Artifact.objects.order_by("sha256").values_list("sha256", flat=True).distinct().iterator()


def check_store(store: ByteStore) -> None:
    """Raise `MoveError` if the store contains anything but the installation's artifacts."""
    for sha256 in store.digests():
        if not Artifact.objects.filter(sha256=sha256).exists():
            raise MoveError("The target of --artifacts is not empty: it contains other files.")


def copy_files(store: ByteStore, report: Callable[[int], None]) -> list[str]:
    """Copy the files that the target lacks. Return the hashes of unreadable files.

    `report` is called with the number of files processed so far.
    """
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
