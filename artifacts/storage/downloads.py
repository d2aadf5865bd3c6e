"""Stored bytes as a download that no browser runs (security reference §2.5), block by block, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from artifacts.core.detection.kinds import OCTET_STREAM
from artifacts.core.filenames import content_disposition
from artifacts.models import Artifact
from artifacts.storage.content import byte_store

SAFE_TYPES = frozenset(
    {
        *("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"),
        *("audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4", "audio/aac", "audio/webm"),
        *("video/mp4", "video/webm", "video/ogg", "video/quicktime", "application/pdf", "image/svg+xml"),
    }
)
"""Types that are said as they are; everything else is bytes. An attachment in a sandbox runs nothing, SVG included."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}


def download(request: HttpRequest, row: Artifact) -> StreamingHttpResponse:
    """The bytes as an attachment. Raises `MissingError` or `CorruptError` before anything is sent."""
    blocks = byte_store().open_blocks(row.sha256)
    body = in_turn(blocks) if isinstance(request, ASGIRequest) else blocks
    text = "text/plain; charset=utf-8" if not row.is_binary and row.encoding.startswith("utf-8") else OCTET_STREAM
    mime = row.mime_type if row.mime_type in SAFE_TYPES else text
    response = StreamingHttpResponse(body, content_type=mime, headers=HEADERS)
    response["Content-Length"] = str(row.size)
    response["Content-Disposition"] = content_disposition(row.filename or row.id)
    return response


async def in_turn(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The blocks, each read in a thread, so that a slow disk stops nobody else."""
    read = sync_to_async(lambda: next(blocks, b""), thread_sensitive=False)
    while block := await read():
        yield block
