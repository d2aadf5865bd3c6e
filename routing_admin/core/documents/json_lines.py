"""Where in a JSON text each thing stands, so that a problem's path can be shown with its line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from routing_admin.core.documents.json_path import child

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\]:,]|[^\s{}\[\]:,"]+|\n')
PARENT = re.compile(r'(?:\[\d+\]|\["(?:[^"\\]|\\.)*"\]|\.?(?<![A-Za-z0-9_-])[A-Za-z_][A-Za-z0-9_-]*)$')


MAX_PATH = 400


class TextPlace(NamedTuple):
    """A place in a text: its line and column, both counted from 1, the column in characters."""

    line: int
    column: int


def places_of(text: str) -> dict[str, TextPlace]:
    """The place of everything in a valid JSON text, by path as problems write it."""
    found: dict[str, TextPlace] = {}
    for path, place in _places(text.removeprefix("\ufeff")):
        found.setdefault(path, place)
    return found


def find_place(places: Mapping[str, TextPlace], path: str) -> TextPlace | None:
    """The place of a path; of the nearest one around it when it is not there, as with a missing field."""
    while path:
        if path in places:
            return places[path]
        shorter = PARENT.sub("", path)
        if shorter == path:
            return None
        path = shorter
    return places.get("")


def _places(text: str) -> Iterator[tuple[str, TextPlace]]:
    """(path, place) of the document, of every field's name and of every item, in reading order."""
    line, line_start, where, name = 1, 0, _Where(), TextPlace(1, 1)
    for match in TOKEN.finditer(text):
        if match[0] == "\n":
            line, line_start = line + 1, match.end()
            continue
        place, path = TextPlace(line, match.start() - line_start + 1), where.begins(match[0])
        if path is not None:
            yield path, name if match[0] == ":" else place
        name = place


def _child(path: str, step: str | int) -> str:
    """The path of a child; what is deeper than any problem has the place of what is around it."""
    return child(path, step) if len(path) < MAX_PATH else path


class _Where:
    """The place reached in a text: the objects and lists around it, outermost first."""

    def __init__(self) -> None:
        self._around: list[tuple[str, int]] = []  # path, and the index of the item, -1 in an object
        self._key: str | None = None

    def begins(self, piece: str) -> str | None:
        """The path of what begins with this piece of the text; None when nothing begins."""
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
        """A value begins: an item of a list, the document itself, or what a key has announced already."""
        announced = index == -1
        place = _child(path, self._key or "") if announced else _child(path, index) if self._around else ""
        if piece in "{[":
            self._around.append((place, -1 if piece == "{" else 0))
            self._key = None
        return None if announced else place


# Cells of a CSV file as spreadsheets read them.

DANGEROUS = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would take for a formula."""


def safe_cell(text: str) -> str:
    """The text, which no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(DANGEROUS) else text
