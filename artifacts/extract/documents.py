"""Choose a document's reader, collect its text, and note where the text was truncated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO

from artifacts.extract.reading import Progress, RefusedError, TextCollector, TextLimitError

Reader = Callable[[BinaryIO, TextCollector, Progress], None]
"""Function that collects a file's text and reports its progress. It raises `RefusedError` if the file has no text."""


def answer(source: BinaryIO, options: Mapping[str, Any]) -> tuple[dict[str, object], bytes]:
    """Return the file's text, with a note if it was truncated.

    Raise `RefusedError` (`no_text`) if the text consists only of page, sheet or slide markers.
    """
    output = TextCollector(int(options["max_chars"]))
    progress = ReadingProgress()
    try:
        _reader(options["reader"], options.get("encoding"))(source, output, progress)
    except TextLimitError:
        return {"note": f"[truncated: {progress}]", "share": progress.share}, output.text().encode("utf-8", "replace")
    if not output.has_words:
        raise RefusedError("no_text")
    return {"note": "", "share": 1.0}, output.text().encode("utf-8", "replace")


def _reader(name: str, encoding: str | None = None) -> Reader:
    module, function = READERS[name]
    reader = getattr(import_module(f"artifacts.extract.{module}"), function)
    whole: Reader = partial(reader, encoding=encoding) if encoding else reader
    return whole


class ReadingProgress:
    """How far a reader has got in a file, in the reader's own unit, such as pages."""

    def __init__(self) -> None:
        self.unit, self.index, self.total = "", 0, 0

    def report(self, unit: str, index: int, total: int) -> None:
        self.unit, self.index, self.total = unit, index, total

    @property
    def share(self) -> float | None:
        """Return the approximate fraction of the file that was read, or None if it is unknown."""
        return (self.index - 1) / self.total if self.unit and 1 < self.index <= self.total else None

    def __str__(self) -> str:
        if not self.unit:
            return "the beginning only"
        return f"{self.unit} 1-{self.index} of {self.total}"


READERS: Mapping[str, tuple[str, str]] = {
    "pdf": ("pdf", "pdf"),
    "docx": ("word", "docx"),
    "pptx": ("slides", "pptx"),
    "odt": ("opendocument", "open_document"),
    "odp": ("opendocument", "open_document"),
    "xlsx": ("sheets", "sheets"),
    "xlsb": ("sheets", "sheets"),
    "xls": ("sheets", "sheets"),
    "ods": ("sheets", "sheets"),
    "ipynb": ("reading", "notebook"),
    "eml": ("mail", "eml"),
    "mht": ("mail", "eml"),
    "msg": ("outlook", "msg"),
    "rtf": ("rtf", "rtf"),
    "zip": ("archives", "zip_listing"),
    "tar": ("archives", "tar_listing"),
    "doc": ("legacy", "doc"),
    "ppt": ("legacy", "ppt"),
    "epub": ("webpage", "epub"),
    "html": ("webpage", "html"),
}
"""Maps readers to their module and function. Only the required module is imported."""
