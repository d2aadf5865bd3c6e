"""Draw a word as an image, in letters of 5 × 7 dots, black on white, and write it as a PNG file."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

Raster = Sequence[bytes]
"""Rows of grey pixels, one byte each: 0 is black, 255 white."""

ROWS, COLUMNS = 7, 5
WHITE, BLACK = b"\xff", b"\x00"

LETTERS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "A": (0x0E, 0x11, 0x11, 0x1F, 0x11, 0x11, 0x11),
        "B": (0x1E, 0x11, 0x11, 0x1E, 0x11, 0x11, 0x1E),
        "C": (0x0E, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0E),
        "D": (0x1E, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1E),
        "E": (0x1F, 0x10, 0x10, 0x1E, 0x10, 0x10, 0x1F),
        "F": (0x1F, 0x10, 0x10, 0x1E, 0x10, 0x10, 0x10),
        "G": (0x0E, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0F),
        "H": (0x11, 0x11, 0x11, 0x1F, 0x11, 0x11, 0x11),
        "I": (0x0E, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0E),
        "J": (0x07, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0C),
        "K": (0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11),
        "L": (0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1F),
        "M": (0x11, 0x1B, 0x15, 0x15, 0x11, 0x11, 0x11),
        "N": (0x11, 0x19, 0x19, 0x15, 0x13, 0x13, 0x11),
        "O": (0x0E, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0E),
        "P": (0x1E, 0x11, 0x11, 0x1E, 0x10, 0x10, 0x10),
        "R": (0x1E, 0x11, 0x11, 0x1E, 0x14, 0x12, 0x11),
        "S": (0x0F, 0x10, 0x10, 0x0E, 0x01, 0x01, 0x1E),
        "T": (0x1F, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04),
        "U": (0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0E),
        "V": (0x11, 0x11, 0x11, 0x11, 0x11, 0x0A, 0x04),
        "W": (0x11, 0x11, 0x11, 0x15, 0x15, 0x1B, 0x11),
        "Y": (0x11, 0x11, 0x0A, 0x04, 0x04, 0x04, 0x04),
    }
)
"""The letters that the words use. Each row of dots is a number, whose five bits are the dots from left to right."""


def draw(word: str, width: int, height: int, scale: int) -> Raster:
    """Return a white image with the word in its centre, in dots of `scale` pixels. An empty word leaves it white."""
    lines = [b"".join(_row_of(letter, row, scale) for letter in word)[: -scale or None] for row in range(ROWS)]
    left, top = (width - len(lines[0])) // 2, (height - ROWS * scale) // 2
    blank = WHITE * width
    inked = (
        [(WHITE * left + pixels_row).ljust(width, WHITE) for pixels_row in lines for _ in range(scale)] if word else []
    )
    return [*(blank,) * top, *inked, *(blank,) * (height - top - len(inked))]


def _row_of(letter: str, row: int, scale: int) -> bytes:
    bits = LETTERS[letter][row]
    dots = (BLACK if bits >> at & 1 else WHITE for at in reversed(range(COLUMNS)))
    # Including the gap after the letter.
    return b"".join(dot * scale for dot in dots) + WHITE * scale


def png(raster: Raster) -> bytes:
    header = struct.pack(">IIBBBBB", len(raster[0]), len(raster), 8, 0, 0, 0, 0)
    # Each row starts with its filter type, 0 for none.
    rows = b"".join(b"\x00" + row for row in raster)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
