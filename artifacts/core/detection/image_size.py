"""Read an image's width and height from its header without decoding pixels.

Page counts and durations require a parser and are measured in the extraction process (`artifacts/extract`).
"""

from __future__ import annotations

from collections.abc import Callable

from artifacts.core.detection.structures import be, le
from artifacts.core.store import ReadAt

Size = tuple[int, int]
MAX_SEGMENTS = 200
_NO_FRAME = {0xC4, 0xC8, 0xCC}


def image_size(head: bytes, mime_type: str, read_at: ReadAt | None = None) -> Size | None:
    """Return the width and height in pixels before any EXIF rotation, or None if the header does not state them.

    `read_at` reads further parts of the file, such as the frame header of a JPEG with large metadata, or the directory
    at the end of a TIFF.
    """
    reader = _READERS.get(mime_type)
    if reader is None:
        return None
    size = reader(read_at or (lambda offset, length: head[offset : offset + length]), head)
    return size if size and min(size) > 0 else None


def _png(_: ReadAt, head: bytes) -> Size:
    return be(head, 16, 4), be(head, 20, 4)


def _gif(_: ReadAt, head: bytes) -> Size:
    return le(head, 6, 2), le(head, 8, 2)


def _bmp(_: ReadAt, head: bytes) -> Size:
    if le(head, 14, 4) == 12:
        return le(head, 18, 2), le(head, 20, 2)
    height = int.from_bytes(head[22:26], "little", signed=True)
    return le(head, 18, 4), abs(height)


def _webp(_: ReadAt, head: bytes) -> Size | None:
    # The extended, lossless and lossy variants of WebP store the size in different formats.
    if head[12:16] == b"VP8X":
        return 1 + le(head, 24, 3), 1 + le(head, 27, 3)
    if head[12:16] == b"VP8L":
        bits = le(head, 21, 4)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if head[12:16] == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        return le(head, 26, 2) & 0x3FFF, le(head, 28, 2) & 0x3FFF
    return None


def _jpeg(read_at: ReadAt, _: bytes) -> Size | None:
    # The first frame header contains the size. Metadata segments of any length may precede it.
    offset = 2
    for _unused in range(MAX_SEGMENTS):
        segment = read_at(offset, 9)
        if len(segment) < 9 or segment[0] != 0xFF:
            return None
        # Three markers in this range are not frame headers: Huffman tables, a reserved marker, and arithmetic coding.
        if 0xC0 <= segment[1] <= 0xCF and segment[1] not in _NO_FRAME:
            return be(segment, 7, 2), be(segment, 5, 2)
        offset += 1 if segment[1] == 0xFF else 2 + be(segment, 2, 2)
    return None


def _tiff(read_at: ReadAt, head: bytes) -> Size | None:
    # Tags 256 and 257 of the first image directory are the width and height.
    number = le if head[:2] == b"II" else be
    start = number(head, 4, 4)
    values: dict[int, int] = {}
    entries = read_at(start + 2, 12 * min(number(read_at(start, 2), 0, 2), 100))
    for offset in range(0, len(entries) - 11, 12):
        tag, kind = number(entries, offset, 2), number(entries, offset + 2, 2)
        if tag in (256, 257):
            values[tag] = number(entries, offset + 8, 2 if kind == 3 else 4)
    return (values[256], values[257]) if len(values) == 2 else None


def _heif(_: ReadAt, head: bytes) -> Size | None:
    # Tiles and thumbnails have sizes, too, so use the largest size.
    sizes: list[Size] = []
    at = head.find(b"ispe")
    while at >= 0 and len(sizes) < 64:
        sizes.append((be(head, at + 8, 4), be(head, at + 12, 4)))
        at = head.find(b"ispe", at + 4)
    return max(sizes, key=lambda size: size[0] * size[1], default=None)


def _icon(_: ReadAt, head: bytes) -> Size | None:
    # Use the largest icon. A side of 0 means 256 pixels.
    count = min(le(head, 4, 2), 64)
    entries = [head[6 + 16 * index : 8 + 16 * index] for index in range(count)]
    return max(((entry[0] or 256, entry[1] or 256) for entry in entries if len(entry) == 2), default=None)


def _psd(_: ReadAt, head: bytes) -> Size:
    return be(head, 18, 4), be(head, 14, 4)


_READERS: dict[str, Callable[[ReadAt, bytes], Size | None]] = {
    "image/png": _png,
    "image/apng": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
    "image/bmp": _bmp,
    "image/tiff": _tiff,
    "image/heic": _heif,
    "image/heif": _heif,
    "image/avif": _heif,
    "image/x-icon": _icon,
    "image/vnd.adobe.photoshop": _psd,
}
"""Maps image types to functions that read the size from the header."""
