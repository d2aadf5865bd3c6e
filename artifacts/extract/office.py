"""Text of office files: zip and XML, read with the standard library alone."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from typing import BinaryIO, Protocol

from artifacts.extract.words import RefusedError, TextCollector, entry_blocks, open_zip, read_xml

MAX_SHARED_STRINGS = 2_000_000
MAX_COLUMNS = 256


class Progress(Protocol):
    """Where a reader says how far it is."""

    def mark(self, unit: str, index: int, total: int) -> None:
        """Part `index` of `total`."""


class Writing:
    """Running text of Word and PowerPoint: `t` holds words, paragraphs end lines, cells are parted by tabs."""

    BREAKS: Mapping[str, str] = {"p": "\n", "tr": "\n", "tc": "\t"}
    MARKS: Mapping[str, str] = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}

    def __init__(self, words: TextCollector) -> None:
        self._words, self._in_text, self._in_cell = words, False, 0

    def start(self, name: str, _: Mapping[str, str]) -> None:
        """An element begins."""
        self._in_text = name == "t"
        self._in_cell += name == "tc"
        if name in self.MARKS:
            self._words.add(self.MARKS[name])

    def end(self, name: str) -> None:
        """An element ends."""
        self._in_text = False
        self._in_cell -= name == "tc"
        if name in self.BREAKS:
            self._words.add(" " if name == "p" and self._in_cell else self.BREAKS[name])

    def text(self, words: str) -> None:
        """Words inside the element."""
        if self._in_text:
            self._words.add(words)


def docx(source: BinaryIO, words: TextCollector, progress: Progress) -> None:
    """The main document, then footnotes and comments under their names."""
    package = open_zip(source)
    for name in ("word/document.xml", "word/footnotes.xml", "word/comments.xml"):
        if name not in package.namelist():
            continue
        if name != "word/document.xml":
            words.add(f"\n[{name[5:-4]}]\n")
        writing = Writing(words)
        read_xml(entry_blocks(package, name), writing.start, writing.end, writing.text)


def pptx(source: BinaryIO, words: TextCollector, progress: Progress) -> None:
    """Each slide under its mark, in the order of their numbers."""
    package = open_zip(source)
    slides = sorted(
        (int(found[1]), name)
        for name in package.namelist()
        if (found := re.fullmatch(r"ppt/slides/slide(\d{1,6})\.xml", name))
    )
    for number, (_, name) in enumerate(slides, 1):
        progress.mark("slides", number, len(slides))
        words.add(f"[slide {number}]\n")
        writing = Writing(words)
        read_xml(entry_blocks(package, name), writing.start, writing.end, writing.text)
        words.add("\n")


def xlsx(source: BinaryIO, words: TextCollector, progress: Progress) -> None:
    """Each sheet under its name, rows as lines, cells parted by tabs; values as stored, dates as numbers."""
    package = open_zip(source)
    shared = _shared_strings(package)
    sheets = _sheets(package)
    for number, (title, name) in enumerate(sheets, 1):
        progress.mark("sheets", number, len(sheets))
        words.add(f"[sheet: {title}]\n")
        rows = Rows(words, shared)
        read_xml(entry_blocks(package, name), rows.start, rows.end, rows.text)
        words.add("\n")


class Rows:
    """The cells of one sheet."""

    def __init__(self, words: TextCollector, shared: list[str]) -> None:
        self._words, self._shared = words, shared
        self._kind, self._value, self._taking = "", "", False
        self._column, self._filled = 0, 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """A row, a cell or its value begins."""
        if name == "row":
            self._column = self._filled = 0
        elif name == "c":
            self._kind, self._value = attributes.get("t", "n"), ""
            self._column = _column(attributes.get("r", "")) or self._column + 1
        self._taking = name in ("v", "t")

    def end(self, name: str) -> None:
        """A cell or a row ends: its value is written behind the tabs that lead to its column."""
        self._taking = False
        if name == "row" and self._filled:
            self._words.add("\n")
        if name != "c" or not self._value:
            return
        tabs = min(max(self._column - max(self._filled, 1), 0), MAX_COLUMNS)
        self._words.add("\t" * tabs + self._read_value().replace("\n", " "))
        self._filled = max(self._column, 1)

    def text(self, words: str) -> None:
        """Part of a value."""
        if self._taking:
            self._value += words

    def _read_value(self) -> str:
        if self._kind == "b":
            return {"0": "FALSE", "1": "TRUE"}.get(self._value, self._value)
        if self._kind != "s":
            return self._value
        index = int(self._value) if self._value.isdecimal() else len(self._shared)
        return self._shared[index] if index < len(self._shared) else ""


def _column(reference: str) -> int:
    """`C7` is 3; 0 when there is no letter."""
    number = 0
    for char in reference[:4]:
        if not "A" <= char <= "Z":
            break
        number = number * 26 + ord(char) - 64
    return number


def _shared_strings(package: zipfile.ZipFile) -> list[str]:
    """The table of strings that cells point into."""
    if "xl/sharedStrings.xml" not in package.namelist():
        return []
    table: list[str] = []
    current, taking = [""], [False]

    def start(name: str, _: Mapping[str, str]) -> None:
        taking[0] = name == "t"
        if name == "si":
            current[0] = ""

    def end(name: str) -> None:
        taking[0] = False
        if name == "si":
            if len(table) >= MAX_SHARED_STRINGS:
                raise RefusedError("too_large")
            table.append(current[0])

    def text(words: str) -> None:
        if taking[0]:
            current[0] += words

    read_xml(entry_blocks(package, "xl/sharedStrings.xml"), start, end, text)
    return table


def _sheets(package: zipfile.ZipFile) -> list[tuple[str, str]]:
    """(title, entry) of each sheet in the workbook's order."""
    targets: dict[str, str] = {}
    titles: list[tuple[str, str]] = []

    def relation(name: str, attributes: Mapping[str, str]) -> None:
        if name == "Relationship":
            targets[attributes.get("Id", "")] = attributes.get("Target", "").removeprefix("/xl/")

    def sheet(name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet":
            key = next((value for key, value in attributes.items() if key.rpartition(":")[2] == "id"), "")
            titles.append((attributes.get("name", ""), key))

    if "xl/_rels/workbook.xml.rels" in package.namelist():
        read_xml(entry_blocks(package, "xl/_rels/workbook.xml.rels"), relation, _ignore, _ignore)
    read_xml(entry_blocks(package, "xl/workbook.xml"), sheet, _ignore, _ignore)
    names = set(package.namelist())
    return [(title, f"xl/{targets[key]}") for title, key in titles if f"xl/{targets.get(key)}" in names]


def _ignore(_: str) -> None:
    """For what does not matter."""


class OpenWriting:
    """Text, sheets and slides of OpenDocument."""

    def __init__(self, words: TextCollector) -> None:
        self._words, self._depth, self._cell, self._slides = words, 0, 0, 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """A paragraph, cell, sheet or slide begins."""
        self._depth += name in ("p", "h")
        self._cell += name == "table-cell"
        if name == "table" and attributes.get("table:name"):
            self._words.add(f"[sheet: {attributes['table:name']}]\n")
        elif name == "page":
            self._slides += 1
            self._words.add(f"[slide {self._slides}]\n")
        elif name in ("tab", "s", "line-break"):
            self._words.add({"tab": "\t", "s": " ", "line-break": "\n"}[name])

    def end(self, name: str) -> None:
        """One of them ends."""
        self._depth -= name in ("p", "h")
        self._cell -= name == "table-cell"
        if name in ("p", "h"):
            self._words.add(" " if self._cell else "\n")
        elif name in ("table-cell", "table-row"):
            self._words.add("\t" if name == "table-cell" else "\n")

    def text(self, words: str) -> None:
        """Words; only those inside a paragraph are text."""
        if self._depth:
            self._words.add(words)


def open_document(source: BinaryIO, words: TextCollector, progress: Progress) -> None:
    """An OpenDocument text, sheet or presentation."""
    writing = OpenWriting(words)
    read_xml(entry_blocks(open_zip(source), "content.xml"), writing.start, writing.end, writing.text)
