"""Extract text from Word and PowerPoint files before 2007 (MS-DOC, MS-PPT). Runs only in the extraction process.

Word 6 and 95 are not supported, because such files do not reliably specify their text encoding.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

import olefile

from artifacts.extract.office import MAX_TARGET_CHARS, parse_link
from artifacts.extract.reading import Progress, RefusedError, TextCollector, open_zip

MAX_STREAM_BYTES = 128 * 1024 * 1024
MAX_STREAMS = 20_000


class CompoundFile:
    """Reads streams by name from an OLE2 compound file, the container of older Office documents.

    Raise `RefusedError`: `failed` if the file is damaged, or `encrypted`.
    """

    def __init__(self, source: BinaryIO) -> None:
        try:
            self._file = olefile.OleFileIO(source)
            self.names = frozenset("/".join(path) for path in self._file.listdir(storages=False)[:MAX_STREAMS])
        except (OSError, struct.error, IndexError, RecursionError) as error:
            raise RefusedError("failed") from error
        if "EncryptedPackage" in self.names:
            raise RefusedError("encrypted")

    def read(self, name: str) -> bytes:
        """Return a stream's bytes, or b"" if it is absent.

        Raise `RefusedError`: `too_large` or `failed`.
        """
        if name not in self.names:
            return b""
        if self._file.get_size(name) > MAX_STREAM_BYTES:
            raise RefusedError("too_large")
        try:
            data: bytes = self._file.openstream(name).read()
        except OSError as error:
            raise RefusedError("failed") from error
        return data

    def size(self, name: str) -> int:
        return int(self._file.get_size(name)) if name in self.names else 0


def is_locked(source: BinaryIO) -> bool:
    """Return whether the file is an encrypted Office package (MS-OFFCRYPTO §2.3.4.4)."""
    source.seek(0)
    mark = source.read(len(olefile.MAGIC))
    source.seek(0)
    try:
        if mark == olefile.MAGIC:
            CompoundFile(source)
    except RefusedError as refusal:
        return str(refusal) == "encrypted"
    finally:
        source.seek(0)
    return False


def open_package(source: BinaryIO) -> zipfile.ZipFile:
    """Open an Office package.

    Raise `RefusedError` like `open_zip`, or with `encrypted` if the package has a password.
    """
    if is_locked(source):
        raise RefusedError("encrypted")
    return open_zip(source)


WORD_97 = 193
ENCRYPTED, OTHER_TABLE = 0x0100, 0x0200
PIECE_TABLE_OFFSET, LENGTHS_OFFSET = 0x01A2, 0x004C
PARTS = ("", "footnotes", "header", "macros", "comments", "endnotes", "textboxes")
"""The headings of a document's sections, in the order in which the file header lists the sections' lengths. Macros do
not count as text."""

MAX_PIECES = 1_000_000
COMPRESSED = 1 << 30
HIDDEN = dict.fromkeys([*range(9), *range(14, 19), *range(22, 30), 0x1F], "")
WORD_MARKS = str.maketrans({**HIDDEN, 0x07: "\t", 0x0B: "\n", 0x0C: "\n", 0x0D: "\n", 0x1E: "-"})
FIELD, FIELD_RESULT, FIELD_END = "\x13", "\x14", "\x15"


def doc(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write the text of a Word document to `output`, then its footnotes, headers and comments under headings.

    Raise `RefusedError`: `encrypted`, `failed`, or `unsupported` for files older than Word 97.
    """
    file = CompoundFile(source)
    main = file.read("WordDocument")
    try:
        kind, version = struct.unpack_from("<HH", main)
        flags = struct.unpack_from("<H", main, 10)[0]
        if flags & ENCRYPTED:
            raise RefusedError("encrypted")
        if kind != 0xA5EC or version < WORD_97:
            raise RefusedError("unsupported")
        text = _pieces(main, file.read("1Table" if flags & OTHER_TABLE else "0Table"))
        lengths = struct.unpack_from("<7i", main, LENGTHS_OFFSET)
    except struct.error as error:
        raise RefusedError("failed") from error
    at = 0
    for name, length in zip(PARTS, lengths, strict=True):
        part, at = text[at : at + max(length, 0)], at + max(length, 0)
        visible = with_field_results(part).translate(WORD_MARKS)
        if visible.strip() and name != "macros":
            output.add((f"\n[{name}]\n" if name else "") + visible)


def _pieces(main: bytes, table: bytes) -> str:
    # The piece table defines the order of the text. In each piece, every character has either one or two bytes.
    table_offset, size = struct.unpack_from("<II", main, PIECE_TABLE_OFFSET)
    clx, at = table[table_offset : table_offset + size], 0
    while clx[at : at + 1] == b"\x01":
        at += 3 + struct.unpack_from("<H", clx, at + 1)[0]
    length = struct.unpack_from("<xI", clx, at)[0]
    count = (length - 4) // 12
    if clx[at : at + 1] != b"\x02" or not 0 < count <= MAX_PIECES:
        raise RefusedError("failed")
    starts = struct.unpack_from(f"<{count + 1}I", clx, at + 5)
    parts, total = [], 0
    for number in range(count):
        start = struct.unpack_from("<xxI", clx, at + 5 + 4 * (count + 1) + 8 * number)[0]
        letters = starts[number + 1] - starts[number]
        total += letters
        if letters < 0 or total > len(main):
            raise RefusedError("failed")
        if start & COMPRESSED:
            offset = (start & ~COMPRESSED) // 2
            parts.append(main[offset : offset + letters].decode("cp1252", "replace"))
        else:
            parts.append(main[start : start + 2 * letters].decode("utf-16-le", "replace"))
    return "".join(parts)


