"""Structures behind the first bytes of rarer images, sound and film; see `structures`. None raises."""

from __future__ import annotations

import re

from artifacts.core.detection.structures import Structure, be, le

LAST_SEGMENT = 20
"""Segments of a JPEG file that are looked at until its frame is found."""


def jpeg_ls(data: bytes) -> bool:
    """The frame header that comes first is one of JPEG-LS, marker F7 (ITU-T T.87 §C.1.1)."""
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
    """A storage, a depth and dimensions that exist (SGI image file format 1.00)."""
    return be(data, 2, 1) in (0, 1) and be(data, 3, 1) in (1, 2) and be(data, 4, 2) in (1, 2, 3)


def float_map(data: bytes) -> bool:
    """Width, height and a scale in decimal behind the letters (netpbm's pfm(5))."""
    return re.match(rb"P[Ff]\s[1-9][0-9]{0,6}\s+[1-9][0-9]{0,6}\s+-?[0-9.]{1,20}\s", data[:64]) is not None


def window_dump(data: bytes) -> bool:
    """A header of 100 bytes or more, a format and a depth that exist (XWDFile.h of X11)."""
    return 100 <= be(data, 0, 4) <= 4096 and be(data, 8, 4) in (0, 1, 2) and 1 <= be(data, 12, 4) <= 32


AC3_KBPS = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640)
"""kbit/s by half of a frame's size code (ATSC A/52, table 5.18)."""


def ac3(data: bytes) -> bool:
    """Two frames of AC-3 or of its successor, the second where the first ends (ATSC A/52 §5.3, §E.2)."""
    length = _ac3_frame(data)
    return length > 0 and data[length : length + 2] == data[:2]


def _ac3_frame(data: bytes) -> int:
    """The length in bytes of the frame at the beginning; 0 when there is none."""
    if be(data, 5, 1) >> 3 > 10:
        return ((be(data, 2, 2) & 0x7FF) + 1) * 2
    rate, code = be(data, 4, 1) >> 6, be(data, 4, 1) & 0x3F
    if rate == 3 or code >= 2 * len(AC3_KBPS):
        return 0
    kbps = AC3_KBPS[code >> 1]
    return 2 * (kbps * 2, kbps * 320 // 147 + (code & 1), kbps * 3)[rate]


def unit_stream(first: int, second: int, shift: int, mask: int) -> Structure:
    """A byte stream of H.264 or H.265 whose first two units are of these kinds (ITU-T H.264 and H.265, annex B)."""

    def is_kind(byte: bytes, kind: int) -> bool:
        return len(byte) == 1 and not byte[0] & 0x80 and byte[0] >> shift & mask == kind

    def stream(data: bytes) -> bool:
        following = data.find(b"\0\0\1", 5, 1024)
        return is_kind(data[4:5], first) and following > 0 and is_kind(data[following + 3 : following + 4], second)

    return stream


def nifti(data: bytes) -> bool:
    """The header's own length and one to seven dimensions, in either order of bytes (NIfTI-1)."""
    return any(read(data, 0, 4) == 348 and 1 <= read(data, 40, 2) <= 7 for read in (le, be))
