"""Text of office files: zip and XML, read with the standard library alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import BinaryIO

from artifacts.extract.words import Progress, TextCollector, entry_blocks, open_zip, read_xml


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


class OpenWriting:
    """Text and slides of OpenDocument."""

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
    """An OpenDocument text or presentation."""
    writing = OpenWriting(words)
    read_xml(entry_blocks(open_zip(source), "content.xml"), writing.start, writing.end, writing.text)
