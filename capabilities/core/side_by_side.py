"""Compare two texts line by line, and mark the words in which two lines differ."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WORD = re.compile(r"[A-Za-z0-9_]+|.", re.DOTALL)
"""A run of ASCII letters, digits and underscores, or any other single character. Chinese text is compared character by
character."""

MAX_LINE = 1000
"""Words are compared only in lines that have at most this many characters."""

MAX_PAIRS = 20_000
MAX_REPEATS = 8

MIN_SIMILARITY = 0.3
"""Words are compared only if their lines are at least this similar. In less similar lines, no words are marked."""

Parts = tuple[tuple[str, bool], ...]
"""Segments of a line, each with a flag that says whether it differs from the other line."""


@dataclass(frozen=True, slots=True)
class SideBySideRow:
    """One row of two texts shown side by side. `tag` is equal, replace, delete or insert.

    Line numbers start at 1. `skipped` is the number of unchanged lines that were omitted before this row.
    """

    tag: str
    left_number: int | None
    left: str
    right_number: int | None
    right: str
    skipped: int = 0

    @property
    def left_parts(self) -> Parts:
        return mark_words(self.left, self.right) if self.tag == "replace" else ((self.left, False),)

    @property
    def right_parts(self) -> Parts:
        return mark_words(self.right, self.left) if self.tag == "replace" else ((self.right, False),)


def compare_lines(before: str, after: str, *, context: int = 3) -> tuple[SideBySideRow, ...]:
    """Return the changed lines of two texts, with up to `context` unchanged lines around each change.

    If the texts are equal, there are no rows.
    """
    return tuple(_rows(before.splitlines(), after.splitlines(), context))


def _rows(left: Sequence[str], right: Sequence[str], context: int) -> Iterator[SideBySideRow]:
    shown = 0
    for group in _matcher(left, right).get_grouped_opcodes(context):
        skipped, shown = group[0][1] - shown, group[-1][2]
        for tag, i1, i2, j1, j2 in group:
            for step in range(max(i2 - i1, j2 - j1)):
                i, j = (i1 + step if i1 + step < i2 else None), (j1 + step if j1 + step < j2 else None)
                yield SideBySideRow(tag, *_number_line(left, i), *_number_line(right, j), skipped=skipped)
                skipped = 0


def _matcher(left: Sequence[str], right: Sequence[str]) -> difflib.SequenceMatcher[str]:
    # SequenceMatcher's time grows with the number of pairs of equal items: 32,000 equal lines on both sides would take
    # minutes. If there are too many pairs, a frequent item can match only if it is next to other matching items.
    counts = Counter(right)
    if sum(counts[piece] for piece in left) <= MAX_PAIRS:
        return difflib.SequenceMatcher(None, left, right, autojunk=False)
    return difflib.SequenceMatcher(lambda piece: counts[piece] > MAX_REPEATS, left, right, autojunk=False)


def _number_line(lines: Sequence[str], index: int | None) -> tuple[int | None, str]:
    return (None, "") if index is None else (index + 1, lines[index])


def mark_words(text: str, other_text: str) -> Parts:
    """Split a line into segments, and mark those that differ from the other line."""
    if not text or not other_text or len(text) > MAX_LINE or len(other_text) > MAX_LINE:
        return ((text, False),)
    pieces, other_pieces = WORD.findall(text), WORD.findall(other_text)
    matcher = _matcher(pieces, other_pieces)
    if matcher.ratio() < MIN_SIMILARITY:
        return ((text, False),)
    codes = matcher.get_opcodes()
    parts = (("".join(pieces[start:stop]), tag != "equal") for tag, start, stop, _start, _stop in codes)
    return tuple((text, is_different) for text, is_different in parts if text)
