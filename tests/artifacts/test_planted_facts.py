"""Facts planted in office documents and books are found in the extracted text."""

from __future__ import annotations

import io
import zipfile

import pytest
from samples import TYPES, W, open_document, relations_of, xlsx, zip_of

from artifacts.extract.documents import answer

CONTAINER = b'<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
PACKAGE = b"""<package xmlns:dc="urn:dc"><metadata><dc:title>The Book</dc:title><dc:creator>Ann Author</dc:creator>
</metadata><manifest><item id="a" href="b.xml"/><item id="b" href="a%20one.xhtml"/><item id="c" href="nav.xhtml"/>
</manifest><spine><itemref idref="a"/><itemref idref="b"/><itemref idref="a"/></spine></package>"""
BOOK = zip_of(
    {
        "META-INF/container.xml": CONTAINER,
        "OPS/book.opf": PACKAGE,
        "OPS/a one.xhtml": b"<p>last</p>",
        "OPS/b.xml": b"<p>first</p>",
        "OPS/nav.xhtml": b"<p>contents</p>",
    }
)

RTF = rb"""{\rtf1\ansi Word{\super 1{\footnote\pard A note.\par}} after
{\upr{ansi}{\*\ud{\u20320?\u22909?}}}\par
\trowd\pard\intbl Ann\par B\cell 12\cell\row\pard End\par}"""

NUMBERING = """<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="3"><w:abstractNumId w:val="0"/></w:num>"""
DOCUMENT = """<w:p><w:hyperlink r:id="x"><w:r><w:t>the </w:t></w:r><w:r><w:t>terms</w:t></w:r></w:hyperlink></w:p>
<w:p><w:r><w:drawing><wp:docPr descr="Revenue rises"/><pic:cNvPr descr="Revenue rises"/></w:drawing>
<w:t>seen</w:t></w:r></w:p>
<w:p><m:f><m:num><m:r><m:t>a+1</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></w:p>
<w:p><w:r><w:t>noted</w:t><w:footnoteReference w:id="2"/></w:r></w:p>"""


def item(text: str, level: int) -> str:
    number = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="3"/></w:numPr>'
    return f"<w:p><w:pPr>{number}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def part(name: str, xml: str) -> bytes:
    spaces = f'xmlns:w="{W}" xmlns:r="urn:r" xmlns:wp="urn:wp" xmlns:pic="urn:pic" xmlns:m="urn:m"'
    return f"<w:{name} {spaces}>{xml}</w:{name}>".encode()


def links_of(address: str) -> bytes:
    return relations_of({"x": ("hyperlink", address)}).replace(b"Target=", b'TargetMode="External" Target=')


DOCX = zip_of(
    {
        "[Content_Types].xml": TYPES,
        "word/document.xml": part("document", DOCUMENT + item("one", 0) + item("deep", 1) + item("two", 0)),
        "word/numbering.xml": part("numbering", NUMBERING),
        "word/_rels/document.xml.rels": links_of("https://example.org/"),
        "word/footnotes.xml": part(
            "footnotes", '<w:footnote w:id="2"><w:p><w:r><w:t>A note</w:t></w:r></w:p></w:footnote>'
        ),
        "word/comments.xml": part(
            "comments", '<w:comment w:author="Ann" w:id="1"><w:p><w:r><w:t>Why</w:t></w:r></w:p></w:comment>'
        ),
    }
)

SLIDE = """<p:sld xmlns:p="urn:p" xmlns:a="urn:a" xmlns:r="urn:r"><p:pic><p:cNvPr id="1" descr="Revenue rises"/></p:pic>
<a:p><a:r><a:rPr><a:hlinkClick r:id="x"/></a:rPr><a:t>terms</a:t></a:r></a:p></p:sld>"""
CHART = """<c:chartSpace xmlns:c="urn:c" xmlns:a="urn:a"><c:title><a:t>Sales</a:t></c:title><c:ser>
<c:tx><c:pt idx="0"><c:v>North</c:v></c:pt></c:tx>
<c:cat><c:pt idx="0"><c:v>Q1</c:v></c:pt><c:pt idx="1"><c:v>Q2</c:v></c:pt></c:cat>
<c:val><c:pt idx="0"><c:v>12</c:v></c:pt><c:pt idx="1"><c:v>13.5</c:v></c:pt></c:val></c:ser></c:chartSpace>"""
PPTX = zip_of(
    {
        "[Content_Types].xml": TYPES,
        "ppt/slides/slide1.xml": SLIDE.encode(),
        "ppt/slides/_rels/slide1.xml.rels": links_of("https://example.org/").replace(
            b"</Relationships>",
            b'<Relationship Id="c" Type="urn:r/chart" Target="../charts/chart1.xml"/></Relationships>',
        ),
        "ppt/charts/chart1.xml": CHART.encode(),
    }
)

