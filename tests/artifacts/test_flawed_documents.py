"""Documents that need a password or cannot be opened are recognized, whichever program encrypted them."""

from __future__ import annotations

import io
import itertools
import struct
import zipfile
from pathlib import Path

import pytest
from compound_files import bare_xls, build_compound_file

from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.extract import inspect
from capabilities.core.message import Inspection

FILES = Path(__file__).parent / "files"
DOC, XLS, PPT = "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"
DOCX, XLSX, ODT = f"{OOXML}wordprocessingml.document", f"{OOXML}spreadsheetml.sheet", f"{ODF}text"
LOCKED, DAMAGED, SOUND = Inspection(locked=True), Inspection(damaged=True), Inspection()


def build_zip(**entries: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as package:
        for name, text in entries.items():
            package.writestr(name.replace("__", "/"), text)
    return data.getvalue()


def build_opendocument(inner: str) -> bytes:
    xml = f"<manifest:manifest><manifest:file-entry>{inner}</manifest:file-entry></manifest:manifest>"
    return build_zip(**{"content.xml": "<x/>", "META-INF__manifest.xml": xml})


def build_word_document(flags: int) -> bytes:
    return build_compound_file({"WordDocument": struct.pack("<5HH", 0xA5EC, 193, 0, 0, 0, flags) + bytes(500)})


def build_workbook(*records: int) -> bytes:
    return build_compound_file({"Workbook": b"".join(struct.pack("<HHI", record, 4, 0) for record in records)})


@pytest.mark.parametrize(
    ("data", "mime", "found"),
    [
        ((FILES / "locked.docx").read_bytes(), DOCX, LOCKED),
        ((FILES / "locked.xlsx").read_bytes(), XLSX, LOCKED),
        ((FILES / "locked.zip").read_bytes(), "application/zip", LOCKED),
        (build_opendocument("<manifest:encryption-data/>"), ODT, LOCKED),
        (build_opendocument(""), ODT, SOUND),
        (build_word_document(0x0100), DOC, LOCKED),
        (build_word_document(0), DOC, SOUND),
        (build_workbook(0x0809, 0x2F), XLS, LOCKED),
        (build_workbook(0x0809, 0x0A), XLS, SOUND),
        (bare_xls(4), XLS, SOUND),
        (bare_xls(3)[:10] + struct.pack("<HHI", 0x2F, 4, 0), XLS, LOCKED),
        (build_compound_file({"Current User": struct.pack("<5I", 0, 0, 0, 0xF3D1C4DF, 8)}), PPT, LOCKED),
        (build_zip(word="x")[:-10], DOCX, DAMAGED),
        (b"PK\x03\x04 torn", DOCX, DAMAGED),
        (b"%PDF-1.7 torn", "application/pdf", DAMAGED),
        (b"not rich", "application/rtf", DAMAGED),
        (b"{\\rtf1 rich}", "application/rtf", SOUND),
        (b"not a film", "video/mp4", SOUND),
    ],
    # Otherwise, pytest would build test ids from the files' bytes, which change because they contain the time of
    # compression.
    ids=itertools.count(),
)
def test_password_protected_or_unopenable_file_is_recognized(
    tmp_path: Path, data: bytes, mime: str, found: Inspection
) -> None:
    (tmp_path / "file").write_bytes(data)
    assert inspect(tmp_path / "file", mime) == found
