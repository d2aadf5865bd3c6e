"""Access to stored bytes without the product's code, for every kind of artifact store."""

from __future__ import annotations

import os
import time
from pathlib import Path

import obstore

from artifacts.core.store import ByteStore
from artifacts.storage.bucket_store import BucketStore
from artifacts.storage.files import FileStore
from tests.engines.s3 import s3_server


def path_in(store: FileStore, sha256: str) -> Path:
    return store.objects / sha256[:2] / sha256[2:4] / sha256


def overwrite(store: ByteStore, sha256: str, data: bytes) -> None:
    if isinstance(store, BucketStore):
        obstore.put(s3_server().raw(store.bucket), f"obj/{sha256}", data)
    elif isinstance(store, FileStore):
        path_in(store, sha256).write_bytes(data)


def list_places(store: ByteStore) -> list[str]:
    """Return the paths of everything in the store, complete or not, relative to the store's root."""
    if isinstance(store, BucketStore):
        return s3_server().keys(store.bucket)
    assert isinstance(store, FileStore)
    files = [Path(folder, name) for folder, _, names in os.walk(store.root) for name in names]
    return sorted(path.relative_to(store.root).as_posix() for path in files)


def list_unfinished(store: ByteStore) -> list[str]:
    """Return what unfinished or aborted uploads left in the store."""
    return [path for path in list_places(store) if path.startswith("tmp/")]


def age(store: ByteStore, sha256: str, seconds: float) -> None:
    moment = time.time() - seconds
    if isinstance(store, BucketStore):
        s3_server().date(store.bucket, f"obj/{sha256}", moment)
    elif isinstance(store, FileStore):
        os.utime(path_in(store, sha256), (moment, moment))
