"""Collect text up to a limit, and read XML and zip entries from untrusted files."""

from __future__ import annotations

import json
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Protocol
from xml.parsers import expat

BUDGET_SECONDS = 15.0
"""Seconds after which a reader stops and returns what it has read so far. A process that runs longer is killed."""

MAX_ENTRY_BYTES = 64 * 1024 * 1024
MAX_ENTRIES = 5_000
READ_BYTES = 64 * 1024

DAMAGE_ERRORS = (expat.ExpatError, zipfile.BadZipFile, zlib.error, EOFError)
"""Exceptions that may be raised by reading a damaged part of a package."""


class RefusedError(Exception):
    """No content can be extracted. The message is the reason, such as `encrypted` or `unsupported`."""


class TextLimitError(Exception):
    """The limit on characters or seconds was reached. The text collected so far is valid."""


class Progress(Protocol):
    """Interface that receives progress reports from a reader."""

    def report(self, unit: str, index: int, total: int) -> None:
        """Report that part `index` of `total` is being read."""


class TextCollector:
    """Collects at most `max_chars` characters of text for at most `BUDGET_SECONDS` seconds."""

    def __init__(self, max_chars: int) -> None:
        self._parts: list[str] = []
        self._remaining = max_chars
        self._until = time.monotonic() + BUDGET_SECONDS
        self.full = self.has_words = False

    def add(self, text: str) -> None:
        """Append text. Raise `TextLimitError` if a limit is exceeded."""
        self.has_words = self.has_words or bool(text.strip())
        self.add_marker(text)

    def add_marker(self, text: str) -> None:
        """Append a marker such as `[slide 2]`, which does not count as text.

        Raise `TextLimitError` if a limit is exceeded.
        """
        self._parts.append(text[: self._remaining])
        self._remaining -= len(text)
        if self._remaining < 0 or time.monotonic() > self._until:
            self.full = True
            raise TextLimitError

    def text(self) -> str:
        """Return the text with trailing spaces and repeated empty lines removed."""
        lines = [line.rstrip().replace(" \t", "\t") for line in "".join(self._parts).split("\n")]
        lines_to_keep = [line for index, line in enumerate(lines) if line or (index and lines[index - 1])]
        return "\n".join(lines_to_keep).strip("\n")


Start = Callable[[str, Mapping[str, str]], None]
End = Callable[[str], None]


def read_xml(blocks: Iterator[bytes], start: Start, end: End, on_text: Callable[[str], None]) -> None:
    """Parse XML and call the handlers with names that have no namespace prefix.

    Raise `RefusedError` if the XML declares entities.
    """
    for _ in parsed_blocks(blocks, start, end, on_text):
        pass


def parsed_blocks(blocks: Iterator[bytes], start: Start, end: End, on_text: Callable[[str], None]) -> Iterator[None]:
    """Parse XML like `read_xml`, but yield after each block, so that the caller can stop early."""
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise RefusedError("failed")

    # Nested entities could expand to an unlimited size.
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda name, attributes: start(name.rpartition(":")[2], attributes)
    parser.EndElementHandler = lambda name: end(name.rpartition(":")[2])
    parser.CharacterDataHandler = on_text
    for block in blocks:
        parser.Parse(block, False)
        yield
    parser.Parse(b"", True)


def open_zip(source: BinaryIO) -> zipfile.ZipFile:
    """Open a zip file.

    Raise `RefusedError`: `too_large` if it has too many entries, or `encrypted` if any entry is encrypted.
    """
    package = zipfile.ZipFile(source)
    if len(package.infolist()) > MAX_ENTRIES:
        raise RefusedError("too_large")
    if any(entry.flag_bits & 1 for entry in package.infolist()):
        raise RefusedError("encrypted")
    return package


def entry_blocks(package: zipfile.ZipFile, name: str, max_bytes: int = MAX_ENTRY_BYTES) -> Iterator[bytes]:
    """Yield the bytes of a zip entry. Raise `RefusedError` after `max_bytes`, whatever size the entry declares."""
    size = 0
    with package.open(name) as entry:
        while block := entry.read(READ_BYTES):
            size += len(block)
            if size > max_bytes:
                raise RefusedError("too_large")
            yield block


# The code below reads Jupyter notebooks: each cell under a heading, with its code and text output but without images.

MAX_BYTES = 64 * 1024 * 1024
MAX_OUTPUT_CHARS = 20_000
"""Maximum length of a cell's output in characters, because a progress bar can print for hours."""
OUTPUT_END_CHARS = 4_000

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def notebook(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write the cells of a notebook (format version 3 or 4) to `output`. Raise `RefusedError` for other files."""
    data = source.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise RefusedError("too_large")
    cells = _cells(json.loads(data))
    for number, cell in enumerate(cells, 1):
        progress.report("cells", number, len(cells))
        output.add_marker(f"[{cell.get('cell_type', 'cell')} {number}]\n")
        output.add(f"{_join_lines(cell.get('source', cell.get('input')))}\n")
        printed = "\n".join(filter(None, map(_output_text, _objects_in(cell.get("outputs")))))
        if printed:
            output.add(f"[output {number}]\n{_beginning_and_end(printed)}\n")
        output.add("\n")


def _cells(book: Any) -> list[dict[str, Any]]:
    if not isinstance(book, dict) or not ({"nbformat", "cells", "worksheets"} & set(book)):
        raise RefusedError("unsupported")
    sheets = [book, *_objects_in(book.get("worksheets"))]
    return [cell for sheet in sheets for cell in _objects_in(sheet.get("cells"))]


def _output_text(output: dict[str, Any]) -> str:
    # An output is printed text, a value in text form, or an error with its traceback.
    data, lines = output.get("data"), output.get("traceback")
    if output.get("ename"):
        summary = f"{output['ename']}: {output.get('evalue', '')}"
        traceback = _COLOURS.sub("", "\n".join(map(str, lines)) if isinstance(lines, list) else "").strip("\n")
        return traceback if summary in traceback else "\n".join(filter(None, (traceback, summary)))
    found = data if isinstance(data, dict) else output
    texts = (_join_lines(found.get(name)) for name in ("text/plain", "text/markdown", "text/latex"))
    return _COLOURS.sub("", _join_lines(output.get("text")) or next(filter(None, texts), ""))


def _beginning_and_end(printed: str) -> str:
    # Keep the end of a long output, because errors are printed last.
    if len(printed) <= MAX_OUTPUT_CHARS:
        return printed
    return f"{printed[: MAX_OUTPUT_CHARS - OUTPUT_END_CHARS]}\n…\n{printed[-OUTPUT_END_CHARS:]}"


def _join_lines(lines: Any) -> str:
    return "".join(map(str, lines)) if isinstance(lines, list) else lines if isinstance(lines, str) else ""


def _objects_in(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
