"""One upload into a bucket: in memory while it fits into a part, else in parts to `tmp/`, then to its hash."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from artifacts.core.errors import ArtifactError, TooLargeError
from artifacts.core.store import Stored
from artifacts.storage.bucket_client import PART, ObjectWriter, key_of

if TYPE_CHECKING:
    from artifacts.storage.bucket_store import BucketStore


class BucketUpload:
    """See the `Upload` port; nothing is under its hash before the whole is hashed and has come in whole."""

    def __init__(self, store: BucketStore, max_bytes: int) -> None:
        self._store, self._limit, self._size = store, max_bytes, 0
        self._hash = hashlib.sha256()
        self._waiting = bytearray()
        self._writer: ObjectWriter | None = None
        self._key = f"tmp/{secrets.token_hex(16)}"
        self._is_open = True

    @property
    def sha256(self) -> str:
        """The hash of what was written so far."""
        return self._hash.hexdigest()

    def write(self, block: bytes) -> None:
        """Takes the next bytes.

        Raises `TooLargeError`, `StorageFullError` or `StoreAwayError`, which forget what was written so far,
        `ValueError` after `finish`.
        """
        if not self._is_open:
            raise ValueError("The upload is finished already.")
        self._size += len(block)
        if self._size > self._limit:
            self.abort()
            raise TooLargeError(self._limit)
        self._hash.update(block)
        self._waiting += block
        if len(self._waiting) > PART:
            try:
                self._send()
            except ArtifactError:
                self.abort()
                raise

    def finish(self) -> Stored:
        """Makes the bytes be there under their hash; equal ones that were stored just now are left as they are.

        Raises `StorageFullError` or `StoreAwayError`, `ValueError` for an upload that is finished or given up.
        """
        if not self._is_open:
            raise ValueError("The upload is finished already.")
        stored = Stored(self.sha256, self._size)
        try:
            if self._store.is_fresh(stored.sha256):
                self.abort()
            elif self._writer is None:
                tag = self._store.client.put(key_of(stored.sha256), self._waiting)
                self._store.remember(stored.sha256, tag, stored.size)
            else:
                self._move(stored, self._writer)
        except ArtifactError:
            self.abort()
            raise
        self._is_open = False
        self._waiting = bytearray()
        return stored

    def abort(self) -> None:
        """Forgets the bytes; harmless after `finish`."""
        self._is_open = False
        self._waiting = bytearray()
        if self._writer is not None:
            self._writer.abort()
            self._writer = None

    def __enter__(self) -> BucketUpload:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._is_open:
            self.abort()

    def _send(self) -> None:
        """Hands on what waits; the package sends it when a part is full."""
        if self._writer is None:
            self._writer = self._store.client.begin(self._key)
        self._writer.write(self._waiting)
        self._waiting = bytearray()

    def _move(self, stored: Stored, writer: ObjectWriter) -> None:
        """Completes the object in `tmp/` and copies it to its hash."""
        self._send()
        writer.close()
        self._writer = None
        try:
            self._store.client.copy(self._key, key_of(stored.sha256))
            found = self._store.client.find(key_of(stored.sha256))
        finally:
            with suppress(ArtifactError):  # a sweep removes it
                self._store.client.delete(self._key)
        if found is not None and found.size == stored.size:
            self._store.remember(stored.sha256, found.tag, found.size)
