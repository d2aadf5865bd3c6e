"""Links in documents lead to existing files and headings, the index lists all pages, and lines are short enough."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *PAGES, ROOT / "templates" / "components" / "README.md"]
INDEX = ROOT / "docs" / "README.md"
MAX_COLUMNS = 120

LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def document_name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def anchors_in(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub generates them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(text: str, document: Path) -> Iterator[str]:
    """Yield a document's links to files or headings that do not exist."""
    for link in LINK.findall(FENCE.sub("", text)):
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if not target.exists() or (anchor and anchor not in anchors_in(target.read_text("utf-8") if name else text)):
            yield link


def long_lines(text: str) -> list[str]:
    """Return the lines that exceed the limit, except in tables and code blocks."""
    lines = FENCE.sub("", text).splitlines()
    return [line for line in lines if len(line) > MAX_COLUMNS and not line.startswith("|")]


def pages_missing_from_index(index: str) -> list[str]:
    """Return the pages in docs/ to which the index does not link. The runbook's pages have their own index."""
    linked = {(INDEX.parent / link).resolve() for link in LINK.findall(index)}
    pages = [page for page in PAGES if page != INDEX and (page.parent.name != "runbook" or page.name == "README.md")]
    return [document_name(page) for page in pages if page not in linked]


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_name)
def test_every_link_in_a_document_has_an_existing_file_and_heading(document: Path) -> None:
    assert list(broken_links(document.read_text("utf-8"), document)) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_name)
def test_lines_of_a_document_are_short_enough(document: Path) -> None:
    assert long_lines(document.read_text("utf-8")) == []


def test_document_index_links_every_page() -> None:
    assert pages_missing_from_index(INDEX.read_text("utf-8")) == []


def test_broken_link_long_line_and_unindexed_page_are_found() -> None:
    text = "# One\n[a](attic.md) [b](limits.md#attic) [c](#two) [d](#one)\n```\n[e](attic.md)\n```\n"
    assert list(broken_links(text, INDEX)) == ["attic.md", "limits.md#attic", "#two"]
    assert long_lines("x" * 121 + "\n|" + "x" * 121) == ["x" * 121]
    assert "docs/limits.md" in pages_missing_from_index("[all](files.md)")
