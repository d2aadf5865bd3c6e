"""Extract text from Office and OpenDocument packages with the standard library."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import BinaryIO

from artifacts.extract.legacy import open_package
from artifacts.extract.words import EnoughError, Progress, TextCollector, entry_blocks, read_xml

MAX_HEADING = 6
MAX_STYLES = 10_000


class Writing:
    """Reads the text in Word and PowerPoint XML: `t` contains text, paragraphs end lines, tabs separate cells.

    `headings` maps a style to its level: a paragraph with that style begins with this many `#`. Fields (such as page
    numbers) are left out, and so is `Fallback`, which repeats the text of a drawing for older programs.
    """

    BREAKS: Mapping[str, str] = {"p": "\n", "tr": "\n", "tc": "\t"}
    MARKS: Mapping[str, str] = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
    LEFT_OUT = frozenset({"Fallback", "fld"})

    def __init__(self, output: TextCollector, headings: Mapping[str, int] = MappingProxyType({})) -> None:
        self._words, self._headings = output, headings
        self._in_text, self._in_cell, self._left_out, self._level = False, 0, 0, 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._in_text = name == "t"
        self._in_cell += name == "tc"
        self._left_out += name in self.LEFT_OUT
        if name == "p":
            self._level = 0
        elif name == "pStyle":
            self._level = self._headings.get(attribute(attributes, "val"), 0)
        elif name == "outlineLvl":
            self._level = heading_level(attribute(attributes, "val"))
        elif name in self.MARKS and not self._left_out:
            self._words.add(self.MARKS[name])

    def end(self, name: str) -> None:
        self._in_text = False
        self._in_cell -= name == "tc"
        self._left_out -= name in self.LEFT_OUT
        if name in self.BREAKS and not self._left_out:
            self._words.add(" " if name == "p" and self._in_cell else self.BREAKS[name])

    def text(self, text: str) -> None:
        if not self._in_text or self._left_out:
            return
        # Only the first text of a heading gets the mark.
        if self._level and not self._in_cell:
            text, self._level = f"{'#' * self._level} {text}", 0
        self._words.add(text)


def attribute(attributes: Mapping[str, str], name: str) -> str:
    """Return the attribute with this name and any prefix, or ""."""
    return next((value for key, value in attributes.items() if key.rpartition(":")[2] == name), "")


def heading_level(outline: str) -> int:
    """Return the heading level (from 1) for Word's outline level (from 0), or 0 for body text."""
    return int(outline) + 1 if outline in set("012345") else 0


class StyleReader:
    """Finds each style's heading level by its outline level or else its name, which is English in every language."""

    def __init__(self) -> None:
        self.headings: dict[str, int] = {}
        self._style = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "style":
            self._style = attribute(attributes, "styleId")
        level = 0
        if name == "name":
            title = attribute(attributes, "val").lower()
            level = 1 if title == "title" else int(title[-1]) if re.fullmatch(r"heading [1-6]", title) else 0
        elif name == "outlineLvl":
            level = heading_level(attribute(attributes, "val"))
        if level and self._style and len(self.headings) < MAX_STYLES:
            self.headings[self._style] = level


