"""Facts planted in office documents and books are found in the extracted text."""

from __future__ import annotations

import io

import pytest
from samples import zip_of

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

PLANTED = (
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
