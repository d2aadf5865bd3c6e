"""Distinguish audio from video in containers for both: MP4 and related formats, WebM, Matroska, Ogg and ASF.

The work is bounded for any input. The functions return None if the bytes do not reveal the contents, and the caller
then uses the type implied by the signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifacts.core.detection.structures import Structure, aac_frames, be, le, mp3_frames
from artifacts.core.store import ReadAt

MAX_BOXES = 200

BRANDS = {
    b"heic": "image/heic", b"heix": "image/heic", b"heim": "image/heic", b"heis": "image/heic", b"hevc": "image/heic",
    b"hevx": "image/heic", b"mif1": "image/heif", b"msf1": "image/heif", b"heif": "image/heif",
    b"avif": "image/avif", b"avis": "image/avif", b"crx ": "image/x-canon-cr3",
    b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"M4P ": "audio/mp4", b"F4A ": "audio/mp4",
    b"mjp2": "video/mj2", b"mj2s": "video/mj2", b"KDDI": "video/3gpp2", b"kddi": "video/3gpp2",
    b"qt  ": "video/quicktime", b"3gp": "video/3gpp", b"3g2": "video/3gpp2", b"3gs": "video/3gpp",
    b"jp2 ": "image/jp2", b"jpx ": "image/jp2",
}  # fmt: skip
"""Maps the brand of an ISO media file (four bytes or the first three) to its type. Files with other brands are MP4."""


def iso_media_type(read_at: ReadAt, size: int) -> str | None:
    """Determine the type of an ISO media file from its brands. If all its tracks are audio, return an audio type."""
    head = read_at(0, min(size, 4096))
    length = min(be(head, 0, 4), len(head))
    brands = [head[8:12], *(head[offset : offset + 4] for offset in range(16, length, 4))]
    major = BRANDS.get(brands[0]) or BRANDS.get(brands[0][:3])
    # The brand `mif1` only means that the file is an image. The compatible brands identify the codec.
    if major == "image/heif":
        compatible = {BRANDS.get(brand) for brand in brands}
        return "image/avif" if "image/avif" in compatible else "image/heic" if "image/heic" in compatible else major
    if major and not major.startswith("video/"):
        return major
    tracks = set(_track_kinds(read_at, size))
    if major in (None, "video/3gpp", "video/3gpp2") and tracks == {b"soun"}:
        return "audio/mp4" if major is None else major.replace("video/", "audio/")
    return major or ("video/mp4" if tracks else None)


def _boxes(read_at: ReadAt, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    for _ in range(MAX_BOXES):
        header = read_at(start, 16) if start + 8 <= end else b""
        if len(header) < 8:
            return
        length, skip = be(header, 0, 4), 8
        if length == 1:
            length, skip = be(header, 8, 8), 16
        # Length 0 means that the box extends to the end of its parent. Length 1 means that a 64-bit length follows.
        length = length or end - start
        if length < skip:
            return
        yield header[4:8], start + skip, min(start + length, end)
        start += length


def _track_kinds(read_at: ReadAt, size: int) -> Iterator[bytes]:
    level = [(start, end) for name, start, end in _boxes(read_at, 0, size) if name == b"moov"][:1]
    # The handler type in the `hdlr` box of each track is `soun` or `vide`.
    for box_name in (b"trak", b"mdia", b"hdlr"):
        inner = [box for start, end in level for box in _boxes(read_at, start, end)]
        level = [(start, end) for name, start, end in inner if name == box_name][:64]
    for start, _ in level:
        kind = read_at(start, 12)[8:12]
        if kind in (b"soun", b"vide"):
            yield kind


def id3_type(read_at: ReadAt, size: int) -> str | None:
    """Determine the type of the data that follows an ID3v2 tag, which can precede any format (ID3v2.4 §3.1)."""
    head = read_at(0, 10)
    # The tag size is stored in the lower seven bits of four bytes. A flag indicates a footer of ten more bytes.
    length = sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=False))
    start = 10 + length + (10 if head[5:6] and head[5] & 0x10 else 0)
    audio = read_at(start, 16 * 1024).lstrip(b"\0")
    for mark, mime in ((b"fLaC", "audio/flac"), (b"MAC ", "audio/x-ape"), (b"wvpk", "audio/x-wavpack")):
        if audio.startswith(mark):
            return mime
    return "audio/aac" if aac_frames(audio) else "audio/mpeg" if mp3_frames(audio) else None


def ebml_type(read_at: ReadAt, size: int) -> str | None:
    """Return the WebM or Matroska type. The tracks determine whether it is audio or video."""
    head = read_at(0, min(size, 64 * 1024))
    doctype = head.find(b"\x42\x82", 0, 128)
    name = head[doctype + 3 : doctype + 3 + (head[doctype + 2] & 0x7F)] if 0 <= doctype < len(head) - 2 else b""
    family = {b"webm": "webm", b"matroska": "x-matroska"}.get(name.rstrip(b"\0"))
    if family is None:
        return None
    tracks = head.find(b"\x16\x54\xae\x6b")
    kinds = set(_ebml_track_kinds(head, tracks)) if tracks >= 0 else set()
    if not kinds and family == "webm":
        return None
    return f"audio/{family}" if kinds == {2} else f"video/{family}"


def _ebml_track_kinds(head: bytes, tracks: int) -> Iterator[int]:
    # Track type 1 is video, and 2 is audio.
    offset = head.find(b"\xae", tracks + 4)
    for _ in range(64):
        if offset < 0:
            return
        kind = head.find(b"\x83\x81", offset, offset + 64)
        if kind >= 0 and kind + 2 < len(head):
            yield head[kind + 2]
        offset = head.find(b"\xae", offset + 1 if kind < 0 else kind + 3)


def ogg_type(read_at: ReadAt, size: int) -> str | None:
    """Determine the Ogg audio or video type from the first packet of each stream."""
    head = read_at(0, min(size, 8192))
    packets = [head[at + 28 : at + 36] for at in _page_starts(head)]
    video = any(packet[:7] in (b"\x80theora", b"BBCD\0\0\0") or packet[:5] == b"\x01vide" for packet in packets)
    return "video/ogg" if video else "audio/ogg"


def _page_starts(head: bytes) -> Iterator[int]:
    # The first page of each stream is at the beginning of the file and has one segment.
    offset = 0
    for _ in range(16):
        if head[offset : offset + 4] != b"OggS" or len(head) < offset + 28 or not head[offset + 5] & 2:
            return
        yield offset
        segments = head[offset + 26]
        offset += 27 + segments + sum(head[offset + 27 : offset + 27 + segments])


ASF_VIDEO = bytes.fromhex("c0ef19bc4d5bcf11a8fd00805f5c442b")
ASF_AUDIO = bytes.fromhex("409e69f84d5bcf11a8fd00805f5c442b")


def asf_type(read_at: ReadAt, size: int) -> str | None:
    """Determine the ASF audio or video type from the stream types in the header."""
    head = read_at(0, min(size, 64 * 1024))
    if ASF_VIDEO in head:
        return "video/x-ms-wmv"
    return "audio/x-ms-wma" if ASF_AUDIO in head else None


# Predicates for less common image, audio and video formats, like those in `structures.py`. They never raise an
# exception.

LAST_SEGMENT = 20
"""Maximum number of JPEG segments to search for the frame header."""


def jpeg_ls(data: bytes) -> bool:
    # A JPEG-LS file has the marker F7 in the first frame header (ITU-T T.87 §C.1.1).
    at = 2
    for _ in range(LAST_SEGMENT):
        marker, length = be(data, at, 2), be(data, at + 2, 2)
        if not 0xFFC0 <= marker <= 0xFFFE or length < 2:
            return False
        if marker == 0xFFF7:
            return True
        at += 2 + length
    return False


def sgi(data: bytes) -> bool:
    # A valid SGI header has a known storage format, depth and number of dimensions (SGI image file format 1.00).
    return be(data, 2, 1) in (0, 1) and be(data, 3, 1) in (1, 2) and be(data, 4, 2) in (1, 2, 3)


def float_map(data: bytes) -> bool:
    # In a valid PFM image, the width, height and scale follow the magic letters in decimal (netpbm's pfm(5)).
    return re.match(rb"P[Ff]\s[1-9][0-9]{0,6}\s+[1-9][0-9]{0,6}\s+-?[0-9.]{1,20}\s", data[:64]) is not None


def window_dump(data: bytes) -> bool:
    # A valid X window dump has a header of at least 100 bytes, and a known format and depth (XWDFile.h of X11).
    return 100 <= be(data, 0, 4) <= 4096 and be(data, 8, 4) in (0, 1, 2) and 1 <= be(data, 12, 4) <= 32


AC3_KBPS = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640)
"""Bit rates in kbit/s, indexed by half the frame size code (ATSC A/52, table 5.18)."""


def ac3(data: bytes) -> bool:
    # A valid AC-3 or E-AC-3 file has two consecutive frames (ATSC A/52 §5.3, §E.2).
    length = _ac3_frame(data)
    return length > 0 and data[length : length + 2] == data[:2]


def _ac3_frame(data: bytes) -> int:
    # A bit stream id above 10 indicates E-AC-3, whose header contains the frame size.
    if be(data, 5, 1) >> 3 > 10:
        return ((be(data, 2, 2) & 0x7FF) + 1) * 2
    rate, code = be(data, 4, 1) >> 6, be(data, 4, 1) & 0x3F
    if rate == 3 or code >= 2 * len(AC3_KBPS):
        return 0
    kbps = AC3_KBPS[code >> 1]
    return 2 * (kbps * 2, kbps * 320 // 147 + (code & 1), kbps * 3)[rate]


def unit_stream(first: int, second: int, shift: int, mask: int) -> Structure:
    """Return a predicate for H.264 or H.265 byte streams (annex B) whose first NAL units have these two types."""

    def is_kind(byte: bytes, kind: int) -> bool:
        return len(byte) == 1 and not byte[0] & 0x80 and byte[0] >> shift & mask == kind

    def stream(data: bytes) -> bool:
        following = data.find(b"\0\0\1", 5, 1024)
        return is_kind(data[4:5], first) and following > 0 and is_kind(data[following + 3 : following + 4], second)

    return stream


def nifti(data: bytes) -> bool:
    # A valid NIfTI header contains its own length and one to seven dimensions, in either byte order (NIfTI-1).
    return any(read(data, 0, 4) == 348 and 1 <= read(data, 40, 2) <= 7 for read in (le, be))
