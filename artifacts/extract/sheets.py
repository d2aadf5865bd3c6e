"""Extract text from spreadsheets, with rows as lines and tabs between cells. Runs only in the extraction process."""

from __future__ import annotations

import datetime as dt
import zipfile
from typing import BinaryIO

from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum

from artifacts.extract.legacy import is_locked
from artifacts.extract.old_sheets import is_old, old_sheets
from artifacts.extract.open_sheets import OpenSheets
from artifacts.extract.reading import (
    DAMAGE_ERRORS,
    Progress,
    RefusedError,
    TextCollector,
    entry_blocks,
    open_zip,
    read_xml,
)
from artifacts.extract.workbook import UNREADABLE, WORKBOOK, Workbook, timed_blocks

CONTENT, MANIFEST = "content.xml", "META-INF/manifest.xml"
MAX_UNPACKED_BYTES = 512 * 1024 * 1024
"""Maximum unpacked size that the entries may declare in total. If they declare less than their real size, the memory
limit still applies."""

Value = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta


def sheets(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write the sheets of a spreadsheet to `output`: XLSX and ODS as displayed, XLSB and XLS with raw values.

    Raise `RefusedError`: `too_large` if the declared unpacked size is too large, `encrypted`, or `failed` if the file
    is not a workbook.
    """
    if is_locked(source):
        raise RefusedError("encrypted")
    if is_old(source):
        old_sheets(source, output)
        return
    _refuse_bombs(source)
    if zipfile.is_zipfile(source) and _as_shown(open_zip(source), output, progress):
        return
    source.seek(0)
    try:
        workbook = CalamineWorkbook.from_filelike(source)
        hidden_sheets = {sheet.name for sheet in workbook.sheets_metadata if sheet.visible != SheetVisibleEnum.Visible}
        for number, name in enumerate(workbook.sheet_names, 1):
            progress.report("sheets", number, len(workbook.sheet_names))
            hidden = ", hidden" if name in hidden_sheets else ""
            output.add_marker(f"[sheet: {name}{hidden}]\n")
            _add_rows(workbook, name, output)
            output.add("\n")
    except CalamineError as error:
        raise RefusedError("encrypted" if "password" in str(error).lower() else "failed") from error


def _as_shown(package: zipfile.ZipFile, output: TextCollector, progress: Progress) -> bool:
    """Write the sheets with our own reader, if it supports the format of the package. Return whether it does."""
    if CONTENT in package.NameToInfo:
        _add_open_sheets(package, output, progress)
        return True
    if WORKBOOK not in package.NameToInfo:
        return False
    try:
        workbook = Workbook(package, output)
    except DAMAGE_ERRORS:
        return False
    for index, (name, is_hidden) in enumerate(workbook.sheets):
        progress.report("sheets", index + 1, len(workbook.sheets))
        output.add_marker(f"[sheet: {name}{', hidden' if is_hidden else ''}]\n")
        workbook.add(index)
        output.add("\n")
    return bool(workbook.sheets)


def _add_open_sheets(package: zipfile.ZipFile, output: TextCollector, progress: Progress) -> None:
    if b"encryption-data" in b"".join(entry_blocks(package, MANIFEST) if MANIFEST in package.NameToInfo else ()):
        raise RefusedError("encrypted")
    try:
        total = sum(block.count(b"<table:table ") for block in timed_blocks(package, CONTENT, output))
        sheets = OpenSheets(output, progress, total)
        read_xml(timed_blocks(package, CONTENT, output), sheets.start, sheets.end, sheets.text)
    except DAMAGE_ERRORS:
        if not output.has_words:
            raise RefusedError("failed") from None
        output.add(UNREADABLE)


def _refuse_bombs(source: BinaryIO) -> None:
    if zipfile.is_zipfile(source):
        source.seek(0)
        if sum(entry.file_size for entry in open_zip(source).infolist()) > MAX_UNPACKED_BYTES:
            raise RefusedError("too_large")
    source.seek(0)


def _add_rows(workbook: CalamineWorkbook, name: str, output: TextCollector) -> None:
    # A sheet that contains only a chart has no rows to read.
    try:
        sheet = workbook.get_sheet_by_name(name)
    except CalamineError:
        output.add("[this sheet could not be read]\n")
        return
    for row in sheet.iter_rows():
        line = "\t".join(map(cell_text, row)).rstrip("\t")
        if line:
            output.add(f"{line}\n")


def cell_text(value: Value) -> str:
    """Return a cell value as text: dates in ISO 8601, integers without decimal point, durations as `h:mm:ss`."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    if isinstance(value, dt.timedelta):
        seconds = round(value.total_seconds())
        return f"{'-' * (seconds < 0)}{abs(seconds) // 3600}:{abs(seconds) // 60 % 60:02}:{abs(seconds) % 60:02}"
    if isinstance(value, str):
        return " ".join(value.split())
    return str(value)
