"""From a row to what the cores know: the artifact, and the way to its bytes, its text and its other forms."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.conf import settings

from artifacts import extract
from artifacts.core.artifact import StoredArtifact, artifact_id
from artifacts.core.bucket import Bucket
from artifacts.core.detection.encodings import decode_blocks
from artifacts.core.errors import MissingError
from artifacts.core.store import ByteStore
from artifacts.models import Artifact, ArtifactQuerySet
from artifacts.storage.files import FileStore
from capabilities.core.message import (
    Blob,
    Converted,
    ConvertTo,
    FilePart,
    Inspection,
    PageImages,
    Text,
    UnreadableError,
)
from capabilities.core.values import value_class
from capabilities.core.vocabulary import Kind


def byte_store() -> ByteStore:
    """Where this installation keeps bytes."""
    return open_store(settings.ARTIFACTS_BUCKET, Path(settings.DATA_DIR) / "artifacts")


@cache
def open_store(bucket: Bucket | None, root: Path) -> ByteStore:
    """One store per bucket, or per directory without one, because a store remembers which bytes it found healthy.

    A bucket's store needs the directory for moments only.
    """
    if bucket is None:
        return FileStore(root)
    from artifacts.storage.bucket_store import BucketStore  # its package is loaded where there is a bucket

    return BucketStore(bucket, root / "downloads")


@value_class
class StoredContent:
    """The ways to a stored file's content; nothing is read before it is asked for."""

    store: ByteStore
    sha256: str
    size: int
    mime_type: str
    encoding: str | None

    def blob(self) -> Blob:
        """The bytes as stored."""
        return Blob(self.size, lambda: self.store.open_blocks(self.sha256), self.store.is_remote)

    def text(self) -> Text | None:
        """A text file's words, decoded; the words of a document; None where there are none."""
        if self.encoding:
            words = "".join(decode_blocks(self.store.open_blocks(self.sha256), self.encoding))
            return Text(words, self.encoding)
        return self._extract()

    def render(self) -> Text | None:
        """What a reader would see: a web page without its markup, else the text."""
        return self._extract() if extract.can_extract(self.mime_type) else self.text()

    def convert(self, target: ConvertTo) -> Converted | None:
        """The image in a form that satisfies the target; None when it cannot be had."""
        with self.store.local_file(self.sha256) as path:
            return extract.convert_image(path, target, cache_key=self.sha256)

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        """The first pages of a PDF as images; None when none can be had."""
        with self.store.local_file(self.sha256) as path:
            return extract.draw_pages(path, target, count=count, cache_key=self.sha256)

    def inspect(self) -> Inspection:
        """How long it plays, and whether it wants a password."""
        with self.store.local_file(self.sha256) as path:
            return extract.inspect(path, self.mime_type, cache_key=self.sha256)

    def _extract(self) -> Text | None:
        """The words that the extraction process finds; asked once for equal bytes."""
        if not extract.can_extract(self.mime_type):
            return None
        with self.store.local_file(self.sha256) as path:
            return extract.extract_text(path, self.mime_type, cache_key=self.sha256, encoding=self.encoding)


def health(sha256: str, store: ByteStore | None = None) -> str | None:
    """None when the bytes can be served, else `artifact_missing` or `artifact_corrupt`.

    Every byte is hashed the first time; afterwards only the file's identity is looked at.
    """
    try:
        with (store or byte_store()).reader(sha256):
            return None
    except UnreadableError as error:
        return error.reason


def open_artifact(row: Artifact) -> StoredArtifact:
    """The artifact as the cores know it, with its content; bytes that are gone or damaged are told beforehand.

    A deleted or expired one is gone, though its bytes may still wait for `prune`.
    """
    store = byte_store()
    content = None if row.is_gone else StoredContent(store, row.sha256, row.size, row.mime_type, row.encoding or None)
    return StoredArtifact(
        id=row.id,
        mime_type=row.mime_type,
        kind=Kind(row.kind),
        is_binary=row.is_binary,
        size=row.size,
        filename=row.filename or None,
        declared_mime_type=row.declared_mime_type or None,
        encoding=row.encoding or None,
        created_at=row.created_at.isoformat(),
        type=row.type or None,
        width=row.width,
        height=row.height,
        pages=row.pages,
        seconds=row.seconds,
        unreadable=health(row.sha256, store) if content else MissingError.code,
        content=content,
    )


def part_of(row: Artifact) -> FilePart:
    """The artifact as a part of a message."""
    return open_artifact(row).part()


@value_class
class RowStore:
    """The `ArtifactStore` port for one agent: what it may read by reference (CONTRACT §3)."""

    agent: str

    def row(self, ref: str) -> Artifact | None:
        """The row behind a reference; a word that cannot be one never reaches the database (decision 14)."""
        return self._first(Artifact.objects.readable_by(self.agent), ref)

    def get_artifact(self, ref: str) -> StoredArtifact | None:
        """The artifact, None when there is none that this agent may read."""
        row = self.row(ref)
        return open_artifact(row) if row is not None else None

    def part(self, ref: str) -> FilePart | None:
        """The artifact as a part of a message; a deleted or expired one is a part that says so (decision 16).

        None where there never was one, as far as this agent may know.
        """
        row = self._first(Artifact.objects.open_to(self.agent), ref)
        return part_of(row) if row is not None else None

    def _first(self, rows: ArtifactQuerySet, ref: str) -> Artifact | None:
        bare = artifact_id(ref)
        return rows.filter(pk=bare).first() if bare else None
