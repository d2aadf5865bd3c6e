"""Facts planted in web pages, PDF files, mail and notebooks are found in the extracted text."""

from __future__ import annotations

import io
from functools import cache

import pytest

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
<table><tr><th>Name<th>Sum<tr><td><p>Ann</p><td><p>12</p><tr><td><td>13<tr><td colspan=2>all<td>end</table>
<p>10<sup>3</sup> <del>old</del> soft&shy;hyphen
<form><input name=city value=Oslo><input type=checkbox checked> agree <input type=hidden value=SECRET>
<select><option>One<option selected>Two</select></form>
<blockquote>quoted<br>words</blockquote>
<p hidden>unseen<p>seen<div style="display: none">unseen <b>too</b></div><![if x]><![<!["""

PLANTED = (
    (HTML, PAGE, "title", "Report\n"),
    (HTML, PAGE, "heading", "\n# Alpha\n## Beta\n"),
    (HTML, PAGE, "link", "See [the terms](https://example.org/terms) now, or go up."),
    (HTML, PAGE, "link around a heading", "\n### [Card](/card)\n"),
    (HTML, PAGE, "alternative text", "[image: Revenue rises]"),
    (HTML, PAGE, "preformatted text", "\ndef f(x):\n    if x:\n        return  1\n1."),
    (HTML, PAGE, "numbered and nested list", "1. first\n2. second\n  - deep\n"),
    (HTML, PAGE, "table rows with an empty cell", "Name\tSum\nAnn\t12\n\t13\nall\t\tend\n"),
    (HTML, PAGE, "exponent and struck out text", "10^3 ~~old~~ softhyphen"),
    (HTML, PAGE, "form", "Oslo [x] agree [ ] One [x] Two\n"),
    (HTML, PAGE, "quotation", "> quoted\n> words\nseen"),
    (HTML, PAGE, "last visible text", "seen"),
)
"""Reader, content, fact, and the text in which it is found."""


@cache
def read_here(reader: str, content: str | bytes) -> str:
    """Return the text of a document, which is read in this process."""
    data = content.encode() if isinstance(content, str) else content
    _, text = answer(io.BytesIO(data), {"reader": reader, "max_chars": 100_000})
    return text.decode()


@pytest.mark.parametrize(("reader", "content", "fact", "expected"), PLANTED, ids=[f"{r[0]}: {r[2]}" for r in PLANTED])
def test_planted_fact_is_found(reader: str, content: str | bytes, fact: str, expected: str) -> None:
    assert expected in f"{read_here(reader, content)}\n"


def test_what_a_browser_hides_is_not_read() -> None:
    """Hidden elements and the values of hidden fields are omitted, since a reader of the page cannot see them."""
    assert "unseen" not in read_here(HTML, PAGE)
    assert "SECRET" not in read_here(HTML, PAGE)


@pytest.mark.parametrize("unit", ["<", "<!--", "<div>", "<td colspan=99>", "<a href=x>y", "<blockquote>x", "<![<!["])
def test_hostile_page_is_read(unit: str) -> None:
    """Unclosed constructs neither fail nor use up the stack."""
    assert read_here(HTML, f"<p>Words{unit * (50_000 // len(unit))}").startswith("Words")
