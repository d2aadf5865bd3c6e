"""Text is extracted from RTF files and from Office documents in the formats before 2007."""

from __future__ import annotations

import struct

import pytest
from compound_files import build_compound_file, doc, ppt

from capabilities.core.message import Text

RTF, DOC, PPT = "application/rtf", "application/msword", "application/vnd.ms-powerpoint"


RICH = (
    rb"{\rtf1\ansi\ansicpg1252\uc1{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset134 SimSun;}}{\colortbl;\red0;}"
    rb"{\*\generator Someone;}{\info{\title No text}}\f0 Caf\'e9\tab\u8212?done\par "
    rb"{\f1 \'c4\'e3\'ba\'c3}\line {\field{\*\fldinst HYPERLINK x}{\fldrslt link}}\par "
    rb"\u-10179?\u-8704? {\pict\bin4 }}}{}\{braces\}}"
)


def test_rtf_code_pages_and_unicode_escapes_are_decoded(read) -> None:
    assert read(RICH, RTF) == Text("Café\t—done\n你好\n[link](x)\n😀 {braces}", "rtf")


def test_word_97_document_is_read_by_its_piece_table(read) -> None:
    """A Word 97 document consists of pieces with one or two bytes per character."""
    link = "\x13HYPERLINK x\x14link\x15, \x13IF \x13PAGE\x141\x15 = 1\x14yes\x15"
    text = f"标题\rsee {link} caf\xe9\ra\x07b\x07\r"
    assert read(doc(text, "note\r"), DOC) == Text("标题\nsee [link](x), yes café\na\tb\n\n[footnotes]\nnote", "doc")


def test_presentation_before_2007_has_the_text_of_its_latest_edit(read) -> None:
    assert read(ppt("标题", "Box"), PPT) == Text("[slide 1]\n标题\nBox", "ppt")


USER = struct.pack("<5I", 0, 0, 0, 0xE391C05F, 8)


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"{\\rtf1" + b"{" * 1_000_000, RTF),
        (b"no rtf", RTF),
        (doc("x" * 40, version=104), DOC),
        (doc("x" * 40, flags=0x300), DOC),
        (doc("x" * 40)[:2000], DOC),
        (build_compound_file({"WordDocument": b"\xff" * 5000, "1Table": b"\xff" * 5000}), DOC),
        (ppt("a", "b", token=0xF3D1C4DF), PPT),
        (
            build_compound_file({"PowerPoint Document": b"\xff" * 9000, "Current User": USER}),
            PPT,
        ),
        (build_compound_file({"Current User": b""}), PPT),
    ],
    ids=["deep braces", "no rtf", "Word 95", "encrypted", "cut", "all ones", "locked", "wild numbers", "empty"],
)
def test_damaged_encrypted_or_too_old_file_yields_none(read, data: bytes, mime: str) -> None:
    assert read(data, mime) is None


def test_cyclic_chain_of_edits_is_followed_once(read) -> None:
    data = bytearray(ppt("Title", "Box"))
    edit = data.rindex(struct.pack("<HI", 0xFF5, 28)) - 2
    struct.pack_into("<I", data, edit + 16, edit - 512)
    extracted = read(bytes(data), PPT)
    assert extracted is None or "Title" in extracted.text
