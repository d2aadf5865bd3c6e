"""Stored bytes as a download that no browser runs (security reference §2.5), block by block, sync and async.

One range of them is sent alone, so that a player can seek.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from artifacts.core.detection.kinds import OCTET_STREAM
from artifacts.core.filenames import content_disposition
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from artifacts.storage.ranges import UnsatisfiableRangeError, cut, parse_range

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


PLAYABLE = frozenset(each for each in SAFE_TYPES if each.startswith(("audio/", "video/")))
"""Sound and film that a browser's player is offered."""


def download(request: HttpRequest, row: Artifact) -> HttpResponseBase:
    """The bytes, or the range of them that is asked for, as an attachment.

    Raises `MissingError` or `CorruptError` before anything is sent.
    """
    tag = f'"{row.sha256}"'
    wanted = request.headers.get("Range", "") if request.headers.get("If-Range", tag) == tag else ""
    try:
        part = parse_range(wanted, row.size)
    except UnsatisfiableRangeError:
        return HttpResponse(status=416, headers={**HEADERS, "Content-Range": f"bytes */{row.size}"})
    start, stop = part or (0, row.size)
    blocks = byte_store().open_blocks(row.sha256, start)
    if part:
        blocks = cut(blocks, stop - start)
    body = in_turn(blocks) if isinstance(request, ASGIRequest) else blocks
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
"""Threads of their own: downloads from a store that hangs must not take those in which calls are prepared."""


async def in_turn(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The blocks, each read in a thread, so that a slow disk stops nobody else."""
    read = sync_to_async(lambda: next(blocks, b""), thread_sensitive=False, executor=READERS)
    while block := await read():
        yield block