ODT = open_document(
    "text",
    '<text:h text:outline-level="2">Beta</text:h>'
    '<text:p>See <text:a xmlns:xlink="urn:x" xlink:href="https://example.org/">terms</text:a><text:note>'
    "<text:note-body><text:p>A note</text:p></text:note-body></text:note> after</text:p>"
    "<text:p><draw:frame><draw:image/><svg:desc xmlns:svg='urn:s'>Revenue rises</svg:desc></draw:frame></text:p>"
    "<text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>deep</text:p>"
    "</text:list-item></text:list></text:list-item></text:list>",
)

STARRED = rb"{\rtf1 Word{\super\chftn}{\*\footnote\chftn A note.} after}"

HIDDEN = xlsx({"Open": [["seen"]], "Secret": [["kept"]]}, hidden="Secret")

NOTED = zip_of(
    {name: package.read(name) for package in (zipfile.ZipFile(io.BytesIO(HIDDEN)),) for name in package.namelist()}
    | {
        "xl/worksheets/sheet1.xml": b"""<worksheet xmlns:r="urn:r"><sheetData><row r="1"><c r="A1"><v>7</v></c></row>
</sheetData><hyperlinks><hyperlink ref="A1" r:id="x"/></hyperlinks></worksheet>""",
        "xl/worksheets/_rels/sheet1.xml.rels": links_of("https://example.org/").replace(
            b"</Relationships>",
            b'<Relationship Id="c" Type="urn:r/comments" Target="../comments1.xml"/></Relationships>',
        ),
        "xl/comments1.xml": b"""<comments><authors><author>Ann</author></authors><commentList><comment ref="A1">
<text><r><t>Check</t></r></text></comment></commentList></comments>""",
    }
)

PLANTED = (
    ("xlsx", NOTED, "target of a link", "7\n[link at A1: https://example.org/]\n"),
    ("xlsx", NOTED, "comment", "[comment at A1: Check]\n"),
    ("xlsx", HIDDEN, "hidden sheet", "[sheet: Open]\nseen\n\n[sheet: Secret, hidden]\nkept"),
    ("rtf", STARRED, "footnote after a star", "Word[footnote: A note.] after"),
    ("docx", DOCX, "target of a link", "[the terms](https://example.org/)"),
    ("docx", DOCX, "alternative text", "\n[image: Revenue rises] seen"),
    ("docx", DOCX, "fraction", "(a+1)/(b)"),
    ("docx", DOCX, "numbered list with bullets inside", "1. one\n  - deep\n2. two\n"),
    ("docx", DOCX, "place of a footnote", "noted[^2]\n"),
    ("docx", DOCX, "footnote", "[^2] A note\n"),
    ("docx", DOCX, "author of a comment", "Ann: Why"),
    ("pptx", PPTX, "alternative text", "[image: Revenue rises]\n"),
    ("pptx", PPTX, "target of a link", "[terms](https://example.org/)\n"),
    ("pptx", PPTX, "data of a chart", "[chart on slide 1]\nSales\nNorth\tQ1\t12\nNorth\tQ2\t13.5"),
    ("odt", ODT, "heading", "## Beta\n"),
    ("odt", ODT, "target of a link and footnote", "See [terms](https://example.org/)[footnote: A note ] after\n"),
    ("odt", ODT, "alternative text", "[image: Revenue rises]\n"),
    ("odt", ODT, "nested list", "- one\n  - deep"),
    ("epub", BOOK, "title and author", "The Book\nAnn Author\n\n"),
    ("epub", BOOK, "order of the spine, any extension", "[chapter 1]\nfirst\n\n[chapter 2]\nlast"),
    ("rtf", RTF, "footnote", "[footnote: A note.\n] after"),
    ("rtf", RTF, "text that is there in Unicode, too", "after你好\n"),
    ("rtf", RTF, "row of a table with paragraphs in a cell", "\nAnn B\t12\nEnd"),
)
"""Reader, content, fact, and the text in which it is found."""


@pytest.mark.parametrize(("reader", "data", "fact", "expected"), PLANTED, ids=[f"{r[0]}: {r[2]}" for r in PLANTED])
def test_planted_office_fact_is_found(reader: str, data: bytes, fact: str, expected: str) -> None:
    _, text = answer(io.BytesIO(data), {"reader": reader, "max_chars": 100_000})
    assert expected in text.decode()
