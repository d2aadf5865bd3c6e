"""Read XLSX sheets as displayed, with formatted numbers, errors, formulas, links and comments.

Hidden rows and columns are marked as hidden.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterator, Mapping

from artifacts.extract.number_formats import BUILT_IN, GENERAL, NumberFormat, general
from artifacts.extract.office import addresses, attribute, ignore, targets
from artifacts.extract.reading import DAMAGE_ERRORS, TextCollector, entry_blocks, parsed_blocks, read_xml

WORKBOOK = "xl/workbook.xml"
SHEET_KINDS = ("worksheet", "chartsheet", "xlMacrosheet")
MAX_SHEETS = 10_000
MAX_STYLES = 65_536
MAX_PART_BYTES = 512 * 1024 * 1024
MAX_NOTES = 10_000
MAX_RANGES = 200
MAX_CELLS_AT_ONCE = 10_000
MAX_CELL_CHARS = 2_000_000
MAX_COLUMNS = 16_384
MAX_GAP = 50
"""Maximum number of consecutive empty cells that are written as tabs. After a larger gap, the next cell is prefixed
with its reference, such as `XFD1: `."""
UNREADABLE = "[this sheet could not be read to its end]\n"

_LINK = re.compile(r'HYPERLINK\(\s*"([^"]{1,2000})"', re.IGNORECASE)


class Workbook:
    """The sheets of an XLSX package in order.

    `sheets` contains a pair for each sheet: its name, and whether the sheet is hidden.
    """

    def __init__(self, package: zipfile.ZipFile, output: TextCollector) -> None:
        self._package, self._output = package, output
        self.sheets, self._parts = list[tuple[str, bool]](), list[str]()
        self.from_1904 = False
        self._read_sheets()
        self._formats, self._styles = dict[str, NumberFormat | None](), list[str]()
        self._codes = {str(number): code for number, code in BUILT_IN.items()}
        self._read_styles()
        shared = next(iter(targets(package, WORKBOOK, "sharedStrings").values()), "")
        self.strings = SharedStrings(self._blocks(shared)) if shared else None

    def add(self, index: int) -> None:
        """Write the rows of a sheet, then one line for each link, comment and merged range."""
        part = self._parts[index]
        if not part:
            self._output.add(UNREADABLE)
            return
        sheet = Sheet(self, self._output, self._links(part))
        is_torn = False
        try:
            read_xml(self._blocks(part), sheet.start, sheet.end, sheet.text)
        except DAMAGE_ERRORS:
            sheet.flush()
            is_torn = True
        if is_torn or (self.strings and self.strings.is_torn):
            self._output.add(UNREADABLE)
        sheet.add_notes()
        self._add_comments(part)

    def format(self, style: str) -> NumberFormat | None:
        """Return the number format of a cell style, or None for `General`."""
        if style not in self._formats:
            number = int(style) if style.isdecimal() and len(style) < 6 else MAX_STYLES
            code = self._codes.get(self._styles[number], GENERAL) if number < len(self._styles) else GENERAL
            known = None if code.lower() == "general" else NumberFormat(code, from_1904=self.from_1904)
            if len(self._formats) > MAX_STYLES:
                return known
            self._formats[style] = known
        return self._formats[style]

    def _links(self, part: str) -> Mapping[str, str]:
        try:
            return addresses(self._package, part)
        except DAMAGE_ERRORS:
            return {}  # The cells are useful even without their links.

    def _blocks(self, part: str) -> Iterator[bytes]:
        return timed_blocks(self._package, part, self._output)

    def _read_sheets(self) -> None:
        files = dict[str, str]()
        for kind in SHEET_KINDS:
            files |= targets(self._package, WORKBOOK, kind)

        def collect(name: str, attributes: Mapping[str, str]) -> None:
            if name == "sheet" and len(self.sheets) < MAX_SHEETS:
                hidden = attributes.get("state", "visible") != "visible"
                self.sheets.append((attributes.get("name", ""), hidden))
                self._parts.append(files.get(attribute(attributes, "id"), ""))
            elif name == "workbookPr":
                self.from_1904 = attributes.get("date1904", "") in ("1", "true")

        read_xml(self._blocks(WORKBOOK), collect, ignore, ignore)

    def _read_styles(self) -> None:
        is_cell = [False]

        def collect(name: str, attributes: Mapping[str, str]) -> None:
            if name == "numFmt" and len(self._codes) < MAX_STYLES:
                # Some programs store a custom format code under the number of a built-in format, which changes its
                # meaning.
                number = attributes.get("numFmtId", "")
                if number not in ("14", "22"):
                    self._codes[number] = attributes.get("formatCode", GENERAL)
            elif name in ("cellXfs", "cellStyleXfs"):
                is_cell[0] = name == "cellXfs"
            elif name == "xf" and is_cell[0] and len(self._styles) < MAX_STYLES:
                self._styles.append(attributes.get("numFmtId", "0"))

        for part in list(targets(self._package, WORKBOOK, "styles").values())[:1]:
            try:
                read_xml(self._blocks(part), collect, ignore, ignore)
            except DAMAGE_ERRORS:
                return  # Unformatted numbers are better than no numbers.

    def _add_comments(self, part: str) -> None:
        words, at, count = list[str](), [""], [0]

        def start(name: str, attributes: Mapping[str, str]) -> None:
            if name == "comment":
                at[0] = attributes.get("ref", "")
                words.clear()

        def end(name: str) -> None:
            if name == "author":
                words.clear()
            elif name == "comment" and count[0] < MAX_NOTES:
                count[0] += 1
                self._output.add(f"[comment at {at[0]}: {' '.join(''.join(words).split())}]\n")

        try:
            for comments in dict.fromkeys(targets(self._package, part, "comments").values()):
                read_xml(self._blocks(comments), start, end, words.append)
        except DAMAGE_ERRORS:
            return  # The cells are useful even without a damaged comment.


class SharedStrings:
    """The strings that cells refer to by index. They are read only as far as needed."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._found, self._parts = list[str](), list[str]()
        self._in_text = self._phonetic = False
        self.is_torn = False
        """Whether the part is damaged, so that later strings are missing."""
        self._parsing = parsed_blocks(blocks, self._start, self._end, self._text)

    def get(self, index: int) -> str:
        while index >= len(self._found):
            try:
                next(self._parsing)
            except StopIteration:
                break
            except DAMAGE_ERRORS:
                self.is_torn = True
                break
        return self._found[index] if 0 <= index < len(self._found) else ""

    def _start(self, name: str, _: Mapping[str, str]) -> None:
        if name == "t":
            self._in_text = not self._phonetic
        elif name == "rPh":
            self._phonetic = True

    def _end(self, name: str) -> None:
        if name == "t":
            self._in_text = False
        elif name == "rPh":
            self._phonetic = False
        elif name == "si":
            self._found.append(one_line("".join(self._parts)))
            self._parts.clear()

    def _text(self, text: str) -> None:
        if self._in_text:
            self._parts.append(text)


