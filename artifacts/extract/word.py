"""Extract text from Word packages: headings, lists with their numbers, links, formulas, notes and comments."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO

from artifacts.extract.legacy import open_package
from artifacts.extract.numbering import ListNumbers, parse_level, parse_start
from artifacts.extract.office import (
    MAX_TARGET_CHARS,
    Attributes,
    OfficeParser,
    add_chart,
    addresses,
    attribute,
    ignore,
    parse_link,
    targets,
)
from artifacts.extract.reading import DAMAGE_ERRORS, Progress, TextCollector, TextLimitError, entry_blocks, read_xml
from artifacts.extract.word_styles import OFF, ListReader, Style, StyleReader, WordStyles, heading_level

MAX_SPAN = 100
MARGINS = ("header", "footer")
MARGIN_CHARS = 10_000
MARKS: Mapping[str, str] = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
NOTES: Mapping[str, str] = {"footnote": "[^{}]", "endnote": "[^e{}]", "comment": "[comment {}]"}
PARTS = ("document", "footnotes", "endnotes", "comments")
GREEK = {
    f"{ord(latin):02x}": greek
    for latin, greek in zip(
        "abcdefghiklmnopqrstuwxyzABCDEFGHIKLMNOPQRSTUWXYZ",
        "αβχδεφγηικλμνοπθρστυωξψζΑΒΧΔΕΦΓΗΙΚΛΜΝΟΠΘΡΣΤΥΩΞΨΖ",
        strict=True,
    )
}
SYMBOLS: Mapping[str, Mapping[str, str]] = {
    "symbol": GREEK
    | {"a3": "≤", "a5": "∞", "ae": "→", "b0": "°", "b1": "±", "b3": "≥", "b4": "×", "b6": "∂", "b7": "•", "b8": "÷"}
    | {"b9": "≠", "ba": "≡", "bb": "≈", "ce": "∈", "d1": "∇", "d6": "√", "de": "⇒", "e5": "∑", "f2": "∫"},
    "wingdings": {"4a": "☺", "4c": "☹", "6f": "☐", "71": "☐", "72": "☐", "a8": "☐", "fe": "☑", "52": "☑", "fd": "☒"}
    | {"78": "☒", "fc": "✓", "fb": "✗", "df": "←", "e0": "→", "e8": "→", "f0": "⇨", "a7": "▪", "6c": "●", "6e": "■"},
    "wingdings 2": {"50": "✓", "4f": "✗", "52": "☑", "53": "☒", "a3": "☐", "51": "☒", "54": "☒"},
}
"""For each symbol font, maps the last two hex digits of a character code to the character that is displayed."""


class WordParser(OfficeParser):
    """Reads text from a part of a Word package. List items get their numbers, and link fields become links."""

    # Elements to skip: deleted and moved text, formatting before a change, and content repeated for older programs.
    LEFT_OUT = frozenset({"Fallback", "del", "moveFrom", "pPrChange", "rPrChange"})

    def __init__(
        self,
        output: TextCollector,
        targets: Mapping[str, str],
        looks: WordStyles,
        add_part: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(output, targets, add_part)
        self._looks, self._numbers, self._started_lists = looks, ListNumbers(), set[str]()
        self._style, self._in_run, self._is_hidden, self._span = Style(), False, False, 1
        # The instruction of each open field, or None once the field's result has begun.
        self._fields = list[str | None]()
        # The number of open fields whose result has not begun yet.
        self._instructions = 0
        self._linking_fields, self._in_instruction, self._is_ticked = list[bool](), False, False
        self._starts |= {
            "pStyle": self._set_style,
            "outlineLvl": self._set_outline,
            "ilvl": self._set_level,
            "numId": self._set_list,
            "vertAlign": self._set_raised,
            "vanish": self._set_hidden,
            "strike": self._set_struck,
            "dstrike": self._set_struck,
            "sym": self._add_symbol,
            "gridSpan": self._set_span,
            "hyperlink": self._start_hyperlink,
            "instrText": self._start_instruction,
            "fldChar": self._start_field_part,
            "fldSimple": self._start_simple_field,
            "checkBox": lambda _: self._tick({"val": "0"}),
            "checked": self._tick,
            "default": self._tick,
            "shape": self._start_shape,
            "relIds": self._start_diagram,
            **{f"{name}Reference": self._refer(mark) for name, mark in NOTES.items()},
            **{name: self._start_note(mark) for name, mark in NOTES.items()},
            **{name: self._write_mark(mark) for name, mark in MARKS.items()},
        }
        self._ends |= {
            "pPr": self._end_paragraph_properties,
            "hyperlink": self._end_link,
            "instrText": self._end_instruction,
            "fldSimple": self._end_field,
            "checkBox": lambda: self._add("[x]" if self._is_ticked else "[ ]"),
        }

    def text(self, text: str) -> None:
        if self._in_instruction and self._fields and (so_far := self._fields[-1]) is not None:
            self._fields[-1] = so_far + text[: MAX_TARGET_CHARS - len(so_far)]
        elif self._in_text and not self._is_hidden and self._instructions <= 0:
            self._add(text)

    def _start_paragraph(self, attributes: Attributes) -> None:
        super()._start_paragraph(attributes)
        self._style = Style()

    def _end_paragraph(self) -> None:
        super()._end_paragraph()
        # A field without an end must not hide the remaining text.
        while self._instructions > 0 and self._fields.pop() is not None:
            self._instructions -= 1

    def _set_style(self, attributes: Attributes) -> None:
        self._style = replace(self._style, parent=attribute(attributes, "val"))

    def _set_outline(self, attributes: Attributes) -> None:
        self._style = replace(self._style, heading=heading_level(attribute(attributes, "val")))

    def _set_level(self, attributes: Attributes) -> None:
        self._style = replace(self._style, level=parse_level(attribute(attributes, "val")))

    def _set_list(self, attributes: Attributes) -> None:
        self._style = replace(self._style, list=attribute(attributes, "val"))

    def _end_paragraph_properties(self) -> None:
        style = self._style.with_defaults(self._looks.styles.get(self._style.parent, Style()))
        mark = self._item_mark(style.list or "", style.level or 0)
        if style.heading and not self._in_cell:
            number = mark.strip()
            mark = "#" * style.heading + (f" {number} " if number not in ("", "-") else " ")
        self._mark = mark

    def _item_mark(self, number: str, level: int) -> str:
        found = self._looks.lists.get(number)
        if found is None:
            return ""
        if number not in self._started_lists:
            self._started_lists.add(number)
            for restarted, start in found.restarts.items():
                self._numbers.restart(found.counter, restarted, start)
        return self._numbers.next_marker(found.counter, found.levels, level)

    def _start_run(self, attributes: Attributes) -> None:
        super()._start_run(attributes)
        self._in_run, self._is_hidden = True, False

    def _end_run(self) -> None:
        super()._end_run()
        self._in_run = self._is_hidden = False

    def _set_raised(self, attributes: Attributes) -> None:
        self._raised = self._in_run and attribute(attributes, "val") == "superscript"

    def _set_struck(self, attributes: Attributes) -> None:
        self._struck = self._in_run and attribute(attributes, "val") not in OFF

    def _add_symbol(self, attributes: Attributes) -> None:
        # The code of a symbol font character is often in the private use area from U+F000.
        signs = SYMBOLS.get(attribute(attributes, "font").lower(), {})
        code = attribute(attributes, "char")[-2:].lower()
        if code in signs and not self._is_hidden:
            self._add(signs[code])

    def _set_hidden(self, attributes: Attributes) -> None:
        self._is_hidden = self._in_run and attribute(attributes, "val") not in OFF

    def _set_span(self, attributes: Attributes) -> None:
        self._span = min(parse_start(attribute(attributes, "val")), MAX_SPAN)

    def _end_cell(self) -> None:
        super()._end_cell()
        self._output.add_marker("\t" * (self._span - 1))
        self._span = 1

    def _write_mark(self, mark: str) -> Callable[[Attributes], None]:
        def write(_: Attributes) -> None:
            # Inside a text run, the element `tab` is a tab character. Elsewhere, it defines a tab stop.
            if self._in_run and not self._is_hidden:
                self._output.add(mark)

        return write

    def _refer(self, mark: str) -> Callable[[Attributes], None]:
        return lambda attributes: self._add_mark(mark.format(attribute(attributes, "id")))

    def _start_note(self, mark: str) -> Callable[[Attributes], None]:
        def start(attributes: Attributes) -> None:
            # The separator lines between text and notes are stored as notes with a type.
            if not attribute(attributes, "type"):
                author = attribute(attributes, "author")
                self._output.add_marker(f"{mark.format(attribute(attributes, 'id'))} {f'{author}: ' if author else ''}")

        return start

    def _start_hyperlink(self, attributes: Attributes) -> None:
        self._start_link(self._targets.get(attribute(attributes, "id"), ""))

    def _start_instruction(self, _: Attributes) -> None:
        self._in_instruction = True

    def _end_instruction(self) -> None:
        self._in_instruction = False

    def _start_field_part(self, attributes: Attributes) -> None:
        part = attribute(attributes, "fldCharType")
        if part == "begin":
            self._fields.append("")
            self._instructions += 1
        elif part == "separate" and self._fields and (instruction := self._fields[-1]) is not None:
            self._fields.pop()
            self._instructions -= 1
            self._begin_result(instruction)
        elif part == "end":
            self._end_field()

    def _start_simple_field(self, attributes: Attributes) -> None:
        self._begin_result(attribute(attributes, "instr"))

    def _begin_result(self, instruction: str) -> None:
        target = parse_link(instruction)
        self._fields.append(None)
        self._linking_fields.append(bool(target) and not self._link)
        if target:
            self._start_link(target)

    def _end_field(self) -> None:
        # A field that ends without a result has only an instruction.
        if self._fields and self._fields.pop() is not None:
            self._instructions -= 1
        elif self._linking_fields and self._linking_fields.pop():
            self._end_link()

    def _tick(self, attributes: Attributes) -> None:
        self._is_ticked = attribute(attributes, "val") not in OFF

    def _start_shape(self, attributes: Attributes) -> None:
        # Older versions of Word store pictures as shapes.
        if alternative := " ".join(attributes.get("alt", "").split()):
            self._add(f"[image: {alternative}] ")

    def _start_diagram(self, attributes: Attributes) -> None:
        if self._add_part:
            self._add_part(attribute(attributes, "dm"))


def docx(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write a Word document to `output`: page headers, text with headings, notes, comments, and page footers."""
    package = open_package(source)
    names = set(package.namelist())
    styles, lists = StyleReader(), ListReader()
    for name, reader in (("word/styles.xml", styles), ("word/numbering.xml", lists)):
        with suppress(*DAMAGE_ERRORS):  # The text is useful even without styles or list numbers.
            if name in names:
                read_xml(entry_blocks(package, name), reader.start, ignore, ignore)
    looks = WordStyles(styles.styles(), lists.lists())
    margins = {kind: sorted(name for name in names if re.fullmatch(rf"word/{kind}\d*\.xml", name)) for kind in MARGINS}
    _add_margins(package, margins["header"], "header", output)
    for part in PARTS:
        if (name := f"word/{part}.xml") in names:
            output.add_marker("" if part == "document" else f"\n[{part}]\n")
            _add_xml(package, name, output, looks)
    _add_margins(package, margins["footer"], "footer", output)


