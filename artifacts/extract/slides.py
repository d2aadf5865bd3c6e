"""Extract text from PowerPoint packages: slides with their charts, diagrams, comments and notes."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from typing import BinaryIO

from artifacts.extract.legacy import open_package
from artifacts.extract.numbering import ListLevel, ListNumbers, parse_level, parse_start
from artifacts.extract.office import Attributes, OfficeParser, add_chart, addresses, ignore, targets
from artifacts.extract.reading import Progress, TextCollector, entry_blocks, read_xml

TITLES = frozenset({"title", "ctrTitle"})
KINDS = {"alphaLc": "a", "alphaUc": "A", "romanLc": "i", "romanUc": "I"}
SHAPES: Mapping[str, str] = {"Period": "%1.", "ParenR": "%1)", "ParenBoth": "(%1)", "Plain": "%1"}
"""Maps endings of a numbering scheme's name (such as `alphaLcParenR`) to list marker patterns."""

MAX_AUTHORS = 10_000


class SlideParser(OfficeParser):
    """Reads a slide. Its title becomes a heading. Indented, numbered and bulleted paragraphs become list items."""

    # Skip fields, because they contain the slide number and the date, which are not part of the text.
    LEFT_OUT = frozenset({"Fallback", "fld"})

    def __init__(self, output: TextCollector, targets: Mapping[str, str]) -> None:
        super().__init__(output, targets)
        self._numbers, self._is_title = ListNumbers(), False
        self._level, self._bullet, self._kind = 0, "", ListLevel()
        self._starts |= {
            "ph": self._start_placeholder,
            "pPr": self._start_paragraph_properties,
            "buChar": lambda _: self._set_bullet("buChar", ListLevel("bullet")),
            "buNone": lambda _: self._set_bullet("buNone", ListLevel("none")),
            "buAutoNum": self._set_numbers,
            "br": lambda _: self._output.add("\n"),
        }
        self._ends |= {"pPr": self._end_paragraph_properties, "sp": self._end_shape}

    def _start_placeholder(self, attributes: Attributes) -> None:
        self._is_title = attributes.get("type", "") in TITLES

    def _end_shape(self) -> None:
        self._is_title = False
        self._numbers = ListNumbers()

    def _start_paragraph(self, attributes: Attributes) -> None:
        super()._start_paragraph(attributes)
        if self._is_title:
            self._mark = "# "

    def _start_paragraph_properties(self, attributes: Attributes) -> None:
        self._level, self._bullet = parse_level(attributes.get("lvl", "0")), ""

    def _set_bullet(self, bullet: str, kind: ListLevel) -> None:
        self._bullet, self._kind = bullet, kind

    def _set_numbers(self, attributes: Attributes) -> None:
        name = attributes.get("type", "")
        kind = next((kind for start, kind in KINDS.items() if name.startswith(start)), "decimal")
        shape = next((shape for end, shape in SHAPES.items() if name.endswith(end)), "%1.")
        shape = shape.replace("1", str(min(self._level, 8) + 1))
        self._set_bullet(name, ListLevel(kind, shape, parse_start(attributes.get("startAt", "1"))))

    def _end_paragraph_properties(self) -> None:
        if self._is_title or self._in_cell:
            return
        if self._bullet:
            self._mark = self._numbers.next_marker(self._bullet, {self._level: self._kind}, self._level)
        elif self._level:
            # The slide layout defines the bullet. Only list items are indented.
            self._mark = f"{'  ' * self._level}- "

    def _start_properties(self, attributes: Attributes) -> None:
        super()._start_properties(attributes)
        self._raised = attributes.get("baseline", "").rstrip("0").isdecimal()
        self._struck = attributes.get("strike", "noStrike") != "noStrike"

    def _end_run(self) -> None:
        super()._end_run()
        self._end_link()


class CommentReader:
    """Reads the comments on a slide. Each line begins with the author, and replies follow their comment."""

    def __init__(self, output: TextCollector, authors: Mapping[str, str]) -> None:
        self._output, self._authors = output, authors
        self._open, self._replies = list[list[str]](), list[str]()
        self._in_text = False

    def start(self, name: str, attributes: Attributes) -> None:
        self._in_text = name in ("t", "text")
        if name in ("cm", "reply"):
            author = self._authors.get(attributes.get("authorId", ""), "")
            self._open.append([f"{author}: "] if author else [])

    def end(self, name: str) -> None:
        self._in_text = False
        if name == "p" and self._open:
            self._open[-1].append(" ")
        elif name in ("cm", "reply") and self._open:
            line = "".join(self._open.pop()).rstrip() + "\n"
            if name == "reply":
                self._replies.append(f"  {line}")
                return
            self._output.add(line + "".join(self._replies))
            self._replies.clear()

    def text(self, text: str) -> None:
        if self._in_text and self._open:
            self._open[-1].append(text)


PRESENTATION = "ppt/presentation.xml"


def pptx(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write the slides to `output`, each followed by its charts, diagrams, comments and notes."""
    package = open_package(source)
    slides, authors = _slides(package), _authors(package)
    for number, name in enumerate(slides, 1):
        progress.report("slides", number, len(slides))
        output.add_marker(f"[slide {number}]\n")
        _add_xml(package, name, output)
        for chart in dict.fromkeys(targets(package, name, "chart").values()):
            output.add_marker(f"[chart on slide {number}]\n")
            add_chart(package, chart, output)
        for diagram in dict.fromkeys(targets(package, name, "diagramData").values()):
            _add_xml(package, diagram, output)
        for comments in targets(package, name, "comments").values():
            output.add_marker(f"[comments on slide {number}]\n")
            reader = CommentReader(output, authors)
            read_xml(entry_blocks(package, comments), reader.start, reader.end, reader.text)
        for notes in targets(package, name, "notesSlide").values():
            output.add_marker(f"[notes of slide {number}]\n")
            _add_xml(package, notes, output)
        output.add("\n")


def _slides(package: zipfile.ZipFile) -> list[str]:
    names = (name for name in package.namelist() if re.fullmatch(r"ppt/slides/slide\d{1,6}\.xml", name))
    numbered = sorted(names, key=lambda name: int(re.sub(r"\D", "", name)))
    parts, order = targets(package, PRESENTATION, "slide"), list[str]()

    def collect_id(name: str, attributes: Mapping[str, str]) -> None:
        if name == "sldId":
            order.append(next((value for key, value in attributes.items() if key.endswith(":id")), ""))

    if parts:
        read_xml(entry_blocks(package, PRESENTATION), collect_id, ignore, ignore)
    # A damaged presentation may not list all slides. In this case, sort the slides by the numbers in their names.
    ordered = [parts[key] for key in order if key in parts]
    return ordered if sorted(ordered) == sorted(numbered) else numbered


def _authors(package: zipfile.ZipFile) -> dict[str, str]:
    authors = dict[str, str]()

    def collect(name: str, attributes: Attributes) -> None:
        if name in ("cmAuthor", "author") and len(authors) < MAX_AUTHORS:
            authors[attributes.get("id", "")] = " ".join(attributes.get("name", "").split())

    for kind in ("commentAuthors", "authors"):
        for part in targets(package, PRESENTATION, kind).values():
            read_xml(entry_blocks(package, part), collect, ignore, ignore)
    return authors


def _add_xml(package: zipfile.ZipFile, name: str, output: TextCollector) -> None:
    writing = SlideParser(output, addresses(package, name))
    read_xml(entry_blocks(package, name), writing.start, writing.end, writing.text)