def docx(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add a document: page headers, text with marked headings, notes, comments, page footers."""
    package = open_package(source)
    names = set(package.namelist())
    headings = _headings(package) if "word/styles.xml" in names else {}
    margins = {kind: sorted(name for name in names if re.fullmatch(rf"word/{kind}\d*\.xml", name)) for kind in MARGINS}
    _add_margins(package, margins["header"], "header", output)
    for name in ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"):
        if name not in names:
            continue
        if name != "word/document.xml":
            output.add(f"\n[{name[5:-4]}]\n")
        _add_xml(package, name, output, headings)
    _add_margins(package, margins["footer"], "footer", output)


MARGINS = ("header", "footer")
MARGIN_CHARS = 10_000


def _headings(package: zipfile.ZipFile) -> Mapping[str, int]:
    styles = StyleReader()
    read_xml(entry_blocks(package, "word/styles.xml"), styles.start, _ignore, _ignore)
    return styles.headings


def _add_margins(package: zipfile.ZipFile, names: list[str], mark: str, output: TextCollector) -> None:
    # First and even pages often repeat a header, so each different header is added once.
    margins: dict[str, None] = {}
    for name in names:
        margin = TextCollector(MARGIN_CHARS)
        with suppress(EnoughError):
            _add_xml(package, name, margin)
        if margin.text().strip():
            margins[margin.text().strip()] = None
    if margins:
        output.add(f"[{mark}]\n" + "\n".join(margins) + "\n\n")


def _add_xml(
    package: zipfile.ZipFile, name: str, output: TextCollector, headings: Mapping[str, int] = MappingProxyType({})
) -> None:
    writing = Writing(output, headings)
    read_xml(entry_blocks(package, name), writing.start, writing.end, writing.text)


def _ignore(_: str) -> None: ...


def pptx(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add each slide in the order of the show, followed by its speaker notes."""
    package = open_package(source)
    slides = _slides(package)
    for number, name in enumerate(slides, 1):
        progress.mark("slides", number, len(slides))
        output.mark(f"[slide {number}]\n")
        _add_xml(package, name, output)
        for notes in _targets(package, name, "notesSlide").values():
            output.mark(f"[notes of slide {number}]\n")
            _add_xml(package, notes, output)
        output.add("\n")


def _slides(package: zipfile.ZipFile) -> list[str]:
    names = (name for name in package.namelist() if re.fullmatch(r"ppt/slides/slide\d{1,6}\.xml", name))
    numbered = sorted(names, key=lambda name: int(re.sub(r"\D", "", name)))
    targets, order = _targets(package, "ppt/presentation.xml", "slide"), list[str]()

    def collect_id(name: str, attributes: Mapping[str, str]) -> None:
        if name == "sldId":
            order.append(next((value for key, value in attributes.items() if key.endswith(":id")), ""))

    if targets:
        read_xml(entry_blocks(package, "ppt/presentation.xml"), collect_id, _ignore, _ignore)
    # A damaged presentation may not list all slides. Their numbers are the next best order.
    ordered = [targets[key] for key in order if key in targets]
    return ordered if sorted(ordered) == sorted(numbered) else numbered


def _targets(package: zipfile.ZipFile, part: str, kind: str) -> dict[str, str]:
    folder, _, name = part.rpartition("/")
    relations, names, targets = f"{folder}/_rels/{name}.rels", set(package.namelist()), dict[str, str]()

    def collect_target(_: str, attributes: Mapping[str, str]) -> None:
        if attributes.get("Type", "").endswith(f"/{kind}"):
            target = attributes.get("Target", "")
            entry = target[1:] if target.startswith("/") else posixpath.normpath(f"{folder}/{target}")
            if entry in names:
                targets[attributes.get("Id", "")] = entry

    if relations in names:
        read_xml(entry_blocks(package, relations), collect_target, _ignore, _ignore)
    return targets


class OpenWriting:
    """Reads the text in OpenDocument's `content.xml`."""

    def __init__(self, output: TextCollector) -> None:
        self._words, self._depth, self._cell, self._slides = output, 0, 0, 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._depth += name in ("p", "h")
        self._cell += name == "table-cell"
        if name == "table" and attributes.get("table:name"):
            self._words.mark(f"[sheet: {attributes['table:name']}]\n")
        elif name == "page":
            self._slides += 1
            self._words.mark(f"[slide {self._slides}]\n")
        elif name in ("tab", "s", "line-break"):
            self._words.add({"tab": "\t", "s": " ", "line-break": "\n"}[name])

    def end(self, name: str) -> None:
        self._depth -= name in ("p", "h")
        self._cell -= name == "table-cell"
        if name in ("p", "h"):
            self._words.add(" " if self._cell else "\n")
        elif name in ("table-cell", "table-row"):
            self._words.add("\t" if name == "table-cell" else "\n")

    def text(self, text: str) -> None:
        # Only characters inside a paragraph are text. The rest is indentation.
        if self._depth:
            self._words.add(text)


def open_document(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add the text of an OpenDocument text or presentation."""
    writing = OpenWriting(output)
    read_xml(entry_blocks(open_package(source), "content.xml"), writing.start, writing.end, writing.text)
