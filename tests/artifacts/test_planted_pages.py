"""Facts planted in web pages, PDF files, mail and notebooks are found in the extracted text."""

from __future__ import annotations

import io
import json
import struct
from email.message import EmailMessage
from functools import cache
from itertools import pairwise

import pytest
from compound_files import build_compound_file, msg_properties

from artifacts.extract.documents import answer

HTML = "html"

PAGE = """<!DOCTYPE html><title>Report</title><h1>Alpha</h1><h2>Beta</h2>
<p>See <a href="https://example.org/terms">the terms</a> now, or <a href="#top">go up</a>.
<p><a href="/card"><h3>Card</h3></a>
<img src=c.png alt="Revenue rises">
<pre>
def f(x):
    if x:
        return  1
</pre>
<ol><li>first<li>second<ul><li>deep</ul></ol>
<table><tr><th>Name<th>Sum<tr><td><p>Ann</p><td><p>12</p><tr><td><td>13<tr><td colspan=2>all<td>end
<tr><td rowspan=3>Both<td>one<td>1<tr><td>two<td rowspan=2>2<tr><td>three<td>x
<tr><td><table><tr><td>in</table><td>out</table>
<p>10<sup>3</sup> <del>old</del> soft&shy;hyphen
<form><input name=city value=Oslo><input type=checkbox checked> agree <input type=hidden value=SECRET>
<select><option>One<option selected>Two</select></form>
<blockquote>quoted<br>words</blockquote>
<p>is <span class=katex><math><semantics><mfrac><mi>p</mi><mi>q</mi></mfrac><annotation>\\frac pq</annotation>
</semantics></math><span class=katex-html>pq</span></span> here
<math><mi>open<p>after</p>
<p hidden>unseen<p>seen<div style="display: none">unseen <b>too</b></div><![if x]><![<!["""


def mail(subject: str, *, plain: str = "", html: str = "") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["Subject"] = "Ann <ann@example.com>", subject
    message.set_content(plain)
    if html:
        message.add_alternative(html, subtype="html")
    return message


def forwarding_mail() -> bytes:
    message, inner = mail("Outer", plain="\n", html='<p>See <a href="https://example.org/">this</a>'), mail("Inner")
    inner.set_content("inner words")
    inner.add_attachment(b"z", maintype="application", subtype="pdf", filename="inner.pdf")
    message.add_attachment(inner)
    footer = EmailMessage()
    footer.set_content("the list's footer")
    message.attach(footer)
    return bytes(message)


def outlook_mail() -> bytes:
    page = struct.pack("<HHIQ", 3, 0x3FFD, 6, 1251)

    def text(**values: str) -> dict[str, bytes]:
        return {f"__substg1.0_{number[1:]}001E": value.encode("cp1251") for number, value in values.items()}

    inner = {"__properties_version1.0": bytes(24) + page, **text(p0037="Тема", p1000="Внутри")}
    recipient = {
        "__properties_version1.0": bytes(8) + struct.pack("<HHIQ", 3, 0x0C15, 6, 1),
        **text(p3001="Борис", p39FE="boris@example.com"),
    }
    return build_compound_file(
        {
            "__properties_version1.0": msg_properties(0) + page,
            **text(p0037="План", p0C1A="Анна", p1000="Привет"),
            "__recip_version1.0_#00000000": recipient,
            "__attach_version1.0_#00000000": {
                "__properties_version1.0": bytes(8),
                **text(p3707="отчёт.txt"),
                "__substg1.0_37010102": b"abc",
            },
            "__attach_version1.0_#00000001": {"__properties_version1.0": bytes(8), "__substg1.0_3701000D": inner},
        }
    )


def notebook() -> bytes:
    error = {
        "output_type": "error",
        "ename": "KeyError",
        "evalue": "'x'",
        "traceback": ["\x1b[31mTraceback\x1b[0m", "Cell In[1], line 3", "KeyError: 'x'"],
    }
    long_output = {"output_type": "stream", "text": ["step\n"] * 9_000 + ["the end\n"]}
    shown = {"output_type": "display_data", "data": {"text/markdown": ["**bold**"]}}
    cells = [
        {"cell_type": "code", "source": "a[x]", "outputs": [error]},
        {"cell_type": "code", "source": "b", "outputs": [long_output]},
        {"cell_type": "code", "source": "c", "outputs": [shown]},
    ]
    return json.dumps({"nbformat": 4, "cells": cells}).encode()


