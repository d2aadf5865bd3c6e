"""Small Office files as Office itself wrote them before 2007 and beside XML since: compound files, BIFF8 and BIFF12.

Made by hand from the formats' published structure (MS-CFB, MS-XLS, MS-XLSB).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

END, FAT_SECTOR, FREE = 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF
SMALL = 4096
"""Shorter streams live in the mini stream."""


@dataclass
class Entry:
    """A stream or storage in the directory."""

    name: str
    kind: int
    data: bytes = b""
    right: int = FREE
    child: int = FREE
    start: int = END


def pad(data: bytes, size: int) -> bytes:
    return data + bytes(-len(data) % size)


def chain(start: int, count: int) -> list[int]:
    """Sector numbers that follow one another."""
    return [*range(start + 1, start + count), END] if count else []


def compound(tree: Mapping[str, object]) -> bytes:
    """A compound file: names to bytes (a stream) or to a mapping (a storage)."""
    entries = [Entry("Root Entry", 5)]
    _add(entries, entries[0], tree)
    mini, mini_table = b"", list[int]()
    for entry in entries:
        if entry.kind == 2 and 0 < len(entry.data) < SMALL:
            entry.start = len(mini) // 64
            mini += pad(entry.data, 64)
            mini_table += chain(entry.start, len(mini) // 64 - entry.start)
    entries[0].data = mini
    table, body = list[int](), b""
    large = [entry for entry in entries if entry.kind == 5 or len(entry.data) >= SMALL]
    for entry in large:
        if entry.data:
            entry.start = len(table)
            table += chain(entry.start, len(pad(entry.data, 512)) // 512)
            body += pad(entry.data, 512)
    mini_start, mini_bytes = len(table), struct.pack(f"<{len(mini_table)}I", *mini_table)
    mini_bytes += b"\xff" * (-len(mini_bytes) % 512)
    table += chain(mini_start, len(mini_bytes) // 512)
    directory_start, directory = len(table), pad(b"".join(map(_directory_entry, entries)), 512)
    table += chain(directory_start, len(directory) // 512)
    sectors = next(count for count in range(1, 110) if count * 128 >= len(table) + count)
    places = range(len(table), len(table) + sectors)
    table += [FAT_SECTOR] * sectors
    head = struct.pack("<8s16xHHHHH6x", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6)
    head += struct.pack("<9I", 0, sectors, directory_start, 0, SMALL, mini_start, len(mini_bytes) // 512, END, 0)
    head += struct.pack("<109I", *places, *[FREE] * (109 - sectors))
    padded = [*table, *[FREE] * (sectors * 128 - len(table))]
    return head + body + mini_bytes + directory + struct.pack(f"<{len(padded)}I", *padded)


def _add(entries: list[Entry], parent: Entry, tree: Mapping[str, object]) -> None:
    """The members of a storage, each the right neighbour of the one before it."""
    last: Entry | None = None
    for name, value in tree.items():
        entry = Entry(name, 2, value) if isinstance(value, bytes) else Entry(name, 1)
        entries.append(entry)
        if last is None:
            parent.child = len(entries) - 1
        else:
            last.right = len(entries) - 1
        last = entry
        if isinstance(value, Mapping):
            _add(entries, entry, value)


def _directory_entry(entry: Entry) -> bytes:
    name = entry.name.encode("utf-16-le") + b"\0\0"
    links = struct.pack("<HBB3I", len(name), entry.kind, 1, FREE, entry.right, entry.child)
    start = 0 if entry.kind == 1 else entry.start
    return name.ljust(64, b"\0") + links + bytes(36) + struct.pack("<IQ", start, len(entry.data))


def _record(number: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", number, len(data)) + data


def xls(day: int, text: str) -> bytes:
    """A BIFF8 workbook of one sheet `Old`: the day of Excel's calendar as a date, 2 and a text in the third row."""
    styles = b"".join(_record(0xE0, struct.pack("<HH16x", 0, number)) for number in (0, 14))
    cells = _record(0x203, struct.pack("<HHHd", 0, 0, 1, day)) + _record(0x203, struct.pack("<HHHd", 0, 1, 0, 2))
    cells += _record(0x204, struct.pack("<HHHHB", 2, 1, 0, len(text), 1) + text.encode("utf-16-le"))
    bof = struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0)
    front = _record(0x809, bof) + styles
    name = struct.pack("<IBBBB", len(front) + 19, 0, 0, 3, 0) + b"Old"
    sheet = _record(0x809, struct.pack("<HHHHII", 0x600, 16, 0, 0, 0, 0)) + cells + _record(0x0A)
    return compound({"Workbook": pad(front + _record(0x85, name) + _record(0x0A) + sheet, SMALL)})


def _binary_record(number: int, data: bytes = b"") -> bytes:
    """A record of BIFF12: number and length seven bits a byte."""

    def packed(value: int) -> bytes:
        return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80, value >> 7])

    return packed(number) + packed(len(data)) + data


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb_parts(text: str) -> dict[str, bytes]:
    """The binary parts of a workbook of one sheet `Bin` with 7 and a text in its first row."""
    sheet = _binary_record(0x94, struct.pack("<4I", 0, 0, 0, 1)) + _binary_record(0x91)
    sheet += _binary_record(0x00, struct.pack("<I", 0) + bytes(13))
    sheet += _binary_record(0x05, struct.pack("<IId", 0, 0, 7)) + _binary_record(
        6, struct.pack("<II", 1, 0) + _wide(text)
    )
    book = _binary_record(0x8F) + _binary_record(0x9C, struct.pack("<II", 0, 1) + _wide("rId1") + _wide("Bin"))
    return {
        "xl/workbook.bin": book + _binary_record(0x90) + _binary_record(0x84),
        "xl/worksheets/sheet1.bin": sheet + _binary_record(0x92),
    }
