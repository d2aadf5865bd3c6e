"""Extract the visible text of web pages and EPUB books."""

from __future__ import annotations

import zipfile
from html.parser import HTMLParser
from typing import BinaryIO

from artifacts.core.detection.encodings import decode_blocks, find_text
from artifacts.extract.words import STEP, Progress, TextCollector, entry_blocks, open_zip

HIDDEN = frozenset({"script", "style", "template", "noscript", "svg"})
BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "form", "h1"}
    | {"h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "title"}
    | {"tr", "ul"}
)


class VisibleTextParser(HTMLParser):
    """Collects the text that a browser would show."""

    def __init__(self, output: TextCollector) -> None:
        super().__init__(convert_charrefs=True)
        self._words, self._hidden, self._line = output, "", True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HIDDEN and not self._hidden:
            self._hidden = tag
        if tag in BLOCKS:
            self._break()
        elif tag in ("td", "th") and not self._line:
            self._words.add("\t")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden:
            self._hidden = ""
        if tag in BLOCKS:
            self._break()

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if self._hidden or not text:
            return
        leading_space = " " if data[:1].isspace() and not self._line else ""
        self._words.add(leading_space + text + (" " if data[-1:].isspace() else ""))
        self._line = False

    def _break(self) -> None:
        if not self._line:
            self._words.add("\n")
            self._line = True


def html(source: BinaryIO, output: TextCollector, progress: Progress, encoding: str | None = None) -> None:
    """Add a page, decoded with the given encoding or else the detected one."""
    if encoding is None:
        head = source.read(STEP)
        detected = find_text(head, whole=len(head) < STEP)
        encoding = detected.encoding if detected else None
        source.seek(0)
    page = VisibleTextParser(output)
    for text in decode_blocks(iter(lambda: source.read(STEP), b""), encoding):
        page.feed(text)
    page.close()


def epub(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add each chapter in the order of the package."""
    package: zipfile.ZipFile = open_zip(source)
    chapters = [name for name in package.namelist() if name.lower().endswith((".xhtml", ".html", ".htm"))]
    for number, name in enumerate(chapters, 1):
        progress.mark("chapters", number, len(chapters))
        output.mark(f"[chapter {number}]\n")
        page = VisibleTextParser(output)
        for text in decode_blocks(entry_blocks(package, name), "utf-8"):
            page.feed(text)
        page.close()
        output.add("\n\n")
