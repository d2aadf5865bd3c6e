"""If part of a spreadsheet is hostile, either the rest is read or an error is reported, within the reader's limits."""

from __future__ import annotations

import io
import zipfile

import pytest
from samples import build_zip, open_document, relations_xml, xlsx

from artifacts.extract.documents import answer
from artifacts.extract.reading import RefusedError

ROW = b'<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row></sheetData>'
ENTITY_BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
SHEET, STRINGS, COMMENTS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/comments1.xml"
RELATIONS = {
    "xl/worksheets/_rels/sheet1.xml.rels": relations_xml({"c": ("comments", "../comments1.xml")}),
    COMMENTS: b"<comments/>",
}


def build_workbook(**changed: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(xlsx({"S": [["seen"]]}))) as package:
        entries = {name: package.read(name) for name in package.namelist()}
    names = {"sheet": SHEET, "strings": STRINGS, "comments": COMMENTS, "styles": "xl/styles.xml"}
    return build_zip(entries | RELATIONS | {names[name]: data for name, data in changed.items()})


def cells(*attributes: str, value: str = "1") -> bytes:
    row = "".join(f"<c {text}><v>{value}</v></c>" for text in attributes)
    return f"<worksheet><sheetData><row>{row}</row></sheetData></worksheet>".encode()


def read_text(data: bytes, max_chars: int = 100_000, reader: str = "xlsx") -> str:
    _, text = answer(io.BytesIO(data), {"reader": reader, "max_chars": max_chars})
    return text.decode()


@pytest.mark.parametrize("part", ["sheet", "strings", "comments", "styles"])
def test_workbook_part_with_xml_entities_is_rejected(part: str) -> None:
    with pytest.raises(RefusedError, match="failed"):
        read_text(build_workbook(**{part: ENTITY_BOMB + b"<x>&b;</x>"}))


@pytest.mark.parametrize(
    ("part", "data"),
    [
        ("comments", b'<comments><comment ref="A1">'),
        ("comments", b"<x>" * 100_000),
        ("comments", b"\0" * 1000),
        ("styles", b"<styleSheet><cellXfs>"),
        ("styles", b'<styleSheet><cellXfs><xf numFmtId="' + b"9" * 65_536 + b'"/></cellXfs></styleSheet>'),
        ("strings", b"<sst><si><t>seen</t></si><si><t>"),
    ],
)
def test_cells_are_read_despite_a_damaged_part(part: str, data: bytes) -> None:
    assert read_text(build_workbook(**{part: data})) == "[sheet: S]\nseen"


def test_missing_shared_strings_are_reported() -> None:
    sheet = b'<worksheet><sheetData><row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row></sheetData></worksheet>'
    torn = build_workbook(sheet=sheet, strings=b"<sst><si><t>seen</t></si><si><t>lost")
    assert read_text(torn) == "[sheet: S]\nseen\n[this sheet could not be read to its end]"


def test_damaged_relations_and_a_missing_sheet_do_not_affect_other_sheets() -> None:
    with zipfile.ZipFile(io.BytesIO(xlsx({"S": [["seen"]], "T": [["too"]]}))) as package:
        entries = {name: package.read(name) for name in package.namelist()}
    damaged = build_zip(entries | {"xl/worksheets/_rels/sheet2.xml.rels": b"<Relationships><"})
    assert read_text(damaged) == "[sheet: S]\nseen\n\n[sheet: T]\ntoo"
    del entries["xl/worksheets/sheet1.xml"]
    assert read_text(build_zip(entries)).startswith(
        "[sheet: S]\n[this sheet could not be read to its end]\n\n[sheet: T]"
    )


@pytest.mark.parametrize("end", [b"", b"</wrong>", b"<x>" * 100_000])
def test_truncated_sheet_has_a_note_after_its_rows(end: bytes) -> None:
    assert read_text(build_workbook(sheet=ROW + end)) == "[sheet: S]\nseen\n[this sheet could not be read to its end]"


def test_cells_with_invalid_positions_or_styles_are_read_in_order() -> None:
    wrong = ('r="ZZZZ1"', 'r=""', 'r="B"', 'r="é7" s="99999999999"', 'r="A1" s="-1"', f'r="{"A" * 65_536}" s="x"')
    assert read_text(build_workbook(sheet=cells(*wrong))) == "[sheet: S]\n1\t1\t1\t1\t1\t1"


@pytest.mark.parametrize("value", ["-1", "7", "9" * 5_000, "x", "²", "1e9"])
def test_invalid_shared_string_index_yields_an_empty_cell(value: str) -> None:
    with pytest.raises(RefusedError, match="no_text"):
        read_text(build_workbook(sheet=cells('t="s"', value=value)))


@pytest.mark.parametrize("value", ["1e999", "nan", "0x10", "9" * 400])
def test_value_that_is_not_a_number_is_shown_as_stored(value: str) -> None:
    assert value[:15] in read_text(build_workbook(sheet=cells('s="1"', value=value)))


def test_number_format_of_64_kib_is_ignored() -> None:
    code = "0" * 65_536
    formats = f'<numFmts><numFmt numFmtId="200" formatCode="{code}"/></numFmts>'
    styles = f'<x>{formats}<cellXfs><xf numFmtId="200"/></cellXfs></x>'
    assert read_text(build_workbook(styles=styles.encode(), sheet=cells('s="0"', value="1.5"))) == "[sheet: S]\n1.5"


def test_output_of_notes_and_merged_cells_is_limited() -> None:
    comments = b"<comments>" + b'<comment ref="A1"><text><t>x</t></text></comment>' * 20_000 + b"</comments>"
    merged = ROW + b"<mergeCells>" + b'<mergeCell ref="A1:B2"/>' * 20_000 + b"</mergeCells></worksheet>"
    text = read_text(build_workbook(sheet=merged, comments=comments), 10_000_000)
    assert (text.count("[comment at"), text.count("A1:B2")) == (10_000, 200)


def test_long_text_shared_by_many_cells_is_truncated() -> None:
    long = b"<sst><si><t>" + b"x" * 1_000_000 + b"</t></si></sst>"
    assert len(read_text(build_workbook(strings=long, sheet=cells(*['t="s"'] * 20_000, value="0")))) == 100_000


def test_repeated_row_of_repeated_cells_is_truncated() -> None:
    cell = '<table:table-cell table:number-columns-repeated="16384"><text:p>abcdefghij</text:p></table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell * 1_000}</table:table-row>'
    data = open_document("spreadsheet", f'<table:table table:name="S">{row}</table:table>')
    assert len(read_text(data, reader="ods")) == 100_000


def test_truncated_ods_has_a_note_after_its_rows() -> None:
    row = "<table:table-row><table:table-cell><text:p>seen</text:p></table:table-cell></table:table-row>"
    data = open_document("spreadsheet", f'<table:table table:name="S">{row}</wrong>')
    assert read_text(data, reader="ods") == "[sheet: S]\nseen\n[this sheet could not be read to its end]"
