"""Text of Jupyter notebooks: each cell under its mark, code and what it printed, no pictures. Only in the child."""

from __future__ import annotations

import json
import re
from typing import Any, BinaryIO

from artifacts.extract.words import Progress, RefusedError, TextCollector

MAX_BYTES = 64 * 1024 * 1024
MAX_OUTPUT_CHARS = 20_000
"""Of one cell's output; a progress bar can print for hours."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def notebook(source: BinaryIO, words: TextCollector, progress: Progress) -> None:
    """The cells of a notebook of version 3 or 4. Raises `RefusedError` for what is none."""
    data = source.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise RefusedError("too_large")
    cells = _cells(json.loads(data))
    for number, cell in enumerate(cells, 1):
        progress.mark("cells", number, len(cells))
        words.mark(f"[{cell.get('cell_type', 'cell')} {number}]\n")
        words.add(f"{_text_of(cell.get('source', cell.get('input')))}\n")
        printed = "\n".join(filter(None, map(_output_text, _objects_in(cell.get("outputs")))))
        if printed:
            left = " …" if len(printed) > MAX_OUTPUT_CHARS else ""
            words.add(f"[output {number}]\n{printed[:MAX_OUTPUT_CHARS]}{left}\n")
        words.add("\n")


def _cells(book: Any) -> list[dict[str, Any]]:
    if not isinstance(book, dict) or not ({"nbformat", "cells", "worksheets"} & set(book)):
        raise RefusedError("unsupported")
    sheets = [book, *_objects_in(book.get("worksheets"))]
    return [cell for sheet in sheets for cell in _objects_in(sheet.get("cells"))]


def _output_text(output: dict[str, Any]) -> str:
    """What a reader sees of one output: printed words, a value as text, or an error's name and message."""
    data = output.get("data")
    if output.get("ename"):
        return f"{output['ename']}: {output.get('evalue', '')}"
    return _COLOURS.sub("", _text_of(output.get("text") or (data.get("text/plain") if isinstance(data, dict) else "")))


def _text_of(lines: Any) -> str:
    return "".join(map(str, lines)) if isinstance(lines, list) else lines if isinstance(lines, str) else ""


def _objects_in(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
