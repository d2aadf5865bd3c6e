"""Small binary Office files: compound files (before 2007), BIFF8 and BIFF12.

They are generated from the formats' published structure (MS-CFB, MS-XLS, MS-XLSB).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

END, FAT_SECTOR, FREE = 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF
# Streams shorter than this number of bytes are stored in the mini stream.
SMALL = 4096


@dataclass
class Entry:
    """A stream or storage in a compound file's directory."""

    name: str
    kind: int
    data: bytes = b""
    right: int = FREE
    child: int = FREE
    start: int = END


def pad(data: bytes, size: int) -> bytes:
    return data + bytes(-len(data) % size)


def chain(start: int, count: int) -> list[int]:
    """Return the allocation table's entries for consecutive sectors."""
    return [*range(start + 1, start + count), END] if count else []


def build_compound_file(tree: Mapping[str, object]) -> bytes:
    """Build a compound file. `tree` maps names to bytes (a stream) or to another mapping (a storage)."""
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
    fat_sectors = range(len(table), len(table) + sectors)
    table += [FAT_SECTOR] * sectors
    head = struct.pack("<8s16xHHHHH6x", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6)
    head += struct.pack("<9I", 0, sectors, directory_start, 0, SMALL, mini_start, len(mini_bytes) // 512, END, 0)
    head += struct.pack("<109I", *fat_sectors, *[FREE] * (109 - sectors))
    padded = [*table, *[FREE] * (sectors * 128 - len(table))]
    return head + body + mini_bytes + directory + struct.pack(f"<{len(padded)}I", *padded)


def _add(entries: list[Entry], parent: Entry, tree: Mapping[str, object]) -> None:
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
    """Build a BIFF8 workbook with the sheet `Old`: the date `day` and the number 2 in row 1, text in row 3."""
    styles = b"".join(_record(0xE0, struct.pack("<HH16x", 0, number)) for number in (0, 14))
    cells = _record(0x203, struct.pack("<HHHd", 0, 0, 1, day)) + _record(0x203, struct.pack("<HHHd", 0, 1, 0, 2))
    cells += _record(0x204, struct.pack("<HHHHB", 2, 1, 0, len(text), 1) + text.encode("utf-16-le"))
    bof = struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0)
    front = _record(0x809, bof) + styles
    name = struct.pack("<IBBBB", len(front) + 19, 0, 0, 3, 0) + b"Old"
    sheet = _record(0x809, struct.pack("<HHHHII", 0x600, 16, 0, 0, 0, 0)) + cells + _record(0x0A)
    return build_compound_file({"Workbook": pad(front + _record(0x85, name) + _record(0x0A) + sheet, SMALL)})


def _binary_record(number: int, data: bytes = b"") -> bytes:
    """Build a BIFF12 record. Its number and length are encoded with seven bits per byte."""

    def packed(value: int) -> bytes:
        return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80, value >> 7])

    return packed(number) + packed(len(data)) + data


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb_parts(text: str) -> dict[str, bytes]:
    """Build the parts of a workbook. The first row of its sheet `Bin` contains the number 7 and `text`."""
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


def msg_properties(sent: int) -> bytes:
    """Build the fixed properties of an Outlook message. `sent` is the number of 100 ns ticks since 1601."""
    return bytes(32) + struct.pack("<HHIQ", 0x40, 0x39, 6, sent)


def msg(subject: str, body: str, attachment: str) -> bytes:
    """Build an Outlook message from Ann to Ben, dated 22 November 2026, with an attachment of 5 bytes."""

    def text(number: str, value: str) -> dict[str, bytes]:
        return {f"__substg1.0_{number}001F": value.encode("utf-16-le")}

    inner = {**text("3707", attachment), **text("370E", "text/csv"), "__substg1.0_37010102": b"a,b\n1"}
    return build_compound_file(
        {
            "__properties_version1.0": msg_properties(134_398_116_000_000_000),
            **text("0037", subject),
            **text("0C1A", "Ann"),
            **text("5D01", "ann@example.com"),
            **text("0E04", "Ben"),
            **text("1000", body),
            "__attach_version1.0_#00000000": {"__properties_version1.0": bytes(8), **inner},
        }
    )


