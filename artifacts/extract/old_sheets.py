"""Read sheets of Excel 2 to 4 (BIFF2, BIFF3, BIFF4), which are plain record sequences and not compound files."""

from __future__ import annotations

import codecs
import math
import struct
from collections.abc import Iterator
from typing import BinaryIO

from artifacts.extract.measures import BARE_SHEETS
from artifacts.extract.number_formats import GENERAL, NumberFormat, general
from artifacts.extract.reading import RefusedError, TextCollector
from artifacts.extract.workbook import MAX_GAP, UNREADABLE, column_name, one_line

MAX_BYTES = 64 * 1024 * 1024
MAX_FORMATS = 4_096
RECORDS_AT_ONCE = 4_096
FILEPASS, CODEPAGE, DATEMODE, SHEET, NOTE = 0x2F, 0x42, 0x22, 0x8F, 0x1C
FORMATS, STYLES = {0x001E: 0, 0x041E: 2}, {0x0043: 2, 0x0243: 1, 0x0443: 1}
"""`FORMATS` maps record types to the offset of a format code's length. `STYLES` maps them to the offset of the format's
number."""
INTEGER, NUMBER, LABEL, BOOLERR, FORMULA, STRING, RK = 2, 3, 4, 5, 6, 7, 0x7E
ERRORS = {0: "#NULL!", 7: "#DIV/0!", 15: "#VALUE!", 23: "#REF!", 29: "#NAME?", 36: "#NUM!", 42: "#N/A"}
MACINTOSH = {0x8000: "mac-roman", 10_000: "mac-roman", 0x8001: "cp1252"}


def is_old(source: BinaryIO) -> bool:
    source.seek(0)
    beginning = source.read(4)
    source.seek(0)
    return beginning in BARE_SHEETS


def old_sheets(source: BinaryIO, output: TextCollector) -> None:
    """Write the rows to `output` as displayed.

    Raise `RefusedError`: `encrypted`, `too_large`, or `failed` if the file is incomplete.
    """
    data = source.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise RefusedError("too_large")
    sheets = OldSheets(output)
    try:
        for count, (kind, record) in enumerate(_records(data)):
            if count % RECORDS_AT_ONCE == 0:
                output.add_marker("")  # Raise an exception if the time limit has passed.
            sheets.add(kind, record)
        sheets.flush()
    except (struct.error, IndexError) as error:
        sheets.flush()
        if not output.has_words:
            raise RefusedError("failed") from error
        output.add(UNREADABLE)
    for note in sheets.notes:
        output.add(note)


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        kind, length = struct.unpack_from("<HH", data, at)
        yield kind, data[at + 4 : at + 4 + length]
        at += 4 + length


