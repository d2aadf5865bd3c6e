"""Open artifacts: return the bytes, text, conversions and downloads for a database row."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from artifacts import extract
from artifacts.core.artifact import StoredArtifact, artifact_id
from artifacts.core.bucket import Bucket
from artifacts.core.detection.encodings import decode_text
from artifacts.core.detection.kinds import OCTET_STREAM
from artifacts.core.errors import MissingError
from artifacts.core.filenames import content_disposition
from artifacts.core.store import ByteStore
from artifacts.extract.drawing import draw_pages
from artifacts.extract.stored_results import StoredResults
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
from capabilities.runtime import owned


def byte_store() -> ByteStore:
    return open_store(settings.ARTIFACTS_BUCKET, Path(settings.DATA_DIR) / "artifacts")


@cache
def open_store(bucket: Bucket | None, root: Path) -> ByteStore:
    """Return the byte store in the bucket, or in the directory `root` if there is no bucket.

    Byte stores are cached, because each of them caches which bytes it has verified. The store in a bucket uses `root`
    only for temporary files.
    """
    if bucket is None:
        return FileStore(root)
    from artifacts.storage.bucket_store import BucketStore  # Only stores in buckets need the package `obstore`.

    return BucketStore(bucket, root / "downloads")


stored_pages = owned(lambda: StoredResults(Path(settings.DATA_DIR) / "thumbnails"))
"""Rendered pages of stored files, and notes on which files have no text. They are deleted together with the files."""


@value_class
class StoredContent:
    """Provides the content of a stored file. Nothing is read before it is requested."""

    store: ByteStore
    sha256: str
    size: int
    mime_type: str
    encoding: str | None

    def blob(self) -> Blob:
        return Blob(self.size, lambda: self.store.open_blocks(self.sha256), self.store.is_remote)

    def text(self) -> Text | None:
        if self.encoding:
            return decode_text(lambda: self.store.open_blocks(self.sha256), self.encoding)
        return self._extract()

    def render(self) -> Text | None:
        """Return the visible text: a web page's text without its markup, or the complete text of any other file."""
        return self._extract() if extract.can_extract(self.mime_type) else self.text()

    def convert(self, target: ConvertTo) -> Converted | None:
        with self.store.local_file(self.sha256) as path:
            return extract.convert_image(path, target, cache_key=self.sha256)

    def draw(self, target: ConvertTo, count: int) -> PageImages | None:
        with self.store.local_file(self.sha256) as path:
            return draw_pages(
                path, target, count=count, cache_key=self.sha256, stored=stored_pages(), mime_type=self.mime_type
            )

    def inspect(self) -> Inspection:
        with self.store.local_file(self.sha256) as path:
            return extract.inspect(path, self.mime_type, cache_key=self.sha256)

    def _extract(self) -> Text | None:
        if not extract.can_extract(self.mime_type):
            return None
        with self.store.local_file(self.sha256) as path:
            return extract.extract_text(
                path, self.mime_type, cache_key=self.sha256, stored=stored_pages(), encoding=self.encoding
            )


def health(sha256: str, store: ByteStore | None = None) -> str | None:
    """Return None if the bytes can be read, else `artifact_missing` or `artifact_corrupt`.

    The first call hashes all bytes. Later calls only check whether the file has changed.
    """
    try:
        with (store or byte_store()).reader(sha256):
            return None
    except UnreadableError as error:
        return error.reason


