"""Draw a word in black letters of 5 × 7 dots on white, and encode the image as a PNG file or a video.

The video is an MP4 of three seconds in the H.264 baseline profile, written without an encoder library. Its first
picture consists of uncompressed samples (I_PCM macroblocks), and all other pictures repeat it. Every H.264 decoder must
support both. Section numbers refer to ITU-T H.264.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
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
"""Dot patterns of all letters in the probe words. Each number is a row, and its five bits are the dots from left to
right."""


def draw(word: str, width: int, height: int, scale: int) -> Raster:
    """Return a white image with the word in its centre. Each dot has `scale` × `scale` pixels.

    The word may be empty.
    """
    lines = [b"".join(_letter_row(letter, row, scale) for letter in word)[: -scale or None] for row in range(ROWS)]
    left, top = (width - len(lines[0])) // 2, (height - ROWS * scale) // 2
    blank = WHITE * width
    inked = (
        [(WHITE * left + pixels_row).ljust(width, WHITE) for pixels_row in lines for _ in range(scale)] if word else []
    )
    return [*(blank,) * top, *inked, *(blank,) * (height - top - len(inked))]


def _letter_row(letter: str, row: int, scale: int) -> bytes:
    bits = LETTERS[letter][row]
    dots = (BLACK if bits >> at & 1 else WHITE for at in reversed(range(COLUMNS)))
    # Add a gap after the letter.
    return b"".join(dot * scale for dot in dots) + WHITE * scale


def png(raster: Raster) -> bytes:
    header = struct.pack(">IIBBBBB", len(raster[0]), len(raster), 8, 0, 0, 0, 0)
    # Each row starts with its filter type, which is 0 for none.
    rows = b"".join(b"\x00" + row for row in raster)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


FRAMES, FRAMES_A_SECOND = 15, 5
TIMESCALE = 1000
BLOCK = 16
DARKEST, LIGHTEST, NO_COLOUR = 16, 235, 128
"""Video sample values for black, white, and no colour."""
IDR, PICTURE, SEQUENCE, PARAMETERS = 0x65, 0x41, 0x67, 0x68
"""The first byte of each type of NAL unit: a self-contained picture, a picture that refers to an earlier one, and the
sequence and picture parameter sets."""


class BitWriter:
    """Writes bits, the most significant bit first (section 7.2)."""

    def __init__(self) -> None:
        self._value, self._count = 1, 0  # The leading 1 preserves the zero bits that follow it.
        self._bytes = bytearray()

    def put(self, value: int, width: int) -> BitWriter:
        """Append a value as `width` bits, called u(n) in H.264."""
        self._value = self._value << width | value
        self._count += width
        return self

    def put_codes(self, *values: int) -> BitWriter:
        """Append values as Exp-Golomb codes, called ue(v) in H.264."""
        for value in values:
            self.put(value + 1, 2 * (value + 1).bit_length() - 1)
        return self

    def pad(self) -> BitWriter:
        return self.put(0, -self._count % 8)

    def put_bytes(self, data: bytes) -> BitWriter:
        self._flush()
        self._bytes += data
        return self

    def finish(self) -> bytes:
        """Return all bytes, padded with a 1 bit and zero bits (section 7.3.2.11)."""
        self.put(1, 1).pad()._flush()
        return bytes(self._bytes)

    def _flush(self) -> None:
        whole = self._value ^ 1 << self._count
        self._bytes += whole.to_bytes(self._count // 8, "big")
        self._value, self._count = 1, 0


def mp4(raster: Raster) -> bytes:
    """Return the image as a video of three seconds. Width and height must be multiples of 16."""
    width, height = len(raster[0]), len(raster)
    parameter_sets = _sequence(width // BLOCK, height // BLOCK), _parameters()
    pictures = [_first(raster), *(_unchanged(at, width * height // BLOCK**2) for at in range(1, FRAMES))]
    samples = [struct.pack(">I", len(sample)) + sample for sample in pictures]
    # The header contains the offset of the samples. Its length does not depend on this value, so measure it with an
    # offset of 0.
    start = len(_head(width, height, parameter_sets, samples, 0)) + 8
    return _head(width, height, parameter_sets, samples, start) + _box("mdat", *samples)


def _unit(kind: int, payload: bytes) -> bytes:
    out, zeros = bytearray((kind,)), 0
    for byte in payload:
        # Escape byte sequences that look like the start of a NAL unit (section 7.4.1).
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = 0 if byte else zeros + 1
    return bytes(out)


def _sequence(columns: int, rows: int) -> bytes:
    # These values select the baseline profile, level 3, and pictures in display order.
    bits = BitWriter().put(66, 8).put(0xC0, 8).put(30, 8).put_codes(0, 0, 2, 1).put(0, 1)
    return _unit(SEQUENCE, bits.put_codes(columns - 1, rows - 1).put(0b1100, 4).finish())


def _parameters() -> bytes:
    # These values select one slice per picture, and slice headers that can disable the deblocking filter.
    bits = BitWriter().put_codes(0, 0).put(0, 2).put_codes(0, 0, 0).put(0, 3).put_codes(0, 0, 0).put(0b100, 3)
    return _unit(PARAMETERS, bits.finish())


def _first(raster: Raster) -> bytes:
    bits = BitWriter().put_codes(0, 7, 0).put(0, 4).put_codes(0).put(0, 2).put_codes(0, 1)
    # The two colour planes have half the resolution and contain no colour.
    colours = bytes((NO_COLOUR,)) * (2 * (BLOCK // 2) ** 2)
    for top in range(0, len(raster), BLOCK):
        for left in range(0, len(raster[0]), BLOCK):
            block = b"".join(row[left : left + BLOCK] for row in raster[top : top + BLOCK])
            # Macroblock type 25 is I_PCM, which contains uncompressed samples.
            bits.put_codes(25).pad().put_bytes(block.translate(_LEVELS) + colours)
    return _unit(IDR, bits.finish())


_LEVELS = bytes(DARKEST + level * (LIGHTEST - DARKEST) // 255 for level in range(256))


def _unchanged(number: int, blocks: int) -> bytes:
    # All macroblocks are skipped, which repeats the previous picture.
    bits = BitWriter().put_codes(0, 5, 0).put(number % 16, 4).put(0, 3).put_codes(0, 1, blocks)
    return _unit(PICTURE, bits.finish())


def _box(name: str, *content: bytes) -> bytes:
    return struct.pack(">I", 8 + sum(map(len, content))) + name.encode() + b"".join(content)


def _full(name: str, *content: bytes, flags: int = 0) -> bytes:
    return _box(name, struct.pack(">I", flags), *content)


def _uint32s(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


MATRIX = _uint32s(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
LENGTH = FRAMES * TIMESCALE // FRAMES_A_SECOND


def _head(width: int, height: int, parameter_sets: tuple[bytes, bytes], samples: Iterable[bytes], start: int) -> bytes:
    movie = _uint32s(0, 0, TIMESCALE, LENGTH, 0x10000) + b"\x01\x00" + bytes(10) + MATRIX + bytes(24) + _uint32s(2)
    header = _uint32s(0, 0, 1, 0, LENGTH) + bytes(16) + MATRIX + _uint32s(width << 16, height << 16)
    track = _box("trak", _full("tkhd", header, flags=3), _media(width, height, parameter_sets, samples, start))
    return _box("ftyp", b"isom", _uint32s(512), b"isomiso2avc1mp41") + _box("moov", _full("mvhd", movie), track)


def _media(width: int, height: int, parameter_sets: tuple[bytes, bytes], samples: Iterable[bytes], start: int) -> bytes:
    sizes = [len(sample) for sample in samples]
    table = _box(
        "stbl",
        _full("stsd", _uint32s(1), _entry(width, height, *parameter_sets)),
        _full("stts", _uint32s(1, len(sizes), TIMESCALE // FRAMES_A_SECOND)),
        _full("stss", _uint32s(1, 1)),
        _full("stsc", _uint32s(1, 1, len(sizes), 1)),
        _full("stsz", _uint32s(0, len(sizes), *sizes)),
        _full("stco", _uint32s(1, start)),
    )
    data_information = _box("dinf", _full("dref", _uint32s(1), _full("url ", flags=1)))
    return _box(
        "mdia",
        _full("mdhd", _uint32s(0, 0, TIMESCALE, LENGTH), struct.pack(">HH", 0x55C4, 0)),
        _full("hdlr", bytes(4), b"vide", bytes(12), b"\x00"),
        _box("minf", _full("vmhd", bytes(8), flags=1), data_information, table),
    )


def _entry(width: int, height: int, sequence: bytes, parameters: bytes) -> bytes:
    decoder = _box(
        "avcC",
        bytes((1, *sequence[1:4], 0xFF, 0xE1)),
        *(struct.pack(">H", len(sequence)), sequence, b"\x01", struct.pack(">H", len(parameters)), parameters),
    )
    sides = struct.pack(">HH", width, height)
    # 0x480000 is 72 dpi as a 16.16 fixed-point number.
    fixed = bytes(6) + b"\x00\x01" + bytes(16) + sides + _uint32s(0x480000, 0x480000, 0) + b"\x00\x01"
    return _box("avc1", fixed, bytes(32), b"\x00\x18\xff\xff", decoder)