class Sheet:
    """Writes the rows of a worksheet while they are read."""

    def __init__(self, workbook: Workbook, output: TextCollector, links: Mapping[str, str]) -> None:
        self._workbook, self._output, self._links = workbook, output, links
        self._kind = self._style = self._name = self._formula_of = ""
        self._value, self._formula = list[str](), list[str]()
        self._into: list[str] | None = None
        self._phonetic = False
        self._line, self._column, self._written, self._size = list[str](), 0, 0, 0
        self._hidden = False
        self._columns, self._hidden_columns = dict[str, int](), list[str]()
        self._notes, self._merged, self._shared = list[str](), list[str](), dict[str, str]()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "c":
            get = attributes.get
            self._kind, self._style, self._name = get("t", "n"), get("s", "0"), get("r", "")
        elif name == "v":
            self._into = self._value
        elif name == "t":
            self._into = None if self._phonetic else self._value
        elif name == "f":
            self._into, shared = self._formula, attributes.get("si", "")
            self._formula_of = self._shared.get(shared, "") if shared else ""
            if shared and not self._formula_of and len(self._shared) < MAX_NOTES:
                self._shared[shared] = self._name
        elif name == "row":
            self._hidden = attributes.get("hidden", "") in ("1", "true")
        elif name == "rPh":
            self._phonetic = True
        elif name in ("col", "sheetData", "hyperlink", "mergeCell"):
            self._start_other(name, attributes)

    def _start_other(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "col" and attributes.get("hidden", "") in ("1", "true") and len(self._hidden_columns) < MAX_RANGES:
            first, last = (
                column_name(int(text) if is_index(text) else 0)
                for text in map(attributes.get, ("min", "max"), ("", ""))
            )
            self._hidden_columns.append(first if first == last else f"{first}-{last}")
        elif name == "sheetData" and self._hidden_columns:
            self._output.add_marker(f"[hidden columns: {', '.join(self._hidden_columns)}]\n")
        elif name == "hyperlink" and len(self._notes) < MAX_NOTES:
            if address := self._links.get(attribute(attributes, "id")):
                self._notes.append(f"[link at {attributes.get('ref', '')}: {address}]\n")
        elif name == "mergeCell" and len(self._merged) < MAX_RANGES:
            self._merged.append(attributes.get("ref", ""))

    def text(self, text: str) -> None:
        if self._into is not None:
            self._into.append(text)

    def end(self, name: str) -> None:
        if name == "c":
            if self._value or self._formula or self._formula_of:
                self._add_cell()
            else:
                self._column += 1
        elif name in ("v", "t", "f"):
            self._into = None
        elif name == "row":
            self.flush()
        elif name == "rPh":
            self._phonetic = False

    def flush(self) -> None:
        if self._line:
            line = "".join(self._line)
            if line.strip():
                self._output.add(f"[hidden row] {line}\n" if self._hidden else f"{line}\n")
            self._line.clear()
        self._column = self._written = self._size = 0

    def add_notes(self) -> None:
        for note in self._notes:
            self._output.add(note)
        if self._merged:
            self._output.add_marker(f"[merged cells: {', '.join(self._merged)}]\n")

    def _add_cell(self) -> None:
        value, formula = "".join(self._value), "".join(self._formula)
        self._value.clear()
        self._formula.clear()
        if formula and (link := _LINK.match(formula)) and len(self._notes) < MAX_NOTES:
            self._notes.append(f"[link at {self._name}: {link[1]}]\n")
        shown = self._shown(value) if value else ""
        if not value and (formula or self._formula_of):
            shown = f"={one_line(formula)}" if formula else f"=[as in {self._formula_of}]"
        self._formula_of = ""
        # Place a cell without a valid position after the previous cell.
        column = max(self._place(), self._column)
        if shown:
            gap = column - self._written
            is_far = gap > MAX_GAP
            self._line.append("\t" * (min(len(self._line), 1) if is_far else gap))
            self._line.append(f"{self._name}: {shown}" if is_far else shown)
            self._written, self._size = column, self._size + len(shown)
        self._column = column + 1
        if len(self._line) > MAX_CELLS_AT_ONCE or self._size > MAX_CELL_CHARS:
            self.flush()

    def _shown(self, value: str) -> str:
        kind = self._kind
        if kind == "s":
            return self._workbook.strings.get(int(value)) if self._workbook.strings and is_index(value) else ""
        number_format = self._workbook.format(self._style)
        if kind == "n":
            return shown_number(value, number_format)
        if kind == "b":
            return "TRUE" if value.strip() == "1" else "FALSE"
        if kind == "e":
            return one_line(value)
        if kind == "d":
            return one_line(value.replace("T", " "))
        return one_line(number_format.words(value) if number_format else value)

    def _place(self) -> int:
        letters = self._name.rstrip("0123456789")
        column = self._columns.get(letters)
        if column is None:
            column = column_number(letters)
            if len(self._columns) < MAX_COLUMNS:
                self._columns[letters] = column
        return column


def timed_blocks(package: zipfile.ZipFile, part: str, output: TextCollector) -> Iterator[bytes]:
    """Yield the bytes of a part. Raise `TextLimitError` at the collector's time limit, even if the part has no text."""
    for block in entry_blocks(package, part, MAX_PART_BYTES):
        output.add_marker("")
        yield block


def shown_number(value: str, number_format: NumberFormat | None) -> str:
    """Return a stored number in its number format, or the value unchanged if it is not a number."""
    if number_format is None and value.isdecimal() and len(value) < 16:
        return value
    try:
        number = float(value)
    except ValueError:
        return one_line(value)
    if not math.isfinite(number):
        return one_line(value)
    return number_format.number(number).strip() if number_format else general(number)


def one_line(text: str) -> str:
    """Return the text of a cell without line breaks and tabs."""
    return " ".join(text[:MAX_CELL_CHARS].split())


def is_index(value: str) -> bool:
    return value.isdecimal() and len(value) < 10


def column_number(letters: str) -> int:
    """Return the index (from 0) of the column with these letters, or -1 if Excel has no such column."""
    if not 0 < len(letters) < 4 or not letters.isascii() or not letters.isalpha():
        return -1
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number - 1 if number <= MAX_COLUMNS else -1


def column_name(number: int) -> str:
    """Return the letters of a column, given its number from 1. Column 27 is AA."""
    rest, letters = number if number < 100_000 else 0, ""
    while rest:
        rest, letter = divmod(rest - 1, 26)
        letters = chr(65 + letter) + letters
    return letters or "?"
