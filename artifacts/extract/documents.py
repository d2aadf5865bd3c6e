"""Text of documents: which reader takes which, and how its parts are marked and its end is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from artifacts.extract import office, webpage
from artifacts.extract.words import EnoughError, RefusedError, TextCollector


def answer(source: BinaryIO, options: Mapping[str, Any]) -> tuple[dict[str, object], bytes]:
    """The text of the file, and a note when there was more."""
    words = TextCollector(int(options["max_chars"]))
    progress = ReadingProgress()
    try:
        READERS[options["reader"]](source, words, progress)
    except EnoughError:
        return {"note": f"[truncated: {progress}]"}, words.text().encode("utf-8", "replace")
    return {"note": ""}, words.text().encode("utf-8", "replace")


class ReadingProgress:
    """How far a reader got, in its own unit."""

    def __init__(self) -> None:
        self.unit, self.index, self.total = "", 0, 0

    def mark(self, unit: str, index: int, total: int) -> None:
        """The reader is inside part `index` of `total`."""
        self.unit, self.index, self.total = unit, index, total

    def __str__(self) -> str:
        if not self.unit:
            return "the beginning only"
        return f"{self.unit} 1-{self.index} of {self.total}"


def pdf(source: BinaryIO, words: TextCollector, progress: ReadingProgress) -> None:
    """Each page under its mark; a page that cannot be read says so.

    Raises `RefusedError` `encrypted` when it wants a password, `no_text` when no page has a letter.
    """
    from pypdf import PdfReader

    reader = PdfReader(source)
    if reader.is_encrypted and not reader.decrypt(""):
        raise RefusedError("encrypted")
    total, found = len(reader.pages), False
    for number in range(total):
        progress.mark("pages", number + 1, total)
        try:
            text = reader.pages[number].extract_text()
        except Exception:  # one bad page must not cost the others
            text = "[this page could not be read]"
        found = found or bool(text.strip())
        words.add(f"[page {number + 1}]\n{text}\n\n")
    if not found:
        raise RefusedError("no_text")


READERS: dict[str, Callable[[BinaryIO, TextCollector, ReadingProgress], None]] = {
    "pdf": pdf,
    "docx": office.docx,
    "xlsx": office.xlsx,
    "pptx": office.pptx,
    "odt": office.open_document,
    "ods": office.open_document,
    "odp": office.open_document,
    "epub": webpage.epub,
    "html": webpage.html,
}
