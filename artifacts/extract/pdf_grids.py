"""Find the ruling lines between table cells on a PDF page. Runs only in the extraction process."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from ctypes import c_float, c_int
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import pypdfium2
from pypdfium2 import raw

MAX_OBJECTS, MAX_RULES, MAX_SEGMENTS = 20_000, 2_000, 20_000
"""Maximum numbers of page objects to examine, lines to store, and segments in a drawn shape."""

MAX_COLUMNS, MAX_GRIDS = 100, 50
MAX_THICKNESS = 3.0
MIN_LENGTH = 5.0
TOLERANCE = 3.0
"""Distance in points below which two lines are treated as one."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight ruling line at `place` from `start` to `end`.

    A horizontal line has its y coordinate in `place` and its x range in `start` and `end`. For a vertical line, x and y
    are exchanged.
    """

    place: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Spans:
    """Disjoint coordinate intervals in ascending order."""

    starts: list[float]
    ends: list[float]

    def contains(self, value: float) -> bool:
        at = bisect(self.starts, value) - 1
        return at >= 0 and value <= self.ends[at]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The ruling lines of a table: column borders (with the heights at which they are drawn) and row borders."""

    left: float
    right: float
    bottom: float
    top: float
    columns: list[float]
    spans: list[Spans]
    rows: list[float]

    def contains(self, x: float, y: float) -> bool:
        return self.left < x < self.right and self.bottom < y < self.top

    def column(self, x: float) -> int:
        return bisect(self.columns, x)

    def row(self, y: float) -> int:
        return len(self.rows) - bisect(self.rows, y)

    def separates(self, left: float, right: float, y: float) -> bool:
        """Return whether there is a vertical line between two x positions at this height."""
        if not self.bottom < y < self.top:
            return False
        first = bisect(self.columns, left - 1)
        return any(self.spans[at].contains(y) for at in range(first, bisect(self.columns, right + 1)))


def find_grids(page: pypdfium2.PdfPage) -> list[Grid]:
    """Return the grids on a page. A grid has at least two vertical and three horizontal lines that touch."""
    across, down = list[Rule](), list[Rule]()
    for is_horizontal, rule in islice(_rules(page), MAX_RULES):
        (across if is_horizontal else down).append(rule)
    grids = list[Grid]()
    for columns, rows in _connected(down, across):
        places, lines = _columns(columns), _distinct([rule.place for rule in rows])
        if 2 <= len(places) <= MAX_COLUMNS and len(lines) >= 3 and len(grids) < MAX_GRIDS:
            grids.append(
                Grid(
                    left=min(rule.start for rule in rows),
                    right=max(rule.end for rule in rows),
                    bottom=min(rule.start for rule in columns),
                    top=max(rule.end for rule in columns),
                    columns=list(places),
                    spans=list(places.values()),
                    rows=lines,
                )
            )
    return grids


def _connected(down: list[Rule], across: list[Rule]) -> Iterator[tuple[list[Rule], list[Rule]]]:
    """Yield groups of vertical and horizontal lines that touch, directly or through other lines."""
    across = sorted(across, key=lambda rule: rule.place)
    heights = [rule.place for rule in across]
    parents = list(range(len(across)))

    def root(at: int) -> int:
        while parents[at] != at:
            parents[at] = at = parents[parents[at]]
        return at

    touched = list[int]()  # For each vertical line, store the index of a horizontal line that it touches, or -1.
    for rule in down:
        first = -1
        for at in range(bisect(heights, rule.start - TOLERANCE), bisect(heights, rule.end + TOLERANCE)):
            if across[at].start - TOLERANCE <= rule.place <= across[at].end + TOLERANCE:
                first = at if first < 0 else first
                parents[root(at)] = root(first)
        touched.append(first)
    groups = dict[int, tuple[list[Rule], list[Rule]]]()
    for rule, at in zip(down, touched, strict=True):
        if at >= 0:
            groups.setdefault(root(at), ([], []))[0].append(rule)
    for at, rule in enumerate(across):
        if group := groups.get(root(at)):
            group[1].append(rule)
    yield from groups.values()


def _rules(page: pypdfium2.PdfPage) -> Iterator[tuple[bool, Rule]]:
    left, bottom, right, top = (c_float() for _ in range(4))
    segments = 0
    for index in range(min(raw.FPDFPage_CountObjects(page), MAX_OBJECTS)):
        shape = raw.FPDFPage_GetObject(page, index)
        if raw.FPDFPageObj_GetType(shape) != raw.FPDF_PAGEOBJ_PATH:
            continue
        if not raw.FPDFPageObj_GetBounds(shape, left, bottom, right, top):
            continue
        if rule := _rule(left.value, bottom.value, right.value, top.value):
            yield rule
        elif right.value - left.value > MAX_THICKNESS < top.value - bottom.value and _is_stroked(shape):
            count = raw.FPDFPath_CountSegments(shape)
            segments += count
            if segments <= MAX_SEGMENTS:
                yield from _sides(shape, count)


def _rule(left: float, bottom: float, right: float, top: float) -> tuple[bool, Rule] | None:
    width, height = right - left, top - bottom
    if height <= MAX_THICKNESS and width >= MIN_LENGTH:
        return True, Rule((bottom + top) / 2, left, right)
    if width <= MAX_THICKNESS and height >= MIN_LENGTH:
        return False, Rule((left + right) / 2, bottom, top)
    return None


def _is_stroked(shape: Any) -> bool:
    fill, stroke = c_int(), c_int()
    return bool(raw.FPDFPath_GetDrawMode(shape, fill, stroke) and stroke.value)


def _sides(shape: Any, count: int) -> Iterator[tuple[bool, Rule]]:
    matrix, x, y = raw.FS_MATRIX(), c_float(), c_float()
    if not raw.FPDFPageObj_GetMatrix(shape, matrix):
        return
    points = list[tuple[float, float, int]]()
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(shape, index)
        if not raw.FPDFPathSegment_GetPoint(segment, x, y):
            return
        across = matrix.a * x.value + matrix.c * y.value + matrix.e
        up = matrix.b * x.value + matrix.d * y.value + matrix.f
        points.append((across, up, raw.FPDFPathSegment_GetType(segment)))
    for (x1, y1, _), (x2, y2, kind) in pairwise(points):
        if kind == raw.FPDF_SEGMENT_LINETO and (abs(x1 - x2) < 1 or abs(y1 - y2) < 1):
            rule = _rule(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
            if rule:
                yield rule


def _columns(rules: list[Rule]) -> dict[float, Spans]:
    columns, last = dict[float, list[Rule]](), float("-inf")
    for rule in sorted(rules, key=lambda rule: rule.place):
        if rule.place - last > TOLERANCE:
            last = rule.place
        columns.setdefault(last, []).append(rule)
    return {place: _spans(found) for place, found in columns.items()}


def _spans(rules: list[Rule]) -> Spans:
    spans = Spans([], [])
    for rule in sorted(rules, key=lambda rule: rule.start):
        if spans.ends and rule.start <= spans.ends[-1] + TOLERANCE:
            spans.ends[-1] = max(spans.ends[-1], rule.end)
        else:
            spans.starts.append(rule.start)
            spans.ends.append(rule.end)
    return spans


def _distinct(places: list[float]) -> list[float]:
    kept = list[float]()
    for place in places:
        if not kept or place - kept[-1] > TOLERANCE:
            kept.append(place)
    return kept
