"""Text is extracted from documents, presentations and notebooks, including text outside the body."""

from __future__ import annotations

import json

import pytest
from made_samples import FILES
from samples import TYPES, W, build_zip, notebook, pptx, relations_xml

from artifacts.core.detection.detector import BinaryDetector
from artifacts.core.detection.extensions import OOXML
from artifacts.extract.process import run
from capabilities.core.message import Text

DOCX, PPTX = f"{OOXML}wordprocessingml.document", f"{OOXML}presentationml.presentation"
IPYNB = "application/x-ipynb+json"


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def build_word_document(body: str, **parts: str) -> bytes:
    """Build a Word package. Each part is the content of `word/<name>.xml`."""
    inside = {"document": f"<w:body>{body}</w:body>", **parts}
    entries = {
        f"word/{name}.xml": f'<w:{name} xmlns:w="{W}" xmlns:mc="urn:mc">{xml}</w:{name}>'.encode()
        for name, xml in inside.items()
    }
    return build_zip({"[Content_Types].xml": TYPES, **entries})


STYLES = (
    '<w:style w:styleId="1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="Own"><w:name w:val="My own"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>'
)


def test_headings_are_marked_with_their_level(read) -> None:
    """In Chinese versions of Word, the heading style's id is `1`."""
    body = (
        paragraph("One", '<w:pStyle w:val="1"/>')
        + paragraph("words")
        + paragraph("Three", '<w:pStyle w:val="Own"/>')
        + paragraph("Two", '<w:outlineLvl w:val="1"/>')
    )
    assert read(build_word_document(body, styles=STYLES), DOCX) == Text("# One\nwords\n### Three\n## Two", "docx")


def test_page_headers_and_footers_appear_once(read) -> None:
    """If the first page has its own header with the same text, that text is not repeated."""
    margin = paragraph("Secret plan")
    extracted = read(
        build_word_document(paragraph("Body"), header1=margin, header2=margin, footer1=paragraph("Page 1")), DOCX
    )
    assert extracted == Text("[header]\nSecret plan\n\nBody\n[footer]\nPage 1", "docx")


def test_text_of_a_drawing_appears_once(read) -> None:
    """Word adds a copy of a drawing's text for older programs."""
    alternatives = f"<mc:AlternateContent><mc:Choice>{paragraph('Box')}</mc:Choice><mc:Fallback>{paragraph('Box')}"
    assert read(build_word_document(f"{alternatives}</mc:Fallback></mc:AlternateContent>"), DOCX) == Text("Box", "docx")


def slide(text: str) -> bytes:
    return f'<p:sld xmlns:p="urn:p" xmlns:a="urn:a"><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>'.encode()


def build_presentation() -> bytes:
    order = '<p:p xmlns:p="urn:p" xmlns:r="urn:r"><p:sldId id="256" r:id="b"/><p:sldId id="257" r:id="a"/></p:p>'
    number = "<a:fld type='slidenum'><a:t>7</a:t></a:fld>"
    notes = f'<p:notes xmlns:p="urn:p" xmlns:a="urn:a"><a:p><a:r><a:t>Smile</a:t></a:r>{number}</a:p></p:notes>'
    slides = {"a": ("slide", "slides/slide1.xml"), "b": ("slide", "slides/slide2.xml")}
    return build_zip(
        {
            "[Content_Types].xml": TYPES,
            "ppt/presentation.xml": order.encode(),
            "ppt/_rels/presentation.xml.rels": relations_xml(slides),
            "ppt/slides/slide1.xml": slide("Last"),
            "ppt/slides/slide2.xml": slide("First"),
            "ppt/slides/_rels/slide1.xml.rels": relations_xml({"n": ("notesSlide", "../notesSlides/notesSlide1.xml")}),
            "ppt/notesSlides/notesSlide1.xml": notes.encode(),
        }
    )


def test_slides_and_notes_are_in_presentation_order(read) -> None:
    expected = "[slide 1]\nFirst\n\n[slide 2]\nLast\n[notes of slide 2]\nSmile"
    assert read(build_presentation(), PPTX) == Text(expected, "pptx")


def test_notebook_cells_are_marked_with_output_and_errors(read) -> None:
    expected = "[markdown 1]\n# Title\n\n[code 2]\nprint(1)\n1/0\n[output 2]\n1\n\nZeroDivisionError: division by zero"
    assert read(notebook(), IPYNB) == Text(expected, "ipynb")


@pytest.mark.parametrize(
    "data",
    [b"[" * 100_000, b'{"a": 1}', json.dumps({"nbformat": 4, "cells": [1, {"outputs": {"a": 1}}, None]}).encode()],
    ids=["deep nesting", "other json", "cells of nothing"],
)
def test_invalid_notebook_yields_none(read, data: bytes) -> None:
    assert read(data, IPYNB) is None


def test_presentation_without_text_yields_none(read) -> None:
    """The model receives the file's name, type and size instead of a list of empty slides."""
    assert read(pptx("", ""), PPTX) is None


@pytest.mark.parametrize(
    ("name", "reader"), [("locked.docx", "docx"), ("locked.docx", "pptx"), ("locked.xlsx", "xlsx")]
)
def test_encrypted_office_file_is_reported(name: str, reader: str) -> None:
    """An encrypted Office file is a compound file without the original parts, so its type depends on its name."""
    result = run(FILES / name, "text", {"reader": reader, "max_chars": 100}, max_output=4096)
    assert result.reason == "encrypted"
    data = (FILES / name).read_bytes()
    assert not BinaryDetector().detect(data, filename=name).mismatch
    assert BinaryDetector().detect(data, filename="a.pdf").mismatch
