"""Read the text and relations of parts in Word and PowerPoint packages with the standard library."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from artifacts.extract.reading import TextCollector, entry_blocks, read_xml

MAX_TARGET_CHARS = 2_000
MAX_CATEGORY_LEVELS = 10
LINK = re.compile(r'\s*HYPERLINK\s+(?:"([^"\s]+)"|([^"\\\s]+))', re.IGNORECASE)

Attributes = Mapping[str, str]


class OfficeParser:
    """Reads text from Word and PowerPoint XML: `t` has text, paragraphs end lines, tabs separate cells.

    `targets` maps relation ids to link addresses. `add_part` reads another part, such as a chart, given its relation
    id. Elements in `LEFT_OUT` are skipped, for example `Fallback`, which repeats a drawing's text for older programs.
    """

    LEFT_OUT = frozenset({"Fallback"})
    FORMULAS: Mapping[str, str] = {"num": "(", "den": "/(", "sup": "^(", "sub": "_(", "rad": "√("}

    def __init__(
        self, output: TextCollector, targets: Mapping[str, str], add_part: Callable[[str], None] | None = None
    ) -> None:
        self._output, self._targets, self._add_part = output, targets, add_part
        self._in_text = self._in_properties = self._raised = self._was_raised = self._struck = self._was_struck = False
        self._in_cell = self._left_out = 0
        self._mark = ""  # Marker to write before the first text of the paragraph, such as a list number.
        self._link, self._link_is_open = "", False
        self._picture = self._picture_target = ""
        self._description: str | None = None
        self._delimiters, self._operator = list[list[str]](), ""
        self._starts: dict[str, Callable[[Attributes], None]] = {
            "p": self._start_paragraph,
            "r": self._start_run,
            "rPr": self._start_properties,
            "tc": self._start_cell,
            "hlinkClick": self._start_click,
            "docPr": self._start_picture,
            "cNvPr": self._start_picture,
            "chart": self._start_part,
            "d": self._start_delimiters,
            "begChr": lambda attributes: self._set_delimiter(0, attributes),
            "endChr": lambda attributes: self._set_delimiter(1, attributes),
            "e": self._start_element,
            "chr": self._set_operator,
            "naryPr": lambda _: self._set_operator({"val": "∫"}),
            **{name: partial(self._add_mark, mark) for name, mark in self.FORMULAS.items()},
        }
        self._ends: dict[str, Callable[[], None]] = {
            "p": self._end_paragraph,
            "r": self._end_run,
            "rPr": self._end_properties,
            "tc": self._end_cell,
            "tr": lambda: self._output.add("\n"),
            "docPr": lambda: self._end_picture(" "),
            "cNvPr": lambda: self._end_picture("\n"),
            "d": self._end_delimiters,
            "naryPr": lambda: self._add_mark(self._operator),
            **dict.fromkeys(self.FORMULAS, lambda: self._output.add_marker(")")),
        }

    def start(self, name: str, attributes: Attributes) -> None:
        if name in self.LEFT_OUT:
            self._left_out += 1
        self._in_text = name == "t" and not self._left_out
        if not self._left_out and (handler := self._starts.get(name)):
            handler(attributes)

    def end(self, name: str) -> None:
        self._in_text = False
        if name in self.LEFT_OUT:
            self._left_out -= 1
        elif not self._left_out and (handler := self._ends.get(name)):
            handler()

    def text(self, text: str) -> None:
        if self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        self._begin()
        if self._struck != self._was_struck:
            self._output.add_marker("~~")
        if self._raised and not self._was_raised:
            self._output.add_marker("^")
        self._was_raised, self._was_struck = self._raised, self._struck
        self._output.add(text)

    def _begin(self) -> None:
        if self._mark:
            self._output.add_marker(self._mark)
            self._mark = ""
        if self._link and not self._link_is_open:
            self._output.add_marker("[")
            self._link_is_open = True

    def _add_mark(self, mark: str, _: Attributes = MappingProxyType({})) -> None:
        self._begin()
        self._output.add_marker(mark)

    def _start_paragraph(self, _: Attributes) -> None:
        self._mark, self._was_raised = "", False

    def _end_paragraph(self) -> None:
        if self._was_struck:
            self._output.add_marker("~~")
        self._was_struck = False
        self._output.add(" " if self._in_cell else "\n")

    def _start_run(self, _: Attributes) -> None:
        self._raised = self._struck = False

    def _end_run(self) -> None:
        self._raised = self._struck = False

    def _start_properties(self, _: Attributes) -> None:
        self._in_properties = True

    def _end_properties(self) -> None:
        self._in_properties = False

    def _start_cell(self, _: Attributes) -> None:
        self._in_cell += 1

    def _end_cell(self) -> None:
        self._in_cell -= 1
        self._output.add("\t")

    def _start_link(self, target: str) -> None:
        if not self._link:
            self._link, self._link_is_open = target, False

    def _end_link(self) -> None:
        if self._link_is_open:
            self._output.add_marker(f"]({self._link})")
        self._link, self._link_is_open = "", False

    def _start_click(self, attributes: Attributes) -> None:
        # The link belongs to a text run, or else to a picture or another shape.
        target = self._targets.get(attribute(attributes, "id"), "")
        if self._in_properties:
            self._start_link(target)
        else:
            self._picture_target = target

    def _start_picture(self, attributes: Attributes) -> None:
        self._picture, self._picture_target = " ".join(attributes.get("descr", "").split()), ""

    def _end_picture(self, after: str) -> None:
        text = f"[image: {self._picture}]" if self._picture else "[link]" if self._picture_target else ""
        text += f"({self._picture_target})" if self._picture_target else ""
        # Word repeats the description of a drawing in the picture inside it.
        if text and not (after == "\n" and self._picture == self._description):
            self._add(text + after)
        self._description = self._picture if after == " " else None

    def _start_part(self, attributes: Attributes) -> None:
        if self._add_part and (relation := attribute(attributes, "id")):
            self._add_part(relation)

    def _start_delimiters(self, _: Attributes) -> None:
        self._delimiters.append(["(", ")"])

    def _set_delimiter(self, place: int, attributes: Attributes) -> None:
        if self._delimiters:
            self._delimiters[-1][place] = attribute(attributes, "val")[:1]

    def _start_element(self, _: Attributes) -> None:
        if self._delimiters and len(self._delimiters[-1]) == 2:
            self._add_mark(self._delimiters[-1][0])
            self._delimiters[-1].append("")

    def _end_delimiters(self) -> None:
        if self._delimiters:
            self._output.add_marker(self._delimiters.pop()[1])

    def _set_operator(self, attributes: Attributes) -> None:
        self._operator = attribute(attributes, "val")[:1]


def attribute(attributes: Attributes, name: str) -> str:
    """Return the value of the attribute with this local name and any prefix, or ""."""
    return next((value for key, value in attributes.items() if key.rpartition(":")[2] == name), "")


def parse_link(instruction: str) -> str:
    """Return the address in a field code such as `HYPERLINK "…"`, or "" if there is none."""
    found = LINK.match(instruction[:MAX_TARGET_CHARS])
    return (found[1] or found[2]) if found else ""


def ignore(_: str) -> None: ...


def _relations(package: zipfile.ZipFile, part: str) -> list[Mapping[str, str]]:
    folder, _, name = part.rpartition("/")
    relations, found = f"{folder}/_rels/{name}.rels", list[Mapping[str, str]]()
    if relations in package.NameToInfo:
        read_xml(entry_blocks(package, relations), lambda _, attributes: found.append(attributes), ignore, ignore)
    return found


def addresses(package: zipfile.ZipFile, part: str) -> dict[str, str]:
    """Return the link addresses in a part, by relation id."""
    links = (relation for relation in _relations(package, part) if relation.get("TargetMode") == "External")
    return {
        link.get("Id", ""): link.get("Target", "")[:MAX_TARGET_CHARS]
        for link in links
        if link.get("Type", "").endswith("/hyperlink")
    }


def targets(package: zipfile.ZipFile, part: str, kind: str) -> dict[str, str]:
    """Return the names of related parts of one kind, by relation id."""
    folder, found = part.rpartition("/")[0], dict[str, str]()
    for relation in _relations(package, part):
        if relation.get("Type", "").endswith(f"/{kind}"):
            target = relation.get("Target", "")
            entry = target[1:] if target.startswith("/") else posixpath.normpath(f"{folder}/{target}")
            if entry in package.NameToInfo:
                found[relation.get("Id", "")] = entry
    return found


class ChartReader:
    """Reads a chart. Writes its title, and one line for each value, with the value's series and category."""

    def __init__(self, output: TextCollector) -> None:
        self._output, self._text, self._part, self._index = output, "", "", 0
        self._series: dict[str, list[dict[int, str]]] = {}

    def start(self, name: str, attributes: Attributes) -> None:
        self._text = ""
        if name == "ser":
            self._series = {}
        elif name in CHART_PARTS:
            self._part = CHART_PARTS[name]
            self._series.setdefault(self._part, [{}])
        elif name == "lvl" and len(levels := self._series.get(self._part, [])) < MAX_CATEGORY_LEVELS:
            levels.append({})
        elif name == "pt":
            index = attributes.get("idx", "")
            self._index = int(index) if index.isascii() and index.isdecimal() and len(index) < 8 else 0

    def end(self, name: str) -> None:
        if name == "t":
            self._output.add(f"{self._text}\n")
        elif name == "v" and (levels := self._series.get(self._part)):
            levels[-1][self._index] = self._text
        elif name == "ser":
            title = " ".join(self._values("series").values())
            # The levels of nested categories begin with the innermost. A group's name is at the index of its first
            # category.
            inner, *groups = [level for level in self._series.get("category", []) if level] or [{}]
            names = [""] * len(groups)
            for index, value in sorted(self._values("value").items()):
                names = [group.get(index, name) for group, name in zip(groups, names, strict=True)]
                category = " ".join(filter(None, (*reversed(names), inner.get(index, ""))))
                self._output.add("\t".join(filter(None, (title, category, value))) + "\n")

    def text(self, text: str) -> None:
        self._text += text[: MAX_TARGET_CHARS - len(self._text)] if len(self._text) < MAX_TARGET_CHARS else ""

    def _values(self, part: str) -> dict[int, str]:
        return self._series.get(part, [{}])[0]


CHART_PARTS = {"tx": "series", "cat": "category", "xVal": "category", "val": "value", "yVal": "value"}


def add_chart(package: zipfile.ZipFile, name: str, output: TextCollector) -> None:
    chart = ChartReader(output)
    read_xml(entry_blocks(package, name), chart.start, chart.end, chart.text)
