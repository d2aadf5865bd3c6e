"""What lies in the store and belongs to no artifact any more: bytes without a row, thumbnails without bytes.

Bytes come before their row, so a crash between the two, or an upload that the quota refused, leaves some behind.
What was stored within the last hour may still be waiting for its row and stays.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from django.conf import settings

from artifacts.core.errors import MissingError
from artifacts.models import Artifact
from artifacts.storage.content import byte_store

GRACE_SECONDS = 3600.0
BATCH = 500


def sweep_bytes(now: float) -> tuple[int, int]:
    """Removes bytes that no artifact, deleted ones included, has had for an hour; (how many files, bytes)."""
    store, count, size = byte_store(), 0, 0
    digests = store.digests(before=now - GRACE_SECONDS)
    while some := list(islice(digests, BATCH)):
        for sha256 in set(some) - _digests_in_use(some):
            with suppress(MissingError):  # outside of a transaction: the store may be slow
                found = store.size(sha256)
                if not _digests_in_use([sha256]):
                    size, count = size + found, count + store.delete(sha256)
    return count, size


def sweep_thumbnails() -> int:
    """Removes thumbnails of bytes that are gone, and those that were never finished; how many."""
    store, swept = byte_store(), 0
    for path in (Path(settings.DATA_DIR) / "thumbnails").glob("??/*.part"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - GRACE_SECONDS:
                path.unlink()
                swept += 1
    for path in _thumbnails():
        if not store.exists(path.stem):
            path.unlink(missing_ok=True)
            swept += 1
    return swept


def _digests_in_use(digests: list[str]) -> set[str]:
    return set(Artifact.objects.filter(sha256__in=digests).values_list("sha256", flat=True))


def _thumbnails() -> Iterator[Path]:
    return (Path(settings.DATA_DIR) / "thumbnails").glob("??/*.png")
