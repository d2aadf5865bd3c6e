"""Two configurations as the files they would be exported to, line beside line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.documents.json_path import write_document
from routing_admin.core.files.exporting import routing_value, services_value


@dataclass(frozen=True, slots=True)
class SideBySideRow:
    """One row of two texts side by side: `tag` is equal, replace, delete or insert; numbers count from 1."""

    tag: str
    left_number: int | None
    left: str
    right_number: int | None
    right: str


def side_by_side(old: Configuration, new: Configuration, *, context: int = 3) -> tuple[SideBySideRow, ...]:
    """Both files of both configurations, one after the other, in rows; unchanged stretches are cut to `context`."""
    return (
        *_rows(write_document(routing_value(old)), write_document(routing_value(new)), context),
        *_rows(write_document(services_value(old)), write_document(services_value(new)), context),
    )


def _rows(before: str, after: str, context: int) -> Iterator[SideBySideRow]:
    left, right = before.splitlines(), after.splitlines()
    for group in difflib.SequenceMatcher(None, left, right, autojunk=False).get_grouped_opcodes(context):
        for tag, i1, i2, j1, j2 in group:
            for step in range(max(i2 - i1, j2 - j1)):
                i, j = (i1 + step if i1 + step < i2 else None), (j1 + step if j1 + step < j2 else None)
                yield SideBySideRow(tag, *_number_line(left, i), *_number_line(right, j))


def _number_line(lines: list[str], index: int | None) -> tuple[int | None, str]:
    return (None, "") if index is None else (index + 1, lines[index])