def with_field_results(text: str) -> str:
    """Return Word's text with field results instead of field codes, and with links in Markdown."""
    if FIELD not in text:
        return text
    visible, fields, in_codes = list[str](), list[tuple[list[str] | None, str]](), 0
    for char in text:
        code, target = fields[-1] if fields else (None, "")
        if char == FIELD:
            fields.append(([], ""))
            in_codes += 1
        elif char == FIELD_RESULT and code is not None:
            in_codes -= 1
            target = parse_link("".join(code)) if not in_codes else ""
            fields[-1] = (None, target)
            visible.append("[" if target else "")
        elif char == FIELD_END and fields:
            fields.pop()
            in_codes -= code is not None
            visible.append(f"]({target})" if target else "")
        elif not in_codes:
            visible.append(char)
        elif code is not None and len(code) < MAX_TARGET_CHARS:
            code.append(char)
    return "".join(visible)


DOCUMENT, SLIDES_WITH_TEXT, SLIDE_PLACE, EDIT, OBJECTS = 0x03E8, 0x0FF0, 0x03F3, 0x0FF5, 0x1772
LETTERS, NARROW_LETTERS = 0x0FA0, 0x0FA8
CONTAINER, MAX_EDITS, MAX_RECORDS, MAX_DEPTH = 0xF, 1_000, 1_000_000, 32
NO_ENCRYPTION = 0xE391C05F
SLIDES, NOTES = 0, 2
"""Record types and constants of MS-PPT. `SLIDES` and `NOTES` are the instance numbers of the slide list and the notes
list."""


def ppt(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write the text of each slide to `output` in presentation order, then the notes, according to the latest edit.

    Raise `RefusedError`: `encrypted` or `failed`.
    """
    file = CompoundFile(source)
    stream, user = file.read("PowerPoint Document"), file.read("Current User")
    try:
        _, token, edit = struct.unpack_from("<III", user, 8)
        if token != NO_ENCRYPTION:
            raise RefusedError("encrypted")
        objects, document = _objects(stream, edit)
        lists = dict(_slide_lists(stream, objects[document]))
    except (struct.error, KeyError) as error:
        raise RefusedError("failed") from error
    for list_kind, mark in ((SLIDES, "slide"), (NOTES, "notes")):
        slides = lists.get(list_kind, [])
        for number, (slide_id, outline) in enumerate(slides, 1):
            progress.report("slides", number, len(slides))
            texts = _texts(stream, objects[slide_id]) if slide_id in objects else []
            visible = [text for text in dict.fromkeys([*outline, *texts]) if text.strip()]
            if visible or list_kind == SLIDES:
                output.add_marker(f"[{mark} {number}]\n")
                output.add("\n".join(visible) + "\n\n")


def _objects(stream: bytes, edit: int) -> tuple[dict[int, int], int]:
    # Follow the chain of edits from the latest to the first. The first offset found for an object is its current one.
    offsets, document, seen = dict[int, int](), 0, set[int]()
    while edit and edit not in seen and len(seen) < MAX_EDITS:
        seen.add(edit)
        previous_edit, directory, root = struct.unpack_from("<III", stream, edit + 16)
        document = document or root
        length = struct.unpack_from("<I", stream, directory + 4)[0]
        at, end = directory + 8, min(directory + 8 + length, len(stream))
        while at + 4 <= end:
            first = struct.unpack_from("<I", stream, at)[0]
            count = min(first >> 20, (end - at - 4) // 4)
            for index, offset in enumerate(struct.unpack_from(f"<{count}I", stream, at + 4)):
                offsets.setdefault((first & 0xFFFFF) + index, offset)
            at += 4 + 4 * count
        edit = previous_edit
    return offsets, document


def _records(stream: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    # Truncate a record that extends beyond its container.
    for _ in range(MAX_RECORDS):
        if start + 8 > end:
            return
        head, kind, length = struct.unpack_from("<HHI", stream, start)
        inner = min(start + 8 + length, end)
        yield head, kind, start + 8, inner
        start = inner


def _slide_lists(stream: bytes, document: int) -> Iterator[tuple[int, list[tuple[int, list[str]]]]]:
    _, kind, start, end = next(_records(stream, document, len(stream)), (0, 0, 0, 0))
    if kind != DOCUMENT:
        raise RefusedError("failed")
    for head, inner, first, last in _records(stream, start, end):
        if inner != SLIDES_WITH_TEXT:
            continue
        slides: list[tuple[int, list[str]]] = []
        for _, atom, at, text_end in _records(stream, first, last):
            if atom == SLIDE_PLACE:
                slides.append((struct.unpack_from("<I", stream, at)[0], []))
            elif slides and (text := _decode_text(stream, atom, at, text_end)):
                slides[-1][1].append(text)
        yield head >> 4, slides


def _texts(stream: bytes, offset: int) -> list[str]:
    texts, waiting, count = list[str](), list(_records(stream, offset, len(stream)))[:1], 0
    depths = [0] * len(waiting)
    while waiting and count < MAX_RECORDS:
        (head, kind, start, end), depth, count = waiting.pop(), depths.pop(), count + 1
        if head & 0xF == CONTAINER and depth < MAX_DEPTH:
            inner = list(_records(stream, start, end))[::-1]
            waiting += inner
            depths += [depth + 1] * len(inner)
        elif text := _decode_text(stream, kind, start, end):
            texts.append(text)
    return texts


def _decode_text(stream: bytes, kind: int, start: int, end: int) -> str:
    encoding = {LETTERS: "utf-16-le", NARROW_LETTERS: "latin-1"}.get(kind)
    text = stream[start:end].decode(encoding, "replace") if encoding else ""
    return text.replace("\r", "\n").replace("\x0b", "\n").strip()
