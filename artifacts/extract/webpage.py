"""Extract the visible text of web pages and EPUB books."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import BinaryIO
from urllib.parse import unquote
from xml.parsers.expat import ExpatError

from artifacts.core.detection.encodings import decode_blocks, detect_text
from artifacts.extract.formulas import OTHER_FORMS, FormulaWriter
from artifacts.extract.reading import READ_BYTES, Progress, TextCollector, entry_blocks, open_zip, read_xml

HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", *OTHER_FORMS})
BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "div", "dl", "dt", "fieldset"}
    | {"figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "legend", "li"}
    | {"main", "nav", "ol", "p", "pre", "section", "summary", "table", "title", "tr", "ul"}
)
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
IMPLIED_ENDS = {
    "li": frozenset({"li"}),
    "dt": frozenset({"dt", "dd"}),
    "dd": frozenset({"dt", "dd"}),
    "tr": frozenset({"tr", "td", "th"}),
    "td": frozenset({"td", "th"}),
    "th": frozenset({"td", "th"}),
    "option": frozenset({"option"}),
}
"""Maps each start tag to the open elements that it ends, because HTML allows end tags to be omitted. In addition, any
block element ends a paragraph."""

HEADINGS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}
MARKS = {"sup": "^", "del": "~~", "s": "~~", "strike": "~~"}
"""Markers for elements whose text would be misread without them, as in `10^3` or struck-out text."""

SECRET_FIELDS = frozenset({"hidden", "password"})
INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
NO_TARGET = ("#", "javascript:", "data:", "cid:", "about:")
"""Prefixes of link targets that are meaningless outside the page."""

REPEATED_FORMULA = "katex-html"
"""CSS class of an element that repeats the preceding MathML formula as an image."""

MAX_TARGET_CHARS = 2_000
MAX_DEPTH = 20
MAX_COLUMNS = 100
"""Maximum number of columns that one table cell may span."""
MAX_TABS = 10_000

MAX_UNPARSED = 1 << 20
"""Maximum number of buffered characters of an unfinished construct, such as a comment. The parser searches all of them
again with each block of data."""


@dataclass(slots=True)
class TableState:
    """The position in a table while it is read.

    `last` is the number of columns that the last cell spans (0 if the row is empty), and `column` is the next column.
    `covered` maps each column to the number of rows that a cell above it still spans.
    """

    last: int = 0
    column: int = 0
    covered: dict[int, int] = field(default_factory=dict)

    def start_row(self) -> None:
        self.last = self.column = 0
        self.covered = {column: rows - 1 for column, rows in self.covered.items() if rows > 1}

    def start_cell(self, columns: int, rows: int) -> int:
        """Start a cell. Return its distance in columns from the start of the previous cell, or of the row."""
        distance = self.last
        while self.covered.get(self.column):
            self.column += 1
            distance += 1
        self.last = max(1, min(columns, MAX_COLUMNS))
        if rows > 1 and self.column < MAX_COLUMNS:
            self.covered.update(dict.fromkeys(range(self.column, self.column + self.last), rows))
        self.column += self.last
        return distance


class VisibleTextParser(HTMLParser):
    """Collects the text that a browser would display.

    Headings, lists, quotations and links are written as in Markdown. Tabs separate table cells. Alternative texts
    replace images. The text of `pre` elements is unchanged.
    """

    def __init__(self, output: TextCollector, left_out: Container[str] = ()) -> None:
        super().__init__(convert_charrefs=True)
        self._output, self._started, self._left_out = output, False, left_out
        self._formula: FormulaWriter | None = None
        self._stack: list[str] = []
        self._open: Counter[str] = Counter()
        # The nesting depth of the hidden element, or 0 outside of hidden elements.
        self._hidden_depth = 0
        # For each open list, the number of its last item, or None if the list is bulleted.
        self._lists: list[int | None] = []
        self._tables = [TableState()]
        self._row_is_empty = self._pre_is_empty = False
        self._targets: list[str] = []
        self._break = self._space = self._mark = ""  # Text to insert before the next text, in this order.

    def feed(self, data: str) -> None:
        super().feed(data)
        if len(self.rawdata) > MAX_UNPARSED:
            self.rawdata = ""
        self._output.add_marker("")  # Raise an exception if the time limit has passed, even without text.

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:  # Skip an invalid section like a comment, as browsers do.
            return self.parse_bogus_comment(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self._stack and self._is_ended_by(tag):
            self._pop()
        attributes = {name: value or "" for name, value in reversed(attrs)}
        hidden = tag in HIDDEN or tag in self._left_out or "hidden" in attributes
        hidden = hidden or bool(INVISIBLE.search(attributes.get("style", "")))
        hidden = hidden or REPEATED_FORMULA in attributes.get("class", "")
        if tag == "svg":
            self._add_image(attributes.get("aria-label", ""))
        if tag not in VOID:
            self._stack.append(tag)
            self._open[tag] += 1
            if hidden and not self._hidden_depth:
                self._hidden_depth = len(self._stack)
        if not self._hidden_depth and not hidden:
            self._start(tag, attributes)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open[tag]:
            return
        while self._pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._hidden_depth:
            return
        data = data.replace("\xad", "")
        if self._formula:
            self._formula.text(data)
            return
        if self._open["pre"]:
            self._add_lines(data.replace("\r\n", "\n"))
            return
        if data[:1].isspace():
            self._space = " "
        if text := " ".join(data.split()):
            self._add(text)
            self._space = " " if data[-1:].isspace() else ""

    def _is_ended_by(self, tag: str) -> bool:
        last = self._stack[-1]
        # A block element ends a formula that was never closed.
        if self._formula and tag in BLOCKS:
            return True
        return (last == "p" and tag in BLOCKS and tag != "br") or last in IMPLIED_ENDS.get(tag, ())

    def _pop(self) -> str:
        tag = self._stack.pop()
        self._open[tag] -= 1
        if not self._hidden_depth:
            self._end(tag)
        elif len(self._stack) < self._hidden_depth:
            self._hidden_depth = 0
        return tag

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._formula or tag.rpartition(":")[2] == "math":
            self._formula = self._formula or FormulaWriter(self._add)
            if tag not in VOID:  # A void element has no end tag.
                self._formula.start(tag.rpartition(":")[2], attributes)
            return
        if tag in ("tr", "table"):
            self._start_row(tag)
        elif tag in BLOCKS:
            self._break_line()
        self._mark += MARKS.get(tag, "")
        match tag:
            case "td" | "th":
                self._start_cell(_number(attributes.get("colspan"), 1), _number(attributes.get("rowspan"), 1))
            case "ol":
                self._lists.append(_number(attributes.get("start"), 1) - 1)
            case "ul":
                self._lists.append(None)
            case "li":
                self._start_item(attributes.get("value"))
            case "pre":
                self._pre_is_empty = True
            case "a":
                self._start_link(attributes.get("href", "").strip())
            case _ if tag in HEADINGS:
                # If a link surrounds a heading, write the heading marker before the link.
                opening = "[" * self._mark.endswith("[")
                self._mark = self._mark.removesuffix("[") + HEADINGS[tag] + opening
            case _:
                self._add_field_or_image(tag, attributes)

    def _end(self, tag: str) -> None:
        if self._formula:
            self._formula.end(tag.rpartition(":")[2])
            self._formula = None if self._formula.is_whole else self._formula
            return
        had_text = not self._mark
        match tag:
            case "a":
                self._end_link()
            case "table":
                del self._tables[max(len(self._tables) - 1, 1) :]
            case "ol" | "ul" if self._lists:
                self._lists.pop()
            case "del" | "s" | "strike":
                self._mark = self._mark.removesuffix("~~")
                if had_text:
                    self._output.add("~~")
            case _ if tag in HEADINGS or tag in ("li", "sup", "option"):
                self._mark = "[" * self._mark.endswith("[")
        if tag in BLOCKS:
            self._break_line(ends_row=tag in ("tr", "table"))
        elif tag in ("textarea", "select", "option"):
            self._space = " "

    def _start_row(self, tag: str) -> None:
        self._break_line(ends_row=True)
        self._row_is_empty = True
        if tag == "table":
            self._tables.append(TableState())
        self._tables[-1].start_row()

    def _start_cell(self, columns: int, rows: int) -> None:
        is_first = not self._tables[-1].last
        distance = self._tables[-1].start_cell(columns, rows)
        if is_first:
            self._break_line(ends_row=True)
        elif "\n" in self._break and not self._row_is_empty:
            self._break = ""
        self._break = (self._break + "\t" * distance)[:MAX_TABS]

    def _start_item(self, value: str | None) -> None:
        number = self._lists[-1] if self._lists else None
        if number is None:
            self._mark = "- "
        else:
            self._lists[-1] = number = _number(value, number + 1)
            self._mark = f"{number}. "

    def _start_link(self, target: str) -> None:
        is_shown = len(target) <= MAX_TARGET_CHARS and not target.lower().startswith(NO_TARGET)
        self._targets.append(target if is_shown else "")
        self._mark += "[" if self._targets[-1] else ""

    def _end_link(self) -> None:
        target = self._targets.pop() if self._targets else ""
        if self._mark.endswith("["):
            self._mark = self._mark[:-1]
        elif target:
            self._output.add(f"]({target})")

    def _add_image(self, text: str) -> None:
        if text.strip() and not self._hidden_depth:
            self._add(f"[image: {' '.join(text.split())}]")

    def _add_field_or_image(self, tag: str, attributes: dict[str, str]) -> None:
        match tag:
            case "img" | "area":
                self._add_image(attributes.get("alt", ""))
            case "option":
                self._space, self._mark = " ", "[x] " if "selected" in attributes else "[ ] "
            case "textarea":
                self._space = " "
            case "input" if (kind := attributes.get("type", "").lower()) not in SECRET_FIELDS:
                ticked = "[x]" if "checked" in attributes else "[ ]"
                value = ticked if kind in ("checkbox", "radio") else " ".join(attributes.get("value", "").split())
                self._space = " "
                if value:
                    self._add(value)
                    self._space = " "

    def _add(self, text: str) -> None:
        if self._mark.endswith("[") and _is_same(text, self._targets[-1]):
            self._mark, self._targets[-1] = self._mark[:-1], ""
        before = self._break.replace("\n", f"\n{self._indentation()}") if self._break else self._space
        self._output.add(before + self._mark + text)
        self._break = self._space = self._mark = ""
        self._started, self._row_is_empty = True, False

    def _add_lines(self, data: str) -> None:
        # A line break after the start tag or before the end tag is not part of the text.
        data = data.removeprefix("\n") if self._pre_is_empty else data
        self._pre_is_empty = False
        text = data.strip("\n")
        self._break += "\n" * data.startswith("\n")
        if text:
            self._add(text.replace("\n", f"\n{self._indentation()}"))
            self._break = "\n\n" if data.endswith("\n\n") else "\n" * data.endswith("\n")
        self._break = self._break[:2]

    def _indentation(self) -> str:
        return "> " * min(self._open["blockquote"], MAX_DEPTH) + "  " * min(len(self._lists) - 1, MAX_DEPTH)

    def _break_line(self, *, ends_row: bool = False) -> None:
        # Block elements at the beginning of a cell must not break the table row.
        if self._started and (ends_row or "\t" not in self._break):
            self._break = "\n"


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 7 else default


def _is_same(text: str, target: str) -> bool:
    return text.rstrip("/") in (target.rstrip("/"), target.partition(":")[2].strip("/"))


def html(source: BinaryIO, output: TextCollector, progress: Progress, encoding: str | None = None) -> None:
    """Write the text of a web page to `output`, decoded with the given encoding or else with the detected one."""
    if encoding is None:
        head = source.read(READ_BYTES)
        detected = detect_text(head, whole=len(head) < READ_BYTES)
        encoding = detected.encoding if detected else None
        source.seek(0)
    page = VisibleTextParser(output)
    for text in decode_blocks(iter(lambda: source.read(READ_BYTES), b""), encoding):
        page.feed(text)
    page.close()


class BookReader:
    """Reads an EPUB's package file: title, authors, and chapters in the order of the spine (the reading order)."""

    def __init__(self) -> None:
        self.root = self.title = ""
        self.authors, self._items, self._spine = list[str](), dict[str, str](), dict[str, None]()
        self._text = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._text = ""
        if name == "rootfile":
            self.root = self.root or attributes.get("full-path", "")
        elif name == "item":
            self._items[attributes.get("id", "")] = unquote(attributes.get("href", ""))
        elif name == "itemref":
            self._spine[attributes.get("idref", "")] = None

    def end(self, name: str) -> None:
        text = " ".join(self._text.split())
        if name == "title":
            self.title = self.title or text
        elif name == "creator" and text:
            self.authors.append(text)

    def text(self, text: str) -> None:
        self._text += text[: MAX_TARGET_CHARS - len(self._text)] if len(self._text) < MAX_TARGET_CHARS else ""

    @property
    def chapters(self) -> list[str]:
        folder = posixpath.dirname(self.root)
        return [posixpath.normpath(posixpath.join(folder, self._items.get(item, ""))) for item in self._spine]


def epub(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write the title, authors and chapters of a book to `output`.

    The order of chapters is that of the spine, or of the archive if there is no spine.
    """
    package: zipfile.ZipFile = open_zip(source)
    book, names = BookReader(), set(package.namelist())
    # Without a readable package file, use the order of the archive.
    with suppress(ExpatError):
        for part in (CONTAINER, None):
            if (name := part or book.root) in names:
                read_xml(entry_blocks(package, name), book.start, book.end, book.text)
    if book.title or book.authors:
        output.add_marker("".join(f"{line}\n" for line in (book.title, ", ".join(book.authors)) if line) + "\n")
    listed = [name for name in package.namelist() if name.lower().endswith((".xhtml", ".html", ".htm"))]
    chapters = [name for name in book.chapters if name in names] or listed
    for number, name in enumerate(chapters, 1):
        progress.report("chapters", number, len(chapters))
        output.add_marker(f"[chapter {number}]\n")
        # Ignore a chapter's `title` element: it often has the book's title, and the text has the chapter's heading.
        page = VisibleTextParser(output, left_out=("title",))
        for text in decode_blocks(entry_blocks(package, name), "utf-8"):
            page.feed(text)
        page.close()
        output.add("\n\n")


CONTAINER = "META-INF/container.xml"