class OldSheets:
    """Writes sheet rows while the records are read."""

    def __init__(self, output: TextCollector) -> None:
        self.notes = list[str]()
        self._output, self._codec, self._from_1904 = output, "cp1252", False
        self._codes, self._styles = list[str](), list[int]()
        self._formats = dict[int, NumberFormat | None]()
        self._row, self._written, self._line = -1, 0, list[str]()
        self._waiting: tuple[int, int] | None = None

    def add(self, kind: int, data: bytes) -> None:
        if kind == FILEPASS:
            raise RefusedError("encrypted")
        if kind == CODEPAGE:
            self._codec = _codec(struct.unpack_from("<H", data)[0])
        elif kind == DATEMODE:
            self._from_1904 = data[:1] == b"\x01"
        elif kind == SHEET:
            self.flush()
            self._output.add_marker(f"\n[sheet: {self._decoded(data[5 : 5 + data[4]])}]\n")
        elif kind in FORMATS and len(self._codes) < MAX_FORMATS:
            start = FORMATS[kind]
            self._codes.append(self._decoded(data[start + 1 : start + 1 + data[start]]))
        elif kind in STYLES and len(self._styles) < MAX_FORMATS:
            self._styles.append(data[STYLES[kind]] & (0x3F if kind == 0x0043 else 0xFF))
        elif kind == NOTE:
            row, column, length = struct.unpack_from("<3H", data)
            if row < 0xFFFF and len(self.notes) < MAX_FORMATS:
                text = one_line(self._decoded(data[6 : 6 + length]))
                self.notes.append(f"[comment at {column_name(column + 1)}{row + 1}: {text}]\n")
        elif kind & 0xFF in (INTEGER, NUMBER, LABEL, BOOLERR, FORMULA, STRING, RK) and kind >> 8 in (0, 2, 4):
            self._add_cell(kind & 0xFF, data, is_first=kind < 0x100)

    def flush(self) -> None:
        if self._line:
            self._output.add(f"{''.join(self._line)}\n")
            self._line.clear()
        self._written = 0

    def _add_cell(self, kind: int, data: bytes, *, is_first: bool) -> None:
        if kind == STRING:
            if self._waiting:
                text = data[1:] if is_first else data[2:]
                self._show(*self._waiting, one_line(self._decoded(text)))
            self._waiting = None
            return
        row, column = struct.unpack_from("<2H", data)
        # In BIFF2, a cell has three attribute bytes, which include its number format. In later versions it has a style
        # number.
        code = data[5] & 0x3F if is_first else self._number_format(struct.unpack_from("<H", data, 4)[0])
        value = data[7:] if is_first else data[6:]
        if kind == LABEL:
            self._show(row, column, one_line(self._decoded(value[1:] if is_first else value[2:])))
        elif kind == INTEGER:
            self._show(row, column, self._number(struct.unpack_from("<H", value)[0], code))
        elif kind == BOOLERR:
            self._show(row, column, _flag(value[0], is_error=bool(value[1])))
        elif kind == RK:
            self._show(row, column, self._number(_rk(struct.unpack_from("<I", value)[0]), code))
        elif kind == FORMULA and value[6:8] == b"\xff\xff":
            # The result of a formula is a boolean, an error, or text in the next record.
            self._waiting = (row, column) if value[0] == 0 else None
            if value[0] in (1, 2):
                self._show(row, column, _flag(value[2], is_error=value[0] == 2))
        else:
            self._show(row, column, self._number(struct.unpack_from("<d", value)[0], code))

    def _show(self, row: int, column: int, text: str) -> None:
        if row != self._row or column < self._written:
            self.flush()
            self._row = row
        if text:
            gap = column - self._written
            self._line.append("\t" * min(gap, MAX_GAP) + text)
            self._written = column

    def _number_format(self, style: int) -> int:
        return self._styles[style] if style < len(self._styles) else MAX_FORMATS

    def _number(self, value: float, code: int) -> str:
        if code not in self._formats:
            text = self._codes[code] if code < len(self._codes) else GENERAL
            known = None if text.lower() == "general" else NumberFormat(text, from_1904=self._from_1904)
            self._formats[code] = known
        found = self._formats[code]
        if not math.isfinite(value):
            return str(value)
        return one_line(found.number(value)) if found else general(value)

    def _decoded(self, data: bytes) -> str:
        return data.decode(self._codec, "replace")


def _flag(value: int, *, is_error: bool) -> str:
    return ERRORS.get(value, "#N/A") if is_error else "TRUE" if value else "FALSE"


def _rk(value: int) -> float:
    # In an RK number, bit 0 means that the number is in hundredths. If bit 1 is set, the upper 30 bits are an integer,
    # otherwise the upper bits of a float.
    whole = struct.unpack("<i", struct.pack("<I", value))[0] >> 2
    number = float(whole) if value & 2 else struct.unpack("<d", struct.pack("<II", 0, value & ~3))[0]
    return float(number / 100 if value & 1 else number)


def _codec(page: int) -> str:
    name = MACINTOSH.get(page, f"cp{page}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"