def draw_table(left: int, top: int, *rows: str) -> str:
    return "".join(
        f"1 0 0 1 {left + 90 * column} {top - 14 * line} Tm ({text}) Tj\n"
        for line, row in enumerate(rows)
        for column, text in enumerate(row.split("|"))
        if text
    )


def build_pdf(content: str, *objects: str, page: str = "", catalog: str = "") -> bytes:
    """Build a one-page PDF whose objects are not at the offsets in its cross-reference table."""
    stream = f"BT /F 10 Tf {content} ET"
    bodies = (
        f"<</Type/Catalog/Pages 2 0 R{catalog}>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R{page}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
        *objects,
    )
    written = "".join(f"{number} 0 obj\n{body}\nendobj\n" for number, body in enumerate(bodies, 1))
    xref = "xref\n0 3\n" + "0000000007 00000 n \n" * 3
    return f"%PDF-1.7\n{written}{xref}trailer\n<</Root 1 0 R/Size 9>>\nstartxref\n5\n%%EOF".encode()


def form_field(name: str, kind: str, more: str) -> str:
    return f"<</Type/Annot/Subtype/Widget/Rect[90 700 190 720]/FT/{kind}/T({name}){more}>>"


TABLE = build_pdf(
    "1 0 0 1 50 770 Tm (Words before) Tj " + draw_table(50, 700, "Name|Spring|Autumn|Note", "Ann|12||good", "|1|2|")
)
FORM = build_pdf(
    "1 0 0 1 50 770 Tm (Your city:) Tj",
    form_field("city", "Tx", "/V(Oslo)"),
    form_field("agree", "Btn", "/V/Yes/AS/Yes/AP<</N<</Yes 5 0 R/Off 5 0 R>>>>"),
    form_field("pin", "Tx", "/Ff 8192/V(SECRET)"),
    form_field("size", "Ch", "/Ff 131072/Opt[(Small)(Large)]/V(Large)"),
    page="/Annots[6 0 R 7 0 R 8 0 R 9 0 R]",
    catalog="/AcroForm<</Fields[6 0 R 7 0 R 8 0 R 9 0 R]>>",
)


def draw_lines(xs: tuple[int, ...], ys: tuple[int, ...], as_boxes: bool = False) -> str:
    """Draw a table's lines, or a box for each of its cells, between two texts."""
    if as_boxes:
        boxes = (f"{x} {y} {right - x} {top - y} re S" for x, right in pairwise(xs) for y, top in pairwise(ys))
        return f"ET {' '.join(boxes)} BT /F 10 Tf "
    down = (f"{x} {ys[0]} m {x} {ys[-1]} l S" for x in xs)
    across = (f"{xs[0]} {y} {xs[-1] - xs[0]} 1 re f" for y in ys)
    return f"ET {' '.join((*down, *across))} BT /F 10 Tf "


def draw_texts(*texts: tuple[int, int, str]) -> str:
    return "".join(f"1 0 0 1 {x} {y} Tm ({text}) Tj\n" for x, y, text in texts)


