"""Old and new spreadsheets are extracted as rows of text, with readable dates. Hostile files yield None."""

from __future__ import annotations

from pathlib import Path

import pytest
from compound_files import bare_xls
from samples import TYPES, build_zip, open_document, xls, xlsb, xlsx, xlsx_from_rows

from artifacts.core.detection.detector import BinaryDetector
from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.extract import extract_text
from capabilities.core.message import Text

XLSX, ODS = f"{OOXML}spreadsheetml.sheet", f"{ODF}spreadsheet"
XLS, XLSB = "application/vnd.ms-excel", "application/vnd.ms-excel.sheet.binary.macroenabled.12"


@pytest.fixture
def read(tmp_path: Path):
    def read(data: bytes, mime: str = XLSX, **options: int) -> Text | None:
        path = tmp_path / "file"
        path.write_bytes(data)
        return extract_text(path, mime, **options)

    return read


def test_date_cells_are_extracted_as_dates_not_serial_numbers(read) -> None:
    """A cell's style determines whether its number is a date, a date with time, or a duration."""
    # Each cell has a style and a value. Day 46348 in Excel's calendar is 22 November 2026.
    cells = ((1, "46348"), (2, "46348.5"), (3, "1.25"), (0, "2"), (0, "0.1"))
    row = "".join(
        f'<c r="{"ABCDE"[column]}1" s="{style}"><v>{value}</v></c>' for column, (style, value) in enumerate(cells)
    )
    extracted = read(xlsx_from_rows(f'<row r="1">{row}<c r="F1" t="b"><v>1</v></c></row>'))
    assert extracted == Text("[sheet: S]\n2026-11-22\t2026-11-22 12:00:00\t30:00:00\t2\t0.1\tTRUE", "xlsx")


def test_xls_and_xlsb_are_read(read) -> None:
    """XLS contains BIFF8 in a compound file, XLSB contains BIFF12 in a package."""
    assert read(xls(46348, "你好"), XLS) == Text("[sheet: Old]\n2026-11-22\t2\n\t你好", "xls")
    assert read(xlsb("你好"), XLSB) == Text("[sheet: Bin]\n7\t你好", "xlsb")


@pytest.mark.parametrize("version", [2, 3, 4])
def test_excel_2_to_4_cells_are_extracted_as_displayed(read, version: int) -> None:
    assert BinaryDetector().detect(bare_xls(version)).mime_type == XLS
    assert read(bare_xls(version), XLS) == Text("hello\t12.5%\t\t#DIV/0!\nTRUE\tsum", "xls")


def test_truncated_old_sheet_has_a_note_after_its_rows(read) -> None:
    note = bytes.fromhex("1c00 0200 0000")
    assert read(bare_xls(2) + note, XLS).text.endswith("sum\n[this sheet could not be read to its end]")


def test_opendocument_cells_are_extracted_as_displayed(read) -> None:
    """A cell with a repeat count is written that often, so that columns remain aligned."""
    cells = (
        '<table:table-cell office:value-type="date" office:date-value="2026-11-22"><text:p>22.11.</text:p>',
        '<table:table-cell table:number-columns-repeated="2">',
        '<table:table-cell office:value-type="time" office:time-value="PT30H00M00S"><text:p>30:00</text:p>',
    )
    row = "".join(f"{cell}</table:table-cell>" for cell in cells)
    extracted = read(open_document("spreadsheet", f'<table:table table:name="S"><table:table-row>{row}'
                               "</table:table-row></table:table>"), ODS)  # fmt: skip
    assert extracted == Text("[sheet: S]\n22.11.\t\t\t30:00", "ods")


def test_truncated_workbook_has_a_note_with_the_extracted_sheets(read) -> None:
    extracted = read(xlsx({"A": [["x"]] * 400, "B": [["y"]]}), max_chars=50)
    assert (extracted.note, len(extracted.text) <= 50) == ("[truncated: sheets 1-1 of 2]", True)


FAR = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
REPEATED = (
    '<table:table table:name="S"><table:table-row table:number-rows-repeated="1048576"><table:table-cell'
    ' table:number-columns-repeated="16384" office:value-type="string"><text:p>a</text:p></table:table-cell>'
    "</table:table-row></table:table>"
)


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (xls(1, "x")[:1500], XLS),
        (bare_xls(4)[:10] + b"\x03\x02\x01\x00\0" * 9, XLS),
        (xlsb("x")[:400], XLSB),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 4000, XLS),
    ],
    ids=["cut xls", "cut bare xls", "cut xlsb", "broken chains"],
)
def test_hostile_workbook_yields_none(read, data: bytes, mime: str) -> None:
    assert read(data, mime) is None


def test_distant_cell_is_listed_by_address_without_empty_cells(read) -> None:
    assert read(xlsx_from_rows(FAR), XLSX).text == "[sheet: S]\n1\nXFD1048576: 2"


def test_billions_of_repeated_cells_are_truncated(read) -> None:
    extracted = read(open_document("spreadsheet", REPEATED), ODS, max_chars=1000)
    assert (extracted.note, len(extracted.text)) == ("[truncated: sheets 1-1 of 1]", 1000)


def test_workbook_that_unpacks_to_600_mb_yields_none(read) -> None:
    assert read(build_zip({"[Content_Types].xml": TYPES, "xl/workbook.xml": bytes(600 << 20)}), XLSX) is None
