"""Read ODS sheets as displayed, with formulas, links and comments.

Hidden rows, columns and sheets are marked as hidden.
"""

from __future__ import annotations

from collections.abc import Mapping

from artifacts.extract.office import MAX_TARGET_CHARS
from artifacts.extract.reading import Progress, TextCollector
from artifacts.extract.workbook import MAX_CELL_CHARS, MAX_GAP, MAX_NOTES, MAX_RANGES, column_name, one_line

MAX_STYLES = 65_536
MAX_REPEATED = 1 << 20
"""Maximum number of rows in a LibreOffice sheet. It limits how often a row is repeated."""
HIDDEN = frozenset({"collapse", "filter"})
CELLS = frozenset({"table-cell", "covered-table-cell"})
VALUES = ("office:value", "office:date-value", "office:time-value", "office:boolean-value", "office:string-value")
SPANNED = ("table:number-columns-spanned", "table:number-rows-spanned")
PARAGRAPHS = frozenset({"p", "h"})


class OpenSheets:
    """Writes the rows of a spreadsheet while its `content.xml` is read. `total` is the number of sheets."""

    def __init__(self, output: TextCollector, progress: Progress, total: int) -> None:
        self._output, self._progress, self._total = output, progress, total
        self._style, self._hidden_styles, self._sheets, self._tables = "", set[str](), 0, 0
        self._row, self._rows, self._row_hidden, self._column = 0, 1, False, 0
        self._line, self._written, self._size, self._columns = list[str](), 0, 0, 0
        self._hidden_columns, self._started = list[str](), False
        self._cell_text, self._note, self._depth, self._in_note = list[str](), list[str](), 0, False
        self._cell, self._value, self._repeated = False, "", 1
        self._notes, self._merged = list[str](), list[str]()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in CELLS:
            self._start_cell(name, attributes)
        elif name in PARAGRAPHS:
            # A cell can have several paragraphs, which are joined with spaces.
            (self._note if self._in_note else self._cell_text).append(" ")
            self._depth += 1
        elif name == "table-row":
            self._row_hidden = attributes.get("table:visibility", "") in HIDDEN
            self._rows, self._column = _count(attributes.get("table:number-rows-repeated", "")), 0
            self._begin_rows()
        elif name in ("s", "tab", "line-break"):
            self.text(" ")
        elif name == "annotation":
            self._in_note = True
            self._note.clear()
        elif name == "a" and self._cell:
            address = attributes.get("xlink:href", "")[:MAX_TARGET_CHARS]
            if address and len(self._notes) < MAX_NOTES:
                self._notes.append(f"[link at {self._name}: {address}]\n")
        else:
            self._start_table(name, attributes)

    def _start_table(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "table":
            self._tables += 1
            if self._tables == 1:
                self._start_sheet(attributes)
        elif name == "table-column":
            count = _count(attributes.get("table:number-columns-repeated", ""))
            first, self._columns = self._columns + 1, self._columns + count
            if attributes.get("table:visibility", "") in HIDDEN and len(self._hidden_columns) < MAX_RANGES:
                names = dict.fromkeys((column_name(first), column_name(self._columns)))
                self._hidden_columns.append("-".join(names))
        elif name == "style":
            self._style = attributes.get("style:name", "")
        elif name == "table-properties" and attributes.get("table:display") == "false":
            self._hidden_styles |= {self._style} if len(self._hidden_styles) < MAX_STYLES else set()

    def _start_sheet(self, attributes: Mapping[str, str]) -> None:
        self._sheets += 1
        self._progress.report("sheets", self._sheets, max(self._total, self._sheets))
        hidden = ", hidden" if attributes.get("table:style-name", "") in self._hidden_styles else ""
        self._output.add_marker(f"[sheet: {attributes.get('table:name', '')}{hidden}]\n")
        self._row, self._columns, self._started = 0, 0, False
        self._hidden_columns.clear()

    def _begin_rows(self) -> None:
        if self._hidden_columns and not self._started:
            self._output.add_marker(f"[hidden columns: {', '.join(self._hidden_columns)}]\n")
        self._started = True

    def _start_cell(self, name: str, attributes: Mapping[str, str]) -> None:
        self._cell, self._repeated = True, _count(attributes.get("table:number-columns-repeated", ""))
        self._cell_text.clear()
        # Some programs store a value without its displayed text, or a formula with neither value nor text.
        self._value = next((attributes[value] for value in VALUES if value in attributes), "")
        formula = attributes.get("table:formula", "")
        if not self._value and formula:
            self._value = f"={formula.partition(':=')[2] or formula.lstrip('=')}"
        across, down = (_count(attributes.get(spanned, "")) for spanned in SPANNED)
        if name == "table-cell" and (across > 1 or down > 1) and len(self._merged) < MAX_RANGES:
            self._merged.append(f"{self._name}:{column_name(self._column + across)}{self._row + down}")

    @property
    def _name(self) -> str:
        return f"{column_name(self._column + 1)}{self._row + 1}"

    def text(self, text: str) -> None:
        if self._depth and self._cell:
            (self._note if self._in_note else self._cell_text).append(text)

    def end(self, name: str) -> None:
        if name in CELLS:
            self._end_cell()
        elif name in PARAGRAPHS:
            self._depth -= 1
        elif name == "table-row":
            self._end_row()
        elif name == "annotation":
            self._in_note = False
            if len(self._notes) < MAX_NOTES:
                self._notes.append(f"[comment at {self._name}: {one_line(''.join(self._note))}]\n")
        elif name == "table":
            self._tables -= 1
            if not self._tables:
                self._add_notes()

    def _end_cell(self) -> None:
        shown = one_line("".join(self._cell_text)) or one_line(self._value)
        self._cell = False
        if shown and self._size < MAX_CELL_CHARS:
            gap = self._column - self._written
            is_far = gap > MAX_GAP
            self._line.append("\t" * (min(len(self._line), 1) if is_far else gap))
            self._line.append(f"{self._name}: {shown}" if is_far else shown)
            again = min(self._repeated - 1, MAX_CELL_CHARS // (len(shown) + 1))
            self._line.append(f"\t{shown}" * again)
            self._size += (len(shown) + 1) * (again + 1)
            self._written = self._column + self._repeated - 1
        self._column += self._repeated

    def _end_row(self) -> None:
        if self._line:
            line = f"{'[hidden row] ' if self._row_hidden else ''}{''.join(self._line)}\n"
            self._line.clear()
            for _ in range(self._rows):
                self._output.add(line)
        self._written = self._size = 0
        self._row += self._rows

    def _add_notes(self) -> None:
        for note in self._notes:
            self._output.add(note)
        if self._merged:
            self._output.add_marker(f"[merged cells: {', '.join(self._merged)}]\n")
        self._output.add_marker("\n")
        self._notes.clear()
        self._merged.clear()


def _count(text: str) -> int:
    return min(max(int(text), 1), MAX_REPEATED) if text.isdecimal() and len(text) < 9 else 1
