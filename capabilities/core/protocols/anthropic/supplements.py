"""What Anthropic answers beside words: where each block of them has it from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capabilities.core.protocols.fields import filled


def annotations_of(citations: Iterable[Any], start: int, end: int) -> tuple[Mapping[str, Any], ...]:
    """The citations of a block that stands at those characters of the answer, as OpenAI writes them.

    One that names no address cites a file of the request; all that the vendor says of it stays in it.
    """
    return tuple(_annotation(each, start, end) for each in citations if isinstance(each, Mapping))


def _annotation(citation: Mapping[str, Any], start: int, end: int) -> Mapping[str, Any]:
    url = filled(citation.get("url")) or filled(citation.get("source"))
    title = filled(citation.get("title")) or filled(citation.get("document_title")) or ""
    place = {"start_index": start, "end_index": end, "title": title}
    if url:
        quote = filled(citation.get("cited_text"))
        return {"type": "url_citation", "url_citation": {"url": url, **place, **({"content": quote} if quote else {})}}
    return {"type": "file_citation", "file_citation": {**citation, **place}}


def annotations_of_blocks(blocks: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The citations of all blocks of words."""
    found: list[Mapping[str, Any]] = []
    at = 0
    for block in blocks:
        text = block.get("text")
        if block.get("type") != "text" or not isinstance(text, str):
            continue
        if isinstance(block.get("citations"), list):
            found += annotations_of(block["citations"], at, at + len(text))
        at += len(text)
    return tuple(found)
