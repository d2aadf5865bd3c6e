"""A simulated model that reads the product's probe files: images, pages, audio recordings and videos.

It shares no code with the functions that create these files.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from pypdf import PdfReader

from capabilities.core.providers import probes
from capabilities.core.providers.probes.drawing import LETTERS
from tests.lab.received_requests import Media

SIDE = 16
PCM_BYTES, COLOUR_BYTES, TYPE_BYTES = 256, 128, 2
"""Sizes in bytes of a raw macroblock's parts: luma samples, chroma samples, and the header before them."""


def word_in(media: Media) -> str:
    """Return the word that the file shows or speaks, or an empty string if there is none."""
    if media.data.startswith(b"\x89PNG"):
        return _read_grey(_rows_of_png(media.data))
    if media.data.startswith(b"%PDF"):
        return PdfReader(io.BytesIO(media.data), strict=True).pages[0].extract_text().strip()
    if media.data.startswith(b"RIFF"):
        return _hear(media.data)
    return _read_grey(_rows_of_film(media.data, width=320, height=128))


def _rows_of_png(data: bytes) -> list[bytes]:
    image = Image.open(io.BytesIO(data)).convert("L")
    grey = image.tobytes()
    return [grey[at : at + image.width] for at in range(0, len(grey), image.width)]


def _rows_of_film(data: bytes, width: int, height: int) -> list[bytes]:
    """Return the pixel rows of an MP4 file's first frame.

    The macroblocks are located from the end of the frame, so that the headers before them need not be parsed.
    """
    start = data.index(b"mdat") + 4
    size = int.from_bytes(data[start : start + 4], "big")
    unit = data[start + 4 : start + 4 + size].replace(b"\x00\x00\x03", b"\x00\x00")[:-1]
    columns, step = width // SIDE, PCM_BYTES + COLOUR_BYTES + TYPE_BYTES
    count = columns * height // SIDE
    blocks = [unit[len(unit) - (count - at) * step + TYPE_BYTES :][:PCM_BYTES] for at in range(count)]
    return [
        b"".join(blocks[y // SIDE * columns + column][y % SIDE * SIDE :][:SIDE] for column in range(columns))
        for y in range(height)
    ]


def _read_grey(rows: Sequence[bytes]) -> str:
    dark = [[pixel < 128 for pixel in row] for row in rows]
    inked = [row for row in dark if any(row)]
    if not inked:
        return ""
    dot = len(inked) // 7
    columns = [at for at in range(len(inked[0])) if any(row[at] for row in inked)]
    grid = [[row[at] for at in range(columns[0], columns[-1] + 1, dot)] for row in inked[dot // 2 :: dot]]
    return _letters(grid)


def _letters(grid: Sequence[Sequence[bool]]) -> str:
    """Return the letters in the grid of dots. Blank columns separate them."""
    names = {_trim(_dots(rows)): name for name, rows in LETTERS.items()}
    letters, letter = [], list[tuple[bool, ...]]()
    for column in [*zip(*grid, strict=True), (False,) * 7]:
        if any(column):
            letter.append(tuple(column))
        elif letter:
            letters.append(names[tuple(letter)])
            letter = []
    return "".join(letters)


def _dots(rows: Sequence[int]) -> list[tuple[bool, ...]]:
    return [tuple(bool(row >> (4 - at) & 1) for row in rows) for at in range(5)]


def _trim(columns: Sequence[tuple[bool, ...]]) -> tuple[tuple[bool, ...], ...]:
    return tuple(column for column in columns if any(column))


def _hear(data: bytes) -> str:
    with wave.open(io.BytesIO(data)) as sound:
        samples = sound.readframes(sound.getnframes())[1::2]  # Keep only the upper byte of each sample.
    with wave.open(str(Path(probes.__path__[0]) / "digits.wav")) as recorded:
        clips = bytes((sample - 128) % 256 for sample in recorded.readframes(recorded.getnframes()))
    length, positions = len(clips) // 10, []
    for digit in range(10):
        at = samples.find(clips[digit * length : (digit + 1) * length])
        while at >= 0:
            positions.append((at, str(digit)))
            at = samples.find(clips[digit * length : (digit + 1) * length], at + length)
    return "".join(digit for _, digit in sorted(positions))