RULED_TEXTS = draw_texts(
    *((52, 706, "Item name"), (102, 706, "Price"), (152, 706, "Note")),
    *(
        (52, 690, "Lamp"),
        (102, 690, "twelve"),
        (102, 678, "and a half"),
        (52, 662, "Chair"),
        (152, 662, "two"),
        (152, 650, "left"),
    ),
    (50, 600, "Words after"),
)
RULED = build_pdf(draw_lines((50, 100, 150, 200), (644, 674, 702, 718)) + RULED_TEXTS)
BOXED = build_pdf(draw_lines((50, 100, 150, 200), (644, 674, 702, 718), as_boxes=True) + RULED_TEXTS)
HEADED = build_pdf(
    draw_lines((50, 100, 150), (640, 702, 718))
    + draw_texts(*((x, 706 - 16 * row, f"r{row}c{x}") for row in range(4) for x in (52, 102)))
)
FRAMED = build_pdf(
    draw_lines((50, 300), (640, 702, 718)) + draw_texts((52, 690, "Words in a box"), (52, 678, "of several lines"))
)
HYPHENATED = build_pdf(
    draw_texts(
        *(
            (50, 700 - 12 * row, line)
            for row, line in enumerate(
                (
                    "It is dan-",
                    "gerous for Jean-",
                    "Paul: state-of-",
                    "the-art space, never",
                    "separated, or space-",
                    "separated.",
                )
            )
        )
    )
)
NARROW = build_pdf(
    draw_texts(*((50 + 8 * at, 770, letter) for at, letter in enumerate("HEAD")))
    + draw_texts(*((300, 760 - 9 * row, f"entry{row}") for row in range(80)))
)
NOTED = build_pdf(
    "1 0 0 1 50 700 Tm (See the terms and) Tj 1 0 0 1 50 686 Tm (conditions.) Tj",
    "<</Type/Annot/Subtype/Link/Rect[70 697 140 710]/A<</S/URI/URI(https://example.org/terms)>>>>",
    "<</Type/Annot/Subtype/Link/Rect[50 683 120 696]/A<</S/URI/URI(https://example.org/terms)>>>>",
    "<</Type/Annot/Subtype/Text/Rect[0 0 9 9]/Contents(Which ones?)/T(Ann)>>",
    form_field("agency", "Tx", "/V(Parks)"),
    form_field("pin", "Tx", "/Ff 8192/V(SECRET)"),
    page="/Annots[6 0 R 7 0 R 8 0 R 9 0 R 10 0 R]",
)
EML, MSG, NOTEBOOK = forwarding_mail(), outlook_mail(), notebook()

PLANTED = (
    (HTML, PAGE, "title", "Report\n"),
    (HTML, PAGE, "heading", "\n# Alpha\n## Beta\n"),
    (HTML, PAGE, "link", "See [the terms](https://example.org/terms) now, or go up."),
    (HTML, PAGE, "link around a heading", "\n### [Card](/card)\n"),
    (HTML, PAGE, "alternative text", "[image: Revenue rises]"),
    (HTML, PAGE, "preformatted text", "\ndef f(x):\n    if x:\n        return  1\n1."),
    (HTML, PAGE, "numbered and nested list", "1. first\n2. second\n  - deep\n"),
    (HTML, PAGE, "table rows with an empty cell", "Name\tSum\nAnn\t12\n\t13\nall\t\tend\n"),
    (HTML, PAGE, "cells over several rows", "Both\tone\t1\n\ttwo\t2\n\tthree\t\tx\n"),
    (HTML, PAGE, "cell after a table in a cell", "in\tout\n"),
    (HTML, PAGE, "exponent and struck out text", "10^3 ~~old~~ softhyphen"),
    (HTML, PAGE, "form", "Oslo [x] agree [ ] One [x] Two\n"),
    (HTML, PAGE, "formula, once", "is (p)/(q) here"),
    (HTML, PAGE, "what follows a formula that is not closed", "open\nafter\n"),
    (HTML, PAGE, "quotation", "> quoted\n> words\nis"),
    (HTML, PAGE, "last visible text", "seen"),
    ("eml", EML, "HTML body beside an empty one", "Subject: Outer\n\nSee [this](https://example.org/)\n"),
    ("eml", EML, "second text", "the list's footer"),
    ("eml", EML, "forwarded mail", "\n\n[attached message: Inner]\nFrom: Ann <ann@example.com>\nSubject: Inner\n\n"),
    (
        "eml",
        EML,
        "text and attachment of it",
        "inner words\n\n[attachments]\n1. inner.pdf (application/pdf, 1 bytes)\n",
    ),
    ("msg", MSG, "its code page", "From: Анна\nTo: Борис <boris@example.com>\nSubject: План\n\nПривет\n"),
    ("msg", MSG, "name of an attachment", "1. отчёт.txt (3 bytes)\n2. Тема (application/vnd.ms-outlook)\n"),
    ("msg", MSG, "attached message", "[attached message: Тема]\nSubject: Тема\n\nВнутри\n"),
    ("pdf", TABLE, "text despite wrong cross references", "[page 1]\nWords before\n"),
    ("pdf", TABLE, "rows with empty cells", "Name\tSpring\tAutumn\tNote\nAnn\t12\t\tgood\n\t1\t2\n"),
    ("pdf", RULED, "cells of several lines", "Item name\tPrice\tNote\nLamp\ttwelve and a half\n"),
    ("pdf", RULED, "empty cell between drawn lines", "Chair\t\ttwo left\nWords after\n"),
    ("pdf", BOXED, "cells drawn as boxes", "Lamp\ttwelve and a half\nChair\t\ttwo left\n"),
    ("pdf", HEADED, "rows without lines between them", "r0c52\tr0c102\nr1c52\tr1c102\nr2c52\tr2c102\nr3c52\tr3c102\n"),
    ("pdf", FRAMED, "words in a frame", "Words in a box\nof several lines\n"),
    (
        "pdf",
        HYPHENATED,
        "words parted at the ends of lines",
        "It is dangerous for Jean-Paul: state-of-the-art space, never\nseparated, or space-separated.\n",
    ),
    ("pdf", NARROW, "line above a column that looks like vertical writing", "[page 1]\nHEAD\nentry0\nentry1\n"),
    ("pdf", NOTED, "link over two lines", "[links]\n[the terms and conditions.](https://example.org/terms)\n"),
    ("pdf", NOTED, "comment with its author", "[comments]\nAnn: Which ones?\n"),
    ("pdf", NOTED, "field on a page cut out of a form", "[form]\nagency: Parks\n"),
    ("pdf", FORM, "form", "Your city:\n\n[form]\ncity: Oslo\n[x] agree\nsize: Large\n"),
    ("ipynb", NOTEBOOK, "traceback", "[output 1]\nTraceback\nCell In[1], line 3\nKeyError: 'x'\n\n"),
    ("ipynb", NOTEBOOK, "end of a long output", "…\n"),
    ("ipynb", NOTEBOOK, "last line of it", "step\nthe end\n"),
    ("ipynb", NOTEBOOK, "output in Markdown", "[output 3]\n**bold**\n"),
)
"""Each row has a reader, a file's content, the planted fact, and the text in which the fact is found."""


