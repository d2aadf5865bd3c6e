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
MAX_TARGET_CHARS = 2_000
MAX_INDENT = 20


class Writing:
    """Reads the text in Word and PowerPoint XML: `t` contains text, paragraphs end lines, tabs separate cells.

    `headings` maps a style to its level: a paragraph with that style begins with this many `#`. `targets` maps a
    relation to an address, `lists` a list and its level to its kind of number. Fields (such as page numbers) are left
    out, and so is `Fallback`, which repeats the text of a drawing for older programs.
    """

    BREAKS: Mapping[str, str] = {"p": "\n", "tr": "\n", "tc": "\t"}
    MARKS: Mapping[str, str] = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
    LEFT_OUT = frozenset({"Fallback", "fld"})
    FORMULAS: Mapping[str, str] = {"num": "(", "den": "/(", "sup": "^(", "sub": "_(", "rad": "√("}
    PARAGRAPH = frozenset({"p", "pStyle", "outlineLvl", "ilvl", "numId"})
    REFERENCES = frozenset({"footnoteReference", "endnoteReference"})
    PICTURES: Mapping[str, str] = {"docPr": " ", "cNvPr": "\n"}

    def __init__(
        self,
        output: TextCollector,
        headings: Mapping[str, int] = MappingProxyType({}),
        targets: Mapping[str, str] = MappingProxyType({}),
        lists: Mapping[tuple[str, str], str] = MappingProxyType({}),
    ) -> None:
        self._words, self._headings, self._targets, self._lists = output, headings, targets, lists
        self._in_text, self._in_cell, self._left_out, self._level = False, 0, 0, 0
        self._link = self._list = self._description = ""
        self._is_run = self._in_properties = False
        self._list_level, self._numbers = "0", dict[tuple[str, str], int]()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._in_text = name == "t"
        self._in_properties = self._in_properties or name == "rPr"
        self._in_cell += name == "tc"
        self._left_out += name in self.LEFT_OUT
        if name in self.PARAGRAPH:
            self._start_paragraph(name, attribute(attributes, "val"))
        elif name == "hyperlink" or (name == "hlinkClick" and self._in_properties):
            self._start_link(self._targets.get(attribute(attributes, "id"), ""), is_run=name == "hlinkClick")
        elif name in self.MARKS and not self._left_out:
            self._words.add(self.MARKS[name])
        elif not self._left_out:
            self._add_mark(name, attributes)

    def _start_paragraph(self, name: str, value: str) -> None:
        if name == "p":
            self._level, self._list, self._list_level = 0, "", "0"
        elif name == "pStyle":
            self._level = self._headings.get(value, 0)
        elif name == "outlineLvl":
            self._level = heading_level(value)
        elif name == "ilvl":
            self._list_level = value
        else:
            self._list = value

    def _add_mark(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in self.FORMULAS:
            self._words.mark(self.FORMULAS[name])
        elif name in self.REFERENCES:
            self._words.mark(f"[^{attribute(attributes, 'id')}]")
        elif name in ("footnote", "endnote") and not attribute(attributes, "type"):
            self._words.mark(f"[^{attribute(attributes, 'id')}] ")
        elif name == "comment" and attribute(attributes, "author"):
            self._words.mark(f"{attribute(attributes, 'author')}: ")
        elif name in self.PICTURES:
            # Word repeats a drawing's description in the picture inside it.
            description = " ".join(attributes.get("descr", "").split())
            if description and not (name == "cNvPr" and description == self._description):
                self._words.add(f"[image: {description}]{self.PICTURES[name]}")
            self._description = description if name == "docPr" else ""

    def end(self, name: str) -> None:
        self._in_text = False
        self._in_properties = self._in_properties and name != "rPr"
        self._in_cell -= name == "tc"
        self._left_out -= name in self.LEFT_OUT
        if self._left_out:
            return
        # In Word a link contains runs; in PowerPoint it is a property of one.
        if self._link and name == ("r" if self._is_run else "hyperlink"):
            self._words.mark(f"]({self._link})")
            self._link = ""
        if name in self.FORMULAS:
            self._words.mark(")")
        if name in self.BREAKS:
            self._words.add(" " if name == "p" and self._in_cell else self.BREAKS[name])

    def text(self, text: str) -> None:
        if not self._in_text or self._left_out:
            return
        # Only the first text of a heading or an item gets the mark.
        if self._level and not self._in_cell:
            text, self._level, self._list = f"{'#' * self._level} {text}", 0, ""
        elif self._list:
            text, self._list = f"{self._item_mark()}{text}", ""
        self._words.add(text)

    def _start_link(self, target: str, *, is_run: bool) -> None:
        if target and not self._link and not self._left_out:
            self._link, self._is_run = target, is_run
            self._words.mark("[")

    def _item_mark(self) -> str:
        item = (self._list, self._list_level)
        kind = self._lists.get(item, "")
        if not kind or kind == "none":
            return ""
        level = int(self._list_level) if self._list_level in set("012345678") else 0
        if kind == "bullet":
            return f"{'  ' * level}- "
        if len(self._numbers) < MAX_STYLES:
            self._numbers[item] = self._numbers.get(item, 0) + 1
        for deeper in map(str, range(level + 1, 9)):
            self._numbers.pop((self._list, deeper), None)
        return f"{'  ' * level}{self._numbers.get(item, 1)}. "


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


class ListReader:
    """Finds the kind of number of each list's levels."""

    def __init__(self) -> None:
        self.lists: dict[tuple[str, str], str] = {}
        self._kinds, self._of, self._level = dict[str, dict[str, str]](), "", ""
        self._number, self._size = "", 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "abstractNum":
            self._of = attribute(attributes, "abstractNumId")
        elif name == "lvl":
            self._level = attribute(attributes, "ilvl")
        elif name == "numFmt" and self._size < MAX_STYLES:
            self._size += 1
            self._kinds.setdefault(self._of, {})[self._level] = attribute(attributes, "val")
        elif name == "num":
            self._number = attribute(attributes, "numId")
        elif name == "abstractNumId" and len(self.lists) < MAX_STYLES:
            for level, kind in self._kinds.get(attribute(attributes, "val"), {}).items():
                self.lists[self._number, level] = kind


def docx(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add a document: page headers, text with marked headings, notes, comments, page footers."""
    package = open_package(source)
    names = set(package.namelist())
    headings = _headings(package) if "word/styles.xml" in names else {}
    reader = ListReader()
    if "word/numbering.xml" in names:
        read_xml(entry_blocks(package, "word/numbering.xml"), reader.start, ignore, ignore)
    lists = reader.lists
    margins = {kind: sorted(name for name in names if re.fullmatch(rf"word/{kind}\d*\.xml", name)) for kind in MARGINS}
    _add_margins(package, margins["header"], "header", output)
    for name in ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"):
        if name not in names:
            continue
        if name != "word/document.xml":
            output.add(f"\n[{name[5:-4]}]\n")
        _add_xml(package, name, output, headings, lists)
    _add_margins(package, margins["footer"], "footer", output)


MARGINS = ("header", "footer")
MARGIN_CHARS = 10_000


def _headings(package: zipfile.ZipFile) -> Mapping[str, int]:
    styles = StyleReader()
    read_xml(entry_blocks(package, "word/styles.xml"), styles.start, ignore, ignore)
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
    package: zipfile.ZipFile,
    name: str,
    output: TextCollector,
    headings: Mapping[str, int] = MappingProxyType({}),
    lists: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> None:
    writing = Writing(output, headings, addresses(package, name), lists)
    read_xml(entry_blocks(package, name), writing.start, writing.end, writing.text)


def ignore(_: str) -> None: ...


def pptx(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add each slide in the order of the show, followed by its speaker notes."""
    package = open_package(source)
    slides = _slides(package)
    for number, name in enumerate(slides, 1):
        progress.mark("slides", number, len(slides))
        output.mark(f"[slide {number}]\n")
        _add_xml(package, name, output)
        for chart in dict.fromkeys(targets(package, name, "chart").values()):
            output.mark(f"[chart on slide {number}]\n")
            _add_chart(package, chart, output)
        for diagram in dict.fromkeys(targets(package, name, "diagramData").values()):
            _add_xml(package, diagram, output)
        for notes in targets(package, name, "notesSlide").values():
            output.mark(f"[notes of slide {number}]\n")
            _add_xml(package, notes, output)
        output.add("\n")


class ChartReader:
    """Reads a chart's title and the values of its series, a line for each: series, category, value."""

    def __init__(self, output: TextCollector) -> None:
        self._words, self._text, self._part, self._index = output, "", "", ""
        self._series: dict[str, dict[str, str]] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._text = ""
        if name == "ser":
            self._series = {}
        elif name in CHART_PARTS:
            self._part = CHART_PARTS[name]
        elif name == "pt":
            self._index = attributes.get("idx", "")

    def end(self, name: str) -> None:
        if name == "t":
            self._words.add(f"{self._text}\n")
        elif name == "v":
            self._series.setdefault(self._part, {})[self._index] = self._text
        elif name == "ser":
            title = " ".join(self._series.get("series", {}).values())
            names = self._series.get("category", {})
            for index, value in self._series.get("value", {}).items():
                self._words.add("\t".join(filter(None, (title, names.get(index, ""), value))) + "\n")

    def text(self, text: str) -> None:
        self._text += text[: MAX_TARGET_CHARS - len(self._text)] if len(self._text) < MAX_TARGET_CHARS else ""


CHART_PARTS = {"tx": "series", "cat": "category", "xVal": "category", "val": "value", "yVal": "value"}


def _add_chart(package: zipfile.ZipFile, name: str, output: TextCollector) -> None:
    chart = ChartReader(output)
    read_xml(entry_blocks(package, name), chart.start, chart.end, chart.text)


def _slides(package: zipfile.ZipFile) -> list[str]:
    names = (name for name in package.namelist() if re.fullmatch(r"ppt/slides/slide\d{1,6}\.xml", name))
    numbered = sorted(names, key=lambda name: int(re.sub(r"\D", "", name)))
    parts, order = targets(package, "ppt/presentation.xml", "slide"), list[str]()

    def collect_id(name: str, attributes: Mapping[str, str]) -> None:
        if name == "sldId":
            order.append(next((value for key, value in attributes.items() if key.endswith(":id")), ""))

    if parts:
        read_xml(entry_blocks(package, "ppt/presentation.xml"), collect_id, ignore, ignore)
    # A damaged presentation may not list all slides. Their numbers are the next best order.
    ordered = [parts[key] for key in order if key in parts]
    return ordered if sorted(ordered) == sorted(numbered) else numbered


def _relations(package: zipfile.ZipFile, part: str) -> list[Mapping[str, str]]:
    folder, _, name = part.rpartition("/")
    relations, found = f"{folder}/_rels/{name}.rels", list[Mapping[str, str]]()
    if relations in package.NameToInfo:
        read_xml(entry_blocks(package, relations), lambda _, attributes: found.append(attributes), ignore, ignore)
    return found


def addresses(package: zipfile.ZipFile, part: str) -> dict[str, str]:
    """Return the addresses of a part's links by the relation's id."""
    links = (relation for relation in _relations(package, part) if relation.get("TargetMode") == "External")
    return {
        link.get("Id", ""): link.get("Target", "")[:MAX_TARGET_CHARS]
        for link in links
        if link.get("Type", "").endswith("/hyperlink")
    }


def targets(package: zipfile.ZipFile, part: str, kind: str) -> dict[str, str]:
    """Return the parts that this part has relations of a kind to, by the relation's id."""
    folder, found = part.rpartition("/")[0], dict[str, str]()
    for relation in _relations(package, part):
        if relation.get("Type", "").endswith(f"/{kind}"):
            target = relation.get("Target", "")
            entry = target[1:] if target.startswith("/") else posixpath.normpath(f"{folder}/{target}")
            if entry in package.NameToInfo:
                found[relation.get("Id", "")] = entry
    return found


class OpenWriting:
    """Reads the text in OpenDocument's `content.xml`."""

    def __init__(self, output: TextCollector) -> None:
        self._words, self._depth, self._cell, self._slides = output, 0, 0, 0
        self._links, self._lists, self._item, self._silent = list[str](), 0, False, 0
        self._in_description = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._silent += name == "tracked-changes"
        self._depth += name in ("p", "h")
        self._cell += name == "table-cell"
        self._lists += name == "list"
        self._in_description = name == "desc"
        if name == "table" and attributes.get("table:name"):
            self._words.mark(f"[sheet: {attributes['table:name']}]\n")
        elif name == "page":
            self._slides += 1
            self._words.mark(f"[slide {self._slides}]\n")
        elif name == "h":
            level = attributes.get("text:outline-level", "")
            self._words.mark(f"{'#' * (int(level) if level in set('123456') else 1)} ")
        elif name == "list-item":
            self._item = True
        elif name == "p" and self._item:
            self._item = False
            self._words.mark(f"{'  ' * min(self._lists - 1, MAX_INDENT)}- ")
        elif name == "a":
            self._links.append(attributes.get("xlink:href", "")[:MAX_TARGET_CHARS])
            self._words.mark("[" if self._links[-1] else "")
        elif name in ("note-body", "annotation"):
            self._words.mark("[footnote: " if name == "note-body" else "[comment: ")
        elif name in ("tab", "s", "line-break"):
            self._words.add({"tab": "\t", "s": " ", "line-break": "\n"}[name])

    def end(self, name: str) -> None:
        self._silent -= name == "tracked-changes"
        self._depth -= name in ("p", "h")
        self._cell -= name == "table-cell"
        self._lists -= name == "list"
        self._in_description = False
        if name in ("p", "h"):
            self._words.add(" " if self._cell or self._depth else "\n")
        elif name == "a" and self._links:
            target = self._links.pop()
            self._words.mark(f"]({target})" if target else "")
        elif name in ("note-body", "annotation"):
            self._words.mark("]")
        elif name in ("table-cell", "table-row"):
            self._words.add("\t" if name == "table-cell" else "\n")

    def text(self, text: str) -> None:
        if self._in_description and text.strip():
            self._words.add(f"[image: {' '.join(text.split())}]")
        # Only characters inside a paragraph are text. The rest is indentation.
        elif self._depth and not self._silent:
            self._words.add(text)


def open_document(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add the text of an OpenDocument text or presentation."""
    writing = OpenWriting(output)
    read_xml(entry_blocks(open_package(source), "content.xml"), writing.start, writing.end, writing.text)
