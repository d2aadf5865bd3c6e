"""Extract the text of a PDF page by line, with table rows that are recognised by ruling lines or column gaps."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise

import pypdfium2
from pypdfium2 import raw

from artifacts.extract.pdf_grids import MAX_COLUMNS, Grid, find_grids

MAX_CELLS = 5_000
"""Maximum number of lines and cells on a page whose positions are determined."""

CELL_GAP = 0.9
"""Minimum width of a gap between two cells of a row, relative to the character height. Gaps between justified words are
smaller."""

WORD_GAP = 0.15
"""Minimum width of a gap between two words of a line that PDFium split, relative to the character height."""

BULLETS = frozenset("•‣◦▪●○–-·*\uf0b7")
"""Bullet characters, which precede a list item and are not a table cell."""

HYPHENATED = re.compile(r"(?<![\w-])([^\W\d_]{2,40})[\x02\ufffe]([^\W\d_]{2,40})(?![\w\x02\ufffe-])")
"""Matches a word that is hyphenated at the end of a line and contains no other hyphen."""

WORD = re.compile(r"(?<![\w\x02\ufffe])[^\W\d_]{3,80}(?![\w\x02\ufffe])")
MAX_WORDS = 200_000

REPLACED = (("\r", ""), ("\x02", "-"), ("\ufffe", "-"), ("\0", ""))
"""Characters in PDFium's text, with their replacements. PDFium writes the second and third instead of a hyphen at a
line end."""

MIN_FILLED_FRACTION = 0.8
"""If more than this fraction of the cells contain text, each text line within a ruled row is a row of its own."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A segment of a line, positioned by the boxes of its first and last characters."""

    text: str
    first: raw.FS_RECTF
    last: raw.FS_RECTF

    @property
    def left(self) -> float:
        return float(self.first.left)

    @property
    def right(self) -> float:
        return max(float(self.last.right), self.left)

    @property
    def middle(self) -> float:
        return float(self.first.bottom + self.first.top) / 2

    @property
    def height(self) -> float:
        return float(self.first.top - self.first.bottom)


@dataclass(frozen=True, slots=True)
class GridTable:
    """A table with ruling lines, and the lines of text inside it."""

    grid: Grid
    lines: list[list[Cell]] = field(default_factory=list)

    def rows(self) -> list[str]:
        """Return the rows, or an empty list if the ruling lines are not a table but, for example, a frame."""
        bands = dict[int, list[Cell]]()
        for cell in chain.from_iterable(self.lines):
            bands.setdefault(self.grid.row(cell.middle), []).append(cell)
        columns = {self._column(cell) for cell in chain.from_iterable(self.lines)}
        if len(bands) < 2 or len(columns) < 2:
            return []
        # If wide gaps often separate cells within one ruled column, ignore the ruling lines: the gaps are more
        # reliable.
        if sum(len({self._column(cell) for cell in line}) < len(line) for line in self.lines) > len(self.lines) / 4:
            return []
        first = min(columns)
        return [self._row(row, first) for _, band in sorted(bands.items()) for row in self._split(band)]

    def _column(self, cell: Cell) -> int:
        return self.grid.column((cell.left + min(cell.right, cell.left + cell.height)) / 2)

    def _split(self, band: list[Cell]) -> Iterator[list[Cell]]:
        # If there are ruling lines only below the header, each line of text is a row.
        lines, last = list[list[Cell]](), float("inf")
        for cell in sorted(band, key=lambda cell: -cell.middle):
            if last - cell.middle > cell.height / 2:
                lines.append([])
                last = cell.middle
            lines[-1].append(cell)
        places = len(lines) * len({self._column(cell) for cell in band})
        filled = sum(len({self._column(cell) for cell in line}) for line in lines)
        if len(lines) > 1 and places > len(lines) and filled > MIN_FILLED_FRACTION * places:
            yield from lines
        else:
            yield band

    def _row(self, cells: list[Cell], first: int) -> str:
        texts = dict[int, list[str]]()
        for cell in cells:
            texts.setdefault(self._column(cell), []).append(cell.text)
        return "\t".join(" ".join(texts.get(column, ())) for column in range(first, max(texts) + 1))


def align_rows(text: str, page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage, words: set[str]) -> str:
    """Return the page's text, with tabs between table cells.

    `words` contains the words of the document so far. The words of this page are added to it.
    """
    if len(words) < MAX_WORDS:
        words.update(WORD.findall(text.lower()))
    # If the text lacks characters, its indexes do not match the positions on the page.
    if len(text) != text_page.count_chars():
        return _clean(text, words)
    tables = [GridTable(grid) for grid in find_grids(page)]
    rows, start, count = list[list[Cell] | str | GridTable](), 0, 0
    for line in text.split("\n"):
        cells = list(_cells(line, start, text_page, [table.grid for table in tables])) if count < MAX_CELLS else []
        count += len(cells)
        for table, group in groupby(cells, key=lambda cell: _find_table(cell, tables)):
            found = list(group)
            if table:
                if not table.lines:
                    rows.append(table)
                table.lines.append(found)
            elif rows and isinstance(last := rows[-1], list) and _is_next_cell(last[-1], found[0]):
                last += found
            elif rows and isinstance(last := rows[-1], list) and (joined := _join(last[-1], found[0])):
                last[-1:] = [joined, *found[1:]]
            else:
                rows.append(found)
        if not cells:
            rows.append(line)
        start += len(line) + 1
    return _clean("\n".join(_lines(rows)), words)