@cache
def read_in_process(reader: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    _, text = answer(io.BytesIO(data), {"reader": reader, "max_chars": 100_000})
    return text.decode()


@pytest.mark.parametrize(("reader", "content", "fact", "expected"), PLANTED, ids=[f"{r[0]}: {r[2]}" for r in PLANTED])
def test_text_planted_in_a_page_mail_or_notebook_is_extracted(
    reader: str, content: str | bytes, fact: str, expected: str
) -> None:
    assert expected in f"{read_in_process(reader, content)}\n"


def test_text_hidden_by_a_browser_is_omitted() -> None:
    """A browser shows neither hidden elements nor the values of hidden fields."""
    assert "unseen" not in read_in_process(HTML, PAGE)
    assert "SECRET" not in read_in_process(HTML, PAGE)


def test_password_in_a_form_is_not_read() -> None:
    assert "SECRET" not in read_in_process("pdf", FORM) + read_in_process("pdf", NOTED)


def test_table_with_very_many_cells_is_read_without_columns() -> None:
    """Columns are detected only in the first few thousand table cells of a page."""
    rows = ["a|b|c|d|e|f" for _ in range(2_000)]
    text = read_in_process("pdf", build_pdf(draw_table(50, 700, *rows)))
    assert text.count("a\tb\tc\td\te\tf\n") > 500
    assert text.endswith("a\nb\nc\nd\ne\nf")


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<!--",
        "<div>",
        "<td colspan=99>",
        "<tr><td rowspan=999999 colspan=99>",
        "<a href=x>y",
        "<blockquote>x",
        "<![<![",
        "<math><mfrac>",
    ],
)
def test_unclosed_html_neither_fails_nor_exhausts_the_stack(unit: str) -> None:
    assert read_in_process(HTML, f"<p>Words{unit * (50_000 // len(unit))}").startswith("Words")


def test_image_in_a_formula_does_not_hide_the_following_text() -> None:
    page = "<p>Is <math><mi>x</mi><img></math></p><h1>Title</h1><p>Hello <b>world</b></p>"
    assert read_in_process(HTML, page) == "Is x\n# Title\nHello world"