def _add_margins(package: zipfile.ZipFile, names: list[str], mark: str, output: TextCollector) -> None:
    # First and even pages often repeat a header, so add each distinct header once.
    margins: dict[str, None] = {}
    for name in names:
        margin = TextCollector(MARGIN_CHARS)
        with suppress(TextLimitError):
            _add_xml(package, name, margin, WordStyles())
        if margin.text().strip():
            margins[margin.text().strip()] = None
    if margins:
        output.add(f"[{mark}]\n" + "\n".join(margins) + "\n\n")


def _add_xml(package: zipfile.ZipFile, name: str, output: TextCollector, looks: WordStyles) -> None:
    charts, diagrams = targets(package, name, "chart"), targets(package, name, "diagramData")

    def add_part(relation: str) -> None:
        # Add each part once, because a damaged file could contain circular references.
        if chart := charts.pop(relation, ""):
            output.add_marker("[chart]\n")
            add_chart(package, chart, output)
        elif diagram := diagrams.pop(relation, ""):
            drawn = OfficeParser(output, {})
            read_xml(entry_blocks(package, diagram), drawn.start, drawn.end, drawn.text)

    writing = WordParser(output, addresses(package, name), looks, add_part)
    read_xml(entry_blocks(package, name), writing.start, writing.end, writing.text)
