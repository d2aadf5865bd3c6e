"""What Gemini answers beside words: files in its parts, and the pages that its words rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from capabilities.core.protocols.answer_media import media_of_base64, media_of_url
from capabilities.core.protocols.fields import count, filled
from capabilities.core.wire import Media

Annotation = Mapping[str, Any]


SOURCES = frozenset({"groundingMetadata", "citationMetadata"})
"""Where a candidate says what its words rest on."""


def media_of(parts: Iterable[Mapping[str, Any]]) -> tuple[Media, ...]:
    """The files among the parts; a sketch that was made while thinking is no part of the answer."""
    found = (_media(part) for part in parts if not part.get("thought"))
    return tuple(each for each in found if each is not None)


def _media(part: Mapping[str, Any]) -> Media | None:
    inline, remote = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, Mapping):
        return media_of_base64(inline.get("mimeType"), inline.get("data"))
    if isinstance(remote, Mapping):
        return media_of_url(remote.get("fileUri"), filled(remote.get("mimeType")) or "")
    return None


def annotations_of(candidate: Mapping[str, Any], text: str) -> tuple[Annotation, ...]:
    """The pages that a candidate rests on, each at the characters of `text` that rest on it, as OpenAI writes them."""
    grounding, cited = (candidate.get(name) for name in ("groundingMetadata", "citationMetadata"))
    if not (isinstance(grounding, Mapping) or isinstance(cited, Mapping)):
        return ()
    data = text.encode("utf-8", "replace")
    found = [*_groundings(grounding, data)] if isinstance(grounding, Mapping) else []
    for each in _objects(cited.get("citations")) if isinstance(cited, Mapping) else []:
        found += _annotation(each, each, data)
    return tuple(found)


def _groundings(grounding: Mapping[str, Any], data: bytes) -> Iterator[Annotation]:
    """Each page with each place that rests on it; where no place is named, with the beginning of the words."""
    pages = [_page(chunk) for chunk in _objects(grounding.get("groundingChunks"))]
    supports = _objects(grounding.get("groundingSupports"))
    for support in supports:
        places = support.get("groundingChunkIndices")
        for place in places if isinstance(places, list) else []:
            if isinstance(place, int) and 0 <= place < len(pages):
                yield from _annotation(pages[place], support.get("segment"), data)
    if not supports:
        for page in pages:
            yield from _annotation(page, None, data)


def _page(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """The page of a chunk, of whichever sort it is."""
    return next((each for each in chunk.values() if isinstance(each, Mapping) and each.get("uri")), {})


def _annotation(page: Mapping[str, Any], segment: Any, data: bytes) -> Iterator[Annotation]:
    """Gemini counts bytes, OpenAI characters."""
    url = filled(page.get("uri"))
    if url:
        start, end = (len(data[: count(segment, name) or 0].decode("utf-8", "ignore")) for name in PLACES)
        place = {"start_index": start, "end_index": end}
        yield {"type": "url_citation", "url_citation": {"url": url, "title": filled(page.get("title")) or "", **place}}


PLACES = ("startIndex", "endIndex")


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
