"""The documents in the program's `docs` folder: their titles, their texts, and a full-text search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.urls import reverse

from routing_admin.console.docs.markdown import Document, Section, Target, parse, read_sections
from routing_admin.console.docs.rules import FOLDER, SUFFIX, document_name, document_url
from routing_admin.paths import FILES

API_SOURCE = "routing_admin/console/api.py"
"""Source file to which documents link. In the console, these links lead to the API reference instead."""

MAX_FOUND = 30
SNIPPET = 160
"""How many characters of a section's text are shown around the first match."""


@cache
def list_paths() -> dict[str, str]:
    """Map the name that each document has in URLs to the document's path in the repository."""
    files = sorted((FILES / FOLDER).rglob(f"*{SUFFIX}"))
    return {document_name(path): path for path in (file.relative_to(FILES).as_posix() for file in files)}


@cache
def find_document(name: str) -> Document | None:
    """Return the document with this name in URLs, or None.

    Documents are cached, because files do not change while the process runs.
    """
    path = list_paths().get(name)
    return parse((FILES / path).read_text("utf-8"), lambda link: resolve(link, path)) if path else None


def resolve(link: str, source: str) -> Target | None:
    """Return the target of a link in a document. Return None if the linked file, such as source code, has no page."""
    file, hash_sign, anchor = link.partition("#")
    if not file or "://" in file:
        return Target(link)
    target = (FILES / source).parent.joinpath(file).resolve()
    path = target.relative_to(FILES).as_posix() if target.is_relative_to(FILES) else ""
    if path == API_SOURCE:
        return Target(reverse("agents-api:openapi-view"))
    return Target(document_url(path) + hash_sign + anchor, read_title(path)) if path in list_paths().values() else None


@cache
def list_sections() -> list[tuple[str, str, Section]]:
    """Return all sections of all documents, each with the document's title and URL."""
    return [
        (read_title(path), document_url(path), section)
        for path in list_paths().values()
        for section in read_sections((FILES / path).read_text("utf-8"))
    ]


@dataclass(frozen=True, slots=True)
class FoundSection:
    """A section that contains the search words."""

    title: str
    heading: str
    url: str
    snippet: str


def search(words: str) -> Sequence[FoundSection]:
    """Return the first sections that contain all of these words.

    Sections with more of the words in their heading are first.
    """
    wanted = words.casefold().split()
    found = [
        (sum(word not in f"{title} {section.heading}".casefold() for word in wanted), title, section, url)
        for title, url, section in list_sections()
        if all(word in f"{title} {section.heading} {section.text}".casefold() for word in wanted)
    ]
    found.sort(key=lambda item: item[0])
    return [
        FoundSection(title, section.heading, f"{url}#{section.anchor}".rstrip("#"), snippet(section, wanted))
        for _rank, title, section, url in found[:MAX_FOUND]
    ]


def snippet(section: Section, wanted: Sequence[str]) -> str:
    places = [place for word in wanted if (place := section.text.casefold().find(word)) >= 0]
    start = max(0, min(places, default=0) - SNIPPET // 4)
    text = section.text[start : start + SNIPPET].strip()
    return f"{'…' if start else ''}{text}{'…' if start + SNIPPET < len(section.text) else ''}"


def read_title(path: str) -> str:
    with Path(FILES / path).open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip().replace("`", "")


@cache
def list_titles() -> list[tuple[str, str]]:
    return [(read_title(path), document_url(path)) for path in list_paths().values()]
