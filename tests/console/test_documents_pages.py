"""The repository's documents as pages: links, anchors, code, search, and safe rendering of Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from routing_admin.console.docs.markdown import Document, Target, parse
from routing_admin.console.docs.queries import find_document, list_paths, list_sections
from routing_admin.console.docs.rules import document_url
from routing_admin.core.alerts.kinds import KINDS, AlertKind
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ROOT = Path(__file__).parents[2]
PAGES = [(document_url(path), document) for name, path in list_paths().items() if (document := find_document(name))]
CODE = re.compile(r"<(code|pre)\b.*?</\1>", re.DOTALL)


def parse_markdown(text: str) -> Document:
    pages = {"limits.md": Target("/docs/limits/", "Limits, budgets and load")}
    return parse(text, lambda link: pages.get(link, Target(link) if ":" in link else None))


def test_every_document_has_a_page() -> None:
    """The index is docs/README.md, and a folder's page is its README."""
    files = [file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.md")]
    assert sorted(list_paths().values()) == sorted(files)
    assert document_url("docs/README.md") == "/docs/"
    assert document_url("docs/runbook/README.md") == "/docs/runbook/"
    assert document_url("docs/runbook/disk-full.md#fix-it") == "/docs/runbook/disk-full/#fix-it"


@pytest.mark.parametrize(("url", "document"), PAGES, ids=lambda value: value if isinstance(value, str) else "")
def test_every_document_link_targets_an_existing_page_and_heading(url: str, document: Document) -> None:
    anchors = {page: set(re.findall(r'id="([^"]+)"', other.html)) for page, other in PAGES}
    for href in re.findall(r'<a href="([^"]+)"', document.html):
        page, _, anchor = href.partition("#")
        if not page.startswith("https://") and page != reverse("agents-api:openapi-view"):
            assert (page or url) in anchors, href
            assert not anchor or anchor in anchors[page or url], href


@pytest.mark.parametrize(("url", "document"), PAGES, ids=lambda value: value if isinstance(value, str) else "")
def test_documents_show_no_raw_markup_and_have_no_inline_style(url: str, document: Document) -> None:
    """HTML outside code would be shown as text, so no document may contain any. Comments are not shown."""
    prose = CODE.sub("", document.html)
    assert document.title
    assert "&lt;" not in prose
    assert not re.search(r"<[^>]* style=", document.html)
    assert "<img" not in document.html


def test_documentation_index_links_to_the_api_reference(viewer: Client) -> None:
    link = Page(viewer.get(reverse("documents"))).link("API reference")
    assert link
    assert viewer.get(link.attributes["href"]).status_code == 200


def test_raw_html_in_a_document_is_shown_as_text() -> None:
    html = parse_markdown("# A\n\n<script>alert(1)</script>\n\n[a](javascript:alert(1)) <b onclick=x>b</b>").html
    assert "<script" not in html
    assert "<b " not in html
    assert "href" not in html


def test_links_to_pages_and_websites_are_kept_and_other_document_links_become_text() -> None:
    assert (
        '<a href="/docs/limits/">Limits, budgets and load</a> (a.md)'
        in parse_markdown("[limits.md](limits.md) (a.md)").html
    )
    html = parse_markdown("[limits](limits.md) [code](../manage.py) [site](https://example.org/)").html
    assert '<a href="/docs/limits/">limits</a> code <a href="https://example.org/" rel="noreferrer">site</a>' in html


def test_headings_have_github_anchors_and_the_title_is_separate() -> None:
    document = parse_markdown("# Title\n\nIntro.\n\n## Fix `it`, now\n\na\n\n### Deep\n\n## Fix it now\n\nb\n")
    assert document.title == "Title"
    assert "<h1" not in document.html
    assert document.parts == [
        {"id": "fix-it-now", "label": "Fix it, now"},
        {"id": "fix-it-now-1", "label": "Fix it now"},
    ]
    assert [section.text for section in document.sections] == ["Intro.", "a", "", "b"]


def test_code_blocks_have_a_copy_button_and_images_are_replaced_by_alt_text() -> None:
    html = parse_markdown("```sh run room\ndf -h <here>\n```\n\n![A picture](a.png)\n").html
    assert re.search(r'data-copy="(code-\d+)".*<pre id="\1" tabindex="0">df -h &lt;here&gt;', html, re.DOTALL)
    assert "<p>A picture</p>" in html


def test_runbook_page_has_sections_and_a_link_back_to_the_runbook(viewer: Client) -> None:
    page = Page(viewer.get("/docs/runbook/disk-full/"))
    assert {"/docs/", "/docs/runbook/", "#fix-it"} <= set(page.link_urls)
    assert page.control("fix-it")
    assert page.shows("rm -rf var/thumbnails")
    current = [link.name for link in page.controls if link.attributes.get("aria-current") == "page"]
    assert "Documentation" in current


@pytest.mark.parametrize("name", ["nothing", "../README", "runbook/../alerts", "runbook/README", "%2e%2e/manage.py"])
def test_files_outside_the_documentation_return_404(viewer: Client, name: str) -> None:
    assert viewer.get(f"/docs/{name}/").status_code == 404


def test_documentation_search_finds_sections_by_words(viewer: Client) -> None:
    found = Page(viewer.get("/docs/", {"q": "THUMBNAILS disk"})).control("main")
    first = next(item for item in found.items if item.shows("Remove thumbnails"))
    assert first.link("The disk is full / Fix it").attributes["href"] == "/docs/runbook/disk-full/#fix-it"
    assert Page(viewer.get("/docs/", {"q": "no-such-word"})).shows("No document has these words.")
    page = Page(viewer.get("/docs/", {"q": "<q>"}))
    assert page.field("Search the documentation").value == "<q>"


def test_documentation_search_and_pages_have_the_same_sections() -> None:
    """The search and the pages parse documents differently, so their headings and anchors could differ."""
    found = [(title, url, section.heading, section.anchor) for title, url, section in list_sections()]
    assert found == [
        (document.title, url, section.heading, section.anchor)
        for url, document in PAGES
        for section in document.sections
    ]
    assert not [section.text for _title, _url, section in list_sections() if "](" in section.text]


def test_find_returns_documents_by_title(viewer: Client) -> None:
    assert "/docs/runbook/disk-full/" in Page(viewer.get("/find/", {"q": "runbook disk"})).link_urls


def test_chinese_page_says_that_the_document_is_in_english(viewer: Client) -> None:
    viewer.cookies["django_language"] = "zh-hans"
    page = Page(viewer.get("/docs/runbook/disk-full/"))
    assert page.shows("文档只有英文版")
    assert [control.attributes.get("lang") for control in page.controls if control.tag == "article"] == ["en"]


@pytest.mark.parametrize("kind", list(AlertKind))
def test_runbook_page_of_every_alert_kind_exists(viewer: Client, kind: AlertKind) -> None:
    url, _, anchor = document_url(KINDS[kind].page).partition("#")
    page = Page(viewer.get(url))
    assert not anchor or page.control(anchor)


def test_client_examples_use_the_url_of_this_installation(admin: Client, settings: Any) -> None:
    """Documents for operators keep the address in the example, because the server itself listens there."""
    settings.PUBLIC_URL = "https://llm.example.org"
    recipes = Page(admin.get("/docs/recipes/"))
    assert recipes.shows('base_url = "https://llm.example.org/v1"')
    assert recipes.shows('allowedAddresses: ["llm.example.org"]')
    assert "127.0.0.1:8000" not in recipes.text
    assert Page(admin.get("/docs/scale/")).shows("proxy_pass http://127.0.0.1:8000;")