def _find_table(cell: Cell, tables: list[GridTable]) -> GridTable | None:
    place = cell.left + 1, cell.middle
    return next((table for table in tables if table.grid.contains(*place)), None)


def _lines(rows: list[list[Cell] | str | GridTable]) -> Iterator[str]:
    known = list[list[Cell] | str]()
    for row in rows:
        if not isinstance(row, GridTable):
            known.append(row)
        elif drawn := row.rows():
            yield from _lines_by_gaps(known)
            yield from drawn
            known.clear()
        else:
            known += row.lines
    yield from _lines_by_gaps(known)


def _lines_by_gaps(rows: list[list[Cell] | str]) -> Iterator[str]:
    for is_table, group in groupby(rows, key=lambda row: isinstance(row, list) and len(row) > 1):
        block = list(group)
        yield from _table([row for row in block if isinstance(row, list)]) if is_table else map(_line, block)


def _clean(text: str, words: set[str]) -> str:
    def join(parts: re.Match[str]) -> str:
        # Keep the hyphen before a capital letter, and between two parts that the document never writes as one word.
        left, right = parts[1].lower(), parts[2]
        is_own = not (right.islower() and parts[1][1:].islower())
        is_own = is_own or (left in words and right in words and left + right not in words)
        return parts[1] + "-" * is_own + right

    text = HYPHENATED.sub(join, text)
    for written, meant in REPLACED:
        text = text.replace(written, meant)
    return text


def _line(row: list[Cell] | str) -> str:
    return row if isinstance(row, str) else row[0].text


def _cells(line: str, start: int, page: pypdfium2.PdfTextPage, grids: list[Grid]) -> Iterator[Cell]:
    """Yield the segments of a line that are separated by ruling lines or wide gaps."""
    end = len(line.rstrip())
    begin = len(line) - len(line.lstrip())
    if begin >= end:
        return
    first = _box(page, start + begin)
    middle = (first.bottom + first.top) / 2
    beside = [grid for grid in grids if grid.bottom < middle < grid.top]
    spaces = list[tuple[int, raw.FS_RECTF, raw.FS_RECTF]]()
    at = line.find(" ", begin)
    while 0 < at < end - 1:
        spaces.append((at, _box(page, start + at), _box(page, start + at + 1)))
        at = line.find(" ", at + 1)
    # However far apart two characters are, PDFium inserts only a single space of zero width between them.
    if beside or any(_is_wide(space, after, after) for _, space, after in spaces):
        for at, space, after in spaces:
            before = _box(page, start + at - 1)
            # The space between two cells is assigned to the end of the first or to the beginning of the second.
            is_wide = _is_wide(space, after, after) or _is_wide(before, space, after)
            is_ruled = any(grid.separates(before.right, after.left, middle) for grid in beside)
            if is_ruled or (is_wide and line[begin:at] not in BULLETS):
                yield Cell(line[begin:at].strip(), first, space)
                begin, first = at + 1, after
    yield Cell(line[begin:end].strip(), first, _box(page, start + end - 1))


def _is_wide(left: raw.FS_RECTF, right: raw.FS_RECTF, letter: raw.FS_RECTF) -> bool:
    return bool(right.left - left.right > CELL_GAP * (letter.top - letter.bottom) > 0)


def _is_next_cell(cell: Cell, other: Cell) -> bool:
    # PDFium also breaks the line after a cell of one character.
    return _on_one_line(cell, other) and other.left - cell.last.right > CELL_GAP * cell.height > 0


def _join(cell: Cell, other: Cell) -> Cell | None:
    # If PDFium treats a narrow column as vertical writing, it puts each character on a separate line.
    gap, height = other.left - cell.last.right, cell.height
    if not _on_one_line(cell, other) or not -height / 4 < gap <= CELL_GAP * height:
        return None
    return Cell(f"{cell.text}{' ' if gap > WORD_GAP * height else ''}{other.text}", cell.first, other.last)


def _on_one_line(cell: Cell, other: Cell) -> bool:
    # The box of a ligature is lower than those of other characters.
    before, after = cell.last, other.first
    height, raised = before.top - before.bottom, after.bottom - before.bottom
    return bool(abs(raised) < height / 4 or abs(raised + after.top - before.top) < height / 4)


def _box(page: pypdfium2.PdfTextPage, index: int) -> raw.FS_RECTF:
    box = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(page.raw, index, box)
    return box


def _table(block: list[list[Cell]]) -> list[str]:
    # Cells with overlapping horizontal positions belong to the same column. This preserves empty cells in a row.
    edges, right = list[float](), float("-inf")
    for cell in sorted(chain.from_iterable(block), key=lambda cell: cell.left):
        if cell.left > right:
            edges.append(cell.left)
        right = max(right, cell.right)
    rows = list[str]()
    for cells in block:
        columns = [bisect(edges, cell.left) - 1 for cell in cells]
        steps = [column - last for last, column in pairwise([0, *columns])]
        # A cell that spans several columns merges them, so other cells of a row can be in the same column.
        if min(steps[1:]) < 1 or len(edges) > MAX_COLUMNS:
            steps = [0] + [1] * (len(cells) - 1)
        rows.append("".join("\t" * step + cell.text for step, cell in zip(steps, cells, strict=True)))
    return rows