def doc(text: str, note: str = "", *, version: int = 193, flags: int = 0x200) -> bytes:
    """Build a Word 97 document with two text pieces, one with two bytes per character and one with one byte."""
    half = len(text) // 2
    wide, narrow = text[:half].encode("utf-16-le"), (text[half:] + note).encode("cp1252")
    start = 0x600
    head = bytearray(start)
    struct.pack_into("<HH", head, 0, 0xA5EC, version)
    struct.pack_into("<H", head, 10, flags)
    struct.pack_into("<2i", head, 0x4C, len(text), len(note))
    positions = struct.pack("<3I", 0, half, len(text) + len(note))
    pieces = struct.pack("<HIH", 0, start, 0) + struct.pack("<HIH", 0, (start + len(wide)) * 2 | 1 << 30, 0)
    table = b"\x01\x02\0\0\0" + b"\x02" + struct.pack("<I", len(positions + pieces)) + positions + pieces
    struct.pack_into("<II", head, 0x1A2, 0, len(table))
    return build_compound_file({"WordDocument": pad(bytes(head) + wide + narrow, SMALL), "1Table": table})


def _ppt_record(kind: int, data: bytes, head: int = 0) -> bytes:
    return struct.pack("<HHI", head, kind, len(data)) + data


def ppt(title: str, box: str, *, token: int = 0xE391C05F) -> bytes:
    """Build a presentation with an outdated edit and one slide.

    The slide's text is a title in the outline and a text box.
    """
    outline = _ppt_record(0x3F3, struct.pack("<5I", 2, 0, 0, 256, 0)) + _ppt_record(0xFA0, title.encode("utf-16-le"))
    document = _ppt_record(0x3E8, _ppt_record(0xFF0, outline, 0xF), 0xF)
    slide = _ppt_record(0x3EE, _ppt_record(0xF00D, _ppt_record(0xFA8, box.encode("latin-1")), 0xF), 0xF)
    old = _ppt_record(0x3EE, _ppt_record(0xFA8, b"old words"), 0xF)
    stream, offsets = b"", list[int]()
    for part in (old, document, slide):
        offsets.append(len(stream))
        stream += part
    first_directory = len(stream)
    stream += _ppt_record(0x1772, struct.pack("<2I", 2 | 1 << 20, offsets[0]))
    first_edit = len(stream)
    stream += _ppt_record(0xFF5, struct.pack("<7I", 0, 0, 0, first_directory, 1, 3, 0))
    directory = len(stream)
    stream += _ppt_record(0x1772, struct.pack("<3I", 1 | 2 << 20, offsets[1], offsets[2]))
    edit = len(stream)
    stream += _ppt_record(0xFF5, struct.pack("<7I", 0, 0, first_edit, directory, 1, 3, 0))
    user = _ppt_record(0xFF6, struct.pack("<3I", 20, token, edit) + bytes(8))
    return build_compound_file({"PowerPoint Document": pad(stream, SMALL), "Current User": user})


def bare_xls(version: int) -> bytes:
    """Build a BIFF2, BIFF3 or BIFF4 sheet.

    Row 1 has text, a percentage and an error, and row 2 has a boolean and a formula.
    """

    def record(kind: int, data: bytes, later: int = 0x200) -> bytes:
        return struct.pack("<HH", kind + (later if version > 2 else 0), len(data)) + data

    def cell(row: int, column: int, style: int) -> bytes:
        # In BIFF2, a cell's attributes contain the index of its number format. In later versions, they contain its
        # style's index.
        return struct.pack(
            "<HH3B" if version == 2 else "<HHH", row, column, *((0, style, 0) if version == 2 else (style,))
        )

    word = b"hello" if version == 2 else b"\0hello"
    long = b"sum " if version == 2 else b"\0sum "
    styles = (
        b""
        if version == 2
        else b"".join(record(0x43, bytes((0, n)) + bytes(10), 0x200 * (version - 2)) for n in (0, 1))
    )
    codes = b"".join(
        struct.pack("<HH", 0x41E if version == 4 else 0x1E, len(code) + (3 if version == 4 else 1))
        + (b"\0\0" if version == 4 else b"")
        + bytes((len(code),))
        + code
        for code in (b"General", b"0.0%")
    )
    number = struct.pack("<d", 0.125)
    text_result = b"\0" * 6 + b"\xff\xff"
    return b"".join(
        (
            struct.pack("<HH", 0x0009 + 0x200 * (version - 2), 4 if version == 2 else 6),
            bytes((version, 0, 0x10, 0) if version == 2 else (version, 0, 0x10, 0, 0, 0)),
            codes,
            styles,
            record(4, cell(0, 0, 0) + b"\x05" + word),
            record(3, cell(0, 1, 1) + number),
            record(5, cell(0, 3, 0) + b"\x07\x01"),
            record(5, cell(1, 0, 0) + b"\x01\x00"),
            record(6, cell(1, 1, 0) + text_result + bytes(8), 0x200 * (version - 2)),
            record(7, b"\x04" + long),
            struct.pack("<HH", 0x0A, 0),
        )
    )