def open_artifact(row: Artifact) -> StoredArtifact:
    """Return the artifact with its content. If the bytes are missing or damaged, `unreadable` is set.

    A deleted or expired artifact counts as missing, even while its bytes still exist.
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


def build_file_part(row: Artifact) -> FilePart:
    return open_artifact(row).part()


@value_class
class RowStore:
    """An `ArtifactStore` that contains the artifacts that one agent may read by reference."""

    agent: str

    def row(self, ref: str) -> Artifact | None:
        """Return the database row for a reference, or None. An invalid reference is not looked up in the database."""
        return self._first(Artifact.objects.readable_by(self.agent), ref)

    def get_artifact(self, ref: str) -> StoredArtifact | None:
        row = self.row(ref)
        return open_artifact(row) if row is not None else None

    def part(self, ref: str) -> FilePart | None:
        """Return the artifact as a message part, which is marked as unreadable if the artifact is deleted or expired.

        Return None if no artifact that the agent may access has ever had this id.
        """
        row = self._first(Artifact.objects.open_to(self.agent), ref)
        return build_file_part(row) if row is not None else None

    def _first(self, rows: ArtifactQuerySet, ref: str) -> Artifact | None:
        file_id = artifact_id(ref)
        return rows.filter(pk=file_id).first() if file_id else None


# The code below parses byte ranges (RFC 9110 §14), which media players need for seeking.

ONE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class UnsatisfiableRangeError(Exception):
    """None of the requested bytes exist."""


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """Return the offset of the first requested byte, and the offset after the last one.

    Return None if the whole file must be sent, because no valid range or more than one range is requested.

    Raise `UnsatisfiableRangeError` if none of the requested bytes exist.
    """
    match = ONE_RANGE.fullmatch(header.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        start, stop = max(0, size - int(match[2])), size
    else:
        start, stop = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
        if match[2] and int(match[2]) < start:
            return None
    if start >= stop:
        raise UnsatisfiableRangeError
    return start, stop


def take_bytes(blocks: Iterator[bytes], count: int) -> Iterator[bytes]:
    for block in blocks:
        yield block[:count]
        count -= len(block)
        if count <= 0:
            return


# Downloads are sent in blocks, from synchronous or asynchronous views, with headers that prevent browsers from
# executing them.

SAFE_TYPES = frozenset(
    {
        *("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"),
        *("audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4", "audio/aac", "audio/webm"),
        *("video/mp4", "video/webm", "video/ogg", "video/quicktime", "application/pdf", "image/svg+xml"),
    }
)
"""Downloads keep these MIME types. Other files are sent as plain text or `application/octet-stream`. With the headers
below, even SVG cannot execute code."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}


PLAYABLE = frozenset(mime_type for mime_type in SAFE_TYPES if mime_type.startswith(("audio/", "video/")))
"""Audio and video types that pages offer to the browser's player."""


def download(request: HttpRequest, row: Artifact) -> HttpResponseBase:
    """Return the bytes of the file, or the requested range, as an attachment.

    Raise `MissingError` or `CorruptError` before anything is sent.
    """
    tag = f'"{row.sha256}"'
    range_header = request.headers.get("Range", "") if request.headers.get("If-Range", tag) == tag else ""
    try:
        part = parse_range(range_header, row.size)
    except UnsatisfiableRangeError:
        return HttpResponse(status=416, headers={**HEADERS, "Content-Range": f"bytes */{row.size}"})
    start, stop = part or (0, row.size)
    blocks = byte_store().open_blocks(row.sha256, start)
    if part:
        blocks = take_bytes(blocks, stop - start)
    body = iterate_async(blocks) if isinstance(request, ASGIRequest) else blocks
    response = StreamingHttpResponse(
        body, status=206 if part else 200, content_type=_content_type(row), headers=HEADERS
    )
    if part:
        response["Content-Range"] = f"bytes {start}-{stop - 1}/{row.size}"
    response["Accept-Ranges"], response["ETag"] = "bytes", tag
    response["Content-Length"] = str(stop - start)
    response["Content-Disposition"] = content_disposition(row.filename or row.id)
    return response


def _content_type(row: Artifact) -> str:
    text = "text/plain; charset=utf-8" if not row.is_binary and row.encoding.startswith("utf-8") else OCTET_STREAM
    return row.mime_type if row.mime_type in SAFE_TYPES else text


READERS = ThreadPoolExecutor(16, "download")
"""Threads for downloads only. A slow download from an unresponsive store must not block the threads that prepare model
calls."""


async def iterate_async(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the blocks. Each is read in another thread, so that a slow disk does not block the event loop."""
    read = sync_to_async(lambda: next(blocks, b""), thread_sensitive=False, executor=READERS)
    while block := await read():
        yield block
