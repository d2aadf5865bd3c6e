"""Map paths in a JSON text to lines and columns, and escape CSV cells."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from routing_admin.core.documents.json_path import child

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\]:,]|[^\s{}\[\]:,"]+|\n')
PARENT = re.compile(r'(?:\[\d+\]|\["(?:[^"\\]|\\.)*"\]|\.?(?<![A-Za-z0-9_-])[A-Za-z_][A-Za-z0-9_-]*)$')


MAX_PATH = 400


class TextPosition(NamedTuple):
    """A line and a column in a text. Both are counted from 1; the column is counted in characters."""

    line: int
    column: int


def find_positions(text: str) -> dict[str, TextPosition]:
    """Return the position of every value in a valid JSON text, keyed by the path under which problems are reported."""
    found: dict[str, TextPosition] = {}
    for path, position in _list_positions(text.removeprefix("\ufeff")):
        # If a key occurs several times, its first position is used.
        found.setdefault(path, position)
    return found


def find_position(positions: Mapping[str, TextPosition], path: str) -> TextPosition | None:
    """Return the position of a path, or that of its nearest parent if the path is missing."""
    while path:
        if path in positions:
            return positions[path]
        shorter = PARENT.sub("", path)
        if shorter == path:
            return None
        path = shorter
    return positions.get("")


def _list_positions(text: str) -> Iterator[tuple[str, TextPosition]]:
    line, line_start, tracker, name = 1, 0, _PathTracker(), TextPosition(1, 1)
    for match in TOKEN.finditer(text):
        if match[0] == "\n":
            line, line_start = line + 1, match.end()
            continue
        position, path = TextPosition(line, match.start() - line_start + 1), tracker.begins(match[0])
        if path is not None:
            yield path, name if match[0] == ":" else position
        name = position


def _child(path: str, step: str | int) -> str:
    # A value below a very long path gets the position of its parent.
    return child(path, step) if len(path) < MAX_PATH else path


class _PathTracker:
    """Parser state: the objects and lists around the current position, outermost first."""

    def __init__(self) -> None:
        # Pairs: the path of an object or list, and the index of its current item, which is -1 in an object.
        self._around: list[tuple[str, int]] = []
        self._key: str | None = None

    def begins(self, piece: str) -> str | None:
        path, index = self._around[-1] if self._around else ("", 0)
        if piece in "}]":
            self._around.pop()
        elif piece == ",":
            self._around[-1] = (path, index + 1 if index >= 0 else -1)
            self._key = None
        elif piece == ":":
            return _child(path, self._key or "")
        elif index == -1 and self._key is None:
            self._key = str(json.loads(piece))
        else:
            return self._value(piece, path, index)
        return None

    def _value(self, piece: str, path: str, index: int) -> str | None:
        # The position of a field is that of its key, which has already been reported.
        announced = index == -1
        value_path = _child(path, self._key or "") if announced else _child(path, index) if self._around else ""
        if piece in "{[":
            self._around.append((value_path, -1 if piece == "{" else 0))
            self._key = None
        return None if announced else value_path


DANGEROUS = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make spreadsheets treat a cell as a formula."""


def safe_cell(text: str) -> str:
    """Return the text of a CSV cell, with a leading quote if a spreadsheet would evaluate it as a formula."""
    return f"'{text}" if text.startswith(DANGEROUS) else text
