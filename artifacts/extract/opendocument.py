"""Extract text from OpenDocument texts and presentations, with numbered headings and lists, links, and formulas."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import BinaryIO

from artifacts.extract.formulas import FormulaWriter
from artifacts.extract.legacy import open_package
from artifacts.extract.numbering import ListLevel, ListNumbers, parse_level, parse_start
from artifacts.extract.office import MAX_TARGET_CHARS, Attributes, ignore
from artifacts.extract.reading import DAMAGE_ERRORS, Progress, TextCollector, TextLimitError, entry_blocks, read_xml

MAX_LEVEL = 9
MAX_STYLES = 10_000
MAX_SPACES = MAX_COLUMNS = 100
MARGINS = ("header", "footer")
MARGIN_CHARS = 10_000
MAX_NESTED_OBJECTS = 10
OUTLINE = ""
"""Name of the style that numbers headings."""

SILENT = frozenset({"tracked-changes", "note-citation"})
LEVELS = {"list-level-style-number": "", "list-level-style-bullet": "bullet", "outline-level-style": ""}
LEVELS |= {"list-level-style-image": "bullet"}
CELLS = ("table-cell", "covered-table-cell")


class StyleReader:
    """Reads list and heading styles, by name and level, and the names of superscript and strikethrough styles."""

    def __init__(self) -> None:
        self.styles: dict[str, dict[int, ListLevel]] = {}
        self.raised, self.struck = set[str](), set[str]()
        self._style, self._size, self._text_style = OUTLINE, 0, ""

    def start(self, name: str, attributes: Attributes) -> None:
        if name in ("list-style", "outline-style"):
            self._style = attributes.get("style:name", "") if name == "list-style" else OUTLINE
        elif name == "style":
            self._text_style = attributes.get("style:name", "")
        elif name == "text-properties" and len(self.raised) + len(self.struck) < MAX_STYLES:
            # The value of this attribute begins with `super` or with the height by which the text is raised.
            position = attributes.get("style:text-position", "").split(" ")[0]
            if position == "super" or (position.endswith("%") and position[:-1].isdecimal() and position != "0%"):
                self.raised.add(self._text_style)
            if attributes.get("style:text-line-through-style", "none") != "none":
                self.struck.add(self._text_style)
        elif name in LEVELS and self._size < MAX_STYLES:
            self._size += 1
            level = parse_level(attributes.get("text:level", "1")) - 1
            kind = LEVELS[name] or attributes.get("style:num-format", "")
            shown = min(max(parse_level(attributes.get("text:display-levels", "1")), 1), level + 1) if level >= 0 else 1
            places = ".".join(f"%{place + 1}" for place in range(level - shown + 1, level + 1)) if kind else ""
            pattern = f"{attributes.get('style:num-prefix', '')}{places}{attributes.get('style:num-suffix', '')}"
            start = parse_start(attributes.get("text:start-value", "1"))
            self.styles.setdefault(self._style, {})[level] = ListLevel(kind, pattern if kind else "", start)


class OpenDocumentParser:
    """Reads text from OpenDocument XML.

    `lists` contains the list styles. `add_object` adds the text of an embedded object.
    """

    def __init__(self, output: TextCollector, lists: StyleReader, add_object: Callable[[str], None] = ignore) -> None:
        self._output, self._style_reader, self._add_object = output, lists, add_object
        self._depth, self._slides, self._silent, self._comments = 0, 0, 0, 0
        self._cells = list[int]()  # The number of columns that each open cell spans.
        self._links, self._spans, self._is_raised = list[str](), list[str](), False
        self._lists, self._counters, self._numbers = list[str](), list[str](), ListNumbers()
        self._list_count, self._last_counters = 0, dict[str, str]()
        self._item: Attributes | None = None
        self._in_description = self._in_creator = False
        self._is_title, self._notes = False, ""
        self._formula: FormulaWriter | None = None
        self._starts: dict[str, Callable[[Attributes], None]] = {
            "p": self._start_paragraph,
            "h": self._start_heading,
            "list": self._start_list,
            "list-item": self._start_item,
            "a": self._start_link,
            "span": self._start_span,
            "note-body": lambda _: self._output.add_marker("[footnote: "),
            "annotation": self._start_comment,
            "tab": lambda _: self._output.add("\t"),
            "line-break": lambda _: self._output.add("\n"),
            "s": lambda attributes: self._output.add(" " * min(parse_start(attributes.get("text:c", "1")), MAX_SPACES)),
            "object": lambda attributes: self._add_object(attributes.get("xlink:href", "")),
            "table": self._start_table,
            **dict.fromkeys(CELLS, self._start_cell),
            "page": self._start_slide,
            "frame": self._start_frame,
            "notes": self._start_notes,
        }
        self._ends: dict[str, Callable[[], None]] = {
            "p": self._end_paragraph,
            "h": self._end_paragraph,
            "list": self._end_list,
            "a": self._end_link,
            "span": self._end_span,
            "note-body": lambda: self._output.add_marker("]"),
            "annotation": self._end_comment,
            "creator": lambda: self._output.add_marker(": " if self._in_creator else ""),
            **dict.fromkeys(CELLS, self._end_cell),
            "table-row": lambda: self._output.add("\n"),
        }

    def start(self, name: str, attributes: Attributes) -> None:
        self._in_description, self._in_creator = name == "desc", name == "creator" and self._comments > 0
        if self._is_silent(name):
            self._silent += 1
        elif self._formula or name == "math":
            self._formula = self._formula or FormulaWriter(self._output.add)
            self._formula.start(name, attributes)
        elif handler := self._starts.get(name):
            if not self._silent:
                handler(attributes)
        else:
            self._style_reader.start(name, attributes)

    def end(self, name: str) -> None:
        self._in_description = False
        if self._is_silent(name):
            self._silent -= 1
        elif self._formula:
            self._formula.end(name)
            self._formula = None if self._formula.is_whole else self._formula
        elif not self._silent and (handler := self._ends.get(name)):
            handler()

    def _is_silent(self, name: str) -> bool:
        return name in SILENT or (name == "date" and self._comments > 0)

    def text(self, text: str) -> None:
        if self._silent:
            return
        if self._formula:
            self._formula.text(text)
        elif self._in_description:
            if text.strip():
                self._output.add(f"[image: {' '.join(text.split())}]")
        # Only characters inside a paragraph are text. Characters elsewhere are indentation.
        elif self._depth or self._in_creator:
            if self._notes and text.strip():
                self._output.add_marker(self._notes)
                self._notes = ""
            if self._is_raised:
                self._output.add_marker("^")
                self._is_raised = False
            self._output.add(text)

    def _start_paragraph(self, _: Attributes) -> None:
        self._depth += 1
        self._output.add_marker("# " if self._is_title else self._item_mark())
        self._is_title = False

    def _start_heading(self, attributes: Attributes) -> None:
        self._depth += 1
        level = parse_level(attributes.get("text:outline-level", "1")) or 1
        number, outline = self._item_mark().strip(), self._style_reader.styles.get(OUTLINE, {})
        if not number and attributes.get("text:is-list-header") != "true":
            number = self._numbers.next_marker(OUTLINE, outline, level - 1).strip()
        self._output.add_marker("#" * min(level, 6) + (f" {number} " if number not in ("", "-") else " "))

    def _end_paragraph(self) -> None:
        self._depth -= 1
        self._output.add(" " if self._cells or self._depth else "\n")

    def _start_list(self, attributes: Attributes) -> None:
        style = attributes.get("text:style-name", "") or (self._lists[-1] if self._lists else "")
        self._lists.append(style)
        self._list_count += 1
        counter = self._counters[-1] if self._counters else f"{style} {self._list_count}"
        if not self._counters and attributes.get("text:continue-numbering") == "true":
            counter = self._last_counters.get(style, counter)
        elif continued := attributes.get("text:continue-list"):
            counter = self._last_counters.get(f"#{continued}", counter)
        self._counters.append(counter)
        if len(self._last_counters) < MAX_STYLES:
            self._last_counters[style] = counter
            self._last_counters[f"#{attributes.get('xml:id', '')}"] = counter

    def _end_list(self) -> None:
        if self._lists:
            self._lists.pop()
            self._counters.pop()

    def _start_item(self, attributes: Attributes) -> None:
        self._item = attributes

    def _item_mark(self) -> str:
        item, self._item = self._item, None
        if item is None or not self._lists:
            return ""
        level = min(len(self._lists) - 1, MAX_LEVEL)
        if start := item.get("text:start-value"):
            self._numbers.restart(self._counters[-1], level, parse_start(start))
        levels = self._style_reader.styles.get(self._lists[-1]) or {level: ListLevel("bullet")}
        return self._numbers.next_marker(self._counters[-1], levels, level)

    def _start_link(self, attributes: Attributes) -> None:
        self._links.append(attributes.get("xlink:href", "")[:MAX_TARGET_CHARS])
        self._output.add_marker("[" if self._links[-1] else "")

    def _end_link(self) -> None:
        target = self._links.pop() if self._links else ""
        self._output.add_marker(f"]({target})" if target else "")

    def _start_span(self, attributes: Attributes) -> None:
        style = attributes.get("text:style-name", "")
        self._is_raised = style in self._style_reader.raised
        self._spans.append("~~" if style in self._style_reader.struck else "")
        self._output.add_marker(self._spans[-1])

    def _end_span(self) -> None:
        self._is_raised = False
        self._output.add_marker(self._spans.pop() if self._spans else "")

    def _start_comment(self, _: Attributes) -> None:
        self._comments += 1
        self._output.add_marker("[comment: ")

    def _end_comment(self) -> None:
        self._comments -= 1
        self._output.add_marker("]")

    def _start_table(self, attributes: Attributes) -> None:
        name = attributes.get("table:name", "")
        self._output.add_marker(f"[sheet: {name}]\n" if name else "")

    def _start_cell(self, attributes: Attributes) -> None:
        self._cells.append(min(parse_start(attributes.get("table:number-columns-repeated", "1")), MAX_COLUMNS))

    def _end_cell(self) -> None:
        self._output.add("\t" * (self._cells.pop() if self._cells else 1))

    def _start_frame(self, attributes: Attributes) -> None:
        self._is_title = attributes.get("presentation:class", "") == "title"

    def _start_notes(self, _: Attributes) -> None:
        # Some programs write empty notes for every slide.
        self._notes = f"[notes of slide {self._slides}]\n" if self._slides else ""

    def _start_slide(self, _: Attributes) -> None:
        self._slides += 1
        self._notes = ""
        self._output.add_marker(f"[slide {self._slides}]\n")


class StylesPart:
    """Reads list styles and page headers and footers, each header and footer once."""

    def __init__(self) -> None:
        self.lists = StyleReader()
        self.margins: dict[str, dict[str, None]] = {name: {} for name in MARGINS}
        self._output, self._inside = TextCollector(0), ""
        self._writing = OpenDocumentParser(self._output, self.lists)

    def start(self, name: str, attributes: Attributes) -> None:
        if self._inside:
            with suppress(TextLimitError):
                self._writing.start(name, attributes)
        elif _margin(name):
            self._inside, self._output = name, TextCollector(MARGIN_CHARS)
            self._writing = OpenDocumentParser(self._output, self.lists)
        else:
            self.lists.start(name, attributes)

    def end(self, name: str) -> None:
        if name == self._inside:
            self._inside = ""
            if text := self._output.text().strip():
                self.margins[_margin(name)][text] = None
        elif self._inside:
            with suppress(TextLimitError):
                self._writing.end(name)

    def text(self, text: str) -> None:
        if self._inside:
            with suppress(TextLimitError):
                self._writing.text(text)


def _margin(name: str) -> str:
    # The first page and left pages may have their own headers and footers.
    kind = name.removesuffix("-left").removesuffix("-first")
    return kind if kind in MARGINS else ""


def open_document(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write the text of an OpenDocument file to `output`, after its page headers and before its page footers."""
    package = open_package(source)
    styles, names = StylesPart(), set(package.namelist())
    # The text is useful even if the styles are damaged.
    with suppress(*DAMAGE_ERRORS):
        if "styles.xml" in names:
            read_xml(entry_blocks(package, "styles.xml"), styles.start, styles.end, styles.text)
    objects, within = {name for name in names if name.endswith("/content.xml")}, list[str]()

    def add_object(address: str) -> None:
        part = posixpath.normpath(f"{address[:MAX_TARGET_CHARS]}/content.xml")
        # Add each embedded object once and limit the nesting depth, because an object in a damaged file could contain
        # itself or a long chain of objects.
        if part in objects and len(within) < MAX_NESTED_OBJECTS:
            objects.discard(part)
            within.append(part)
            with suppress(*DAMAGE_ERRORS):
                add_part(part)
            within.pop()

    def add_part(part: str) -> None:
        writing = OpenDocumentParser(output, styles.lists, add_object)
        read_xml(entry_blocks(package, part), writing.start, writing.end, writing.text)

    _add_margins(styles.margins["header"], "header", output)
    add_part("content.xml")
    _add_margins(styles.margins["footer"], "footer", output)


def _add_margins(texts: Mapping[str, None], margin: str, output: TextCollector) -> None:
    if texts:
        output.add(f"[{margin}]\n" + "\n".join(texts) + "\n\n")
