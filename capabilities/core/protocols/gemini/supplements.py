"""Read the media in Gemini's answers, and the pages that the answers cite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from capabilities.core.protocols.answer_fields import count_at, non_empty_text
from capabilities.core.protocols.media import parse_base64_media, parse_url_media
from capabilities.core.wire import Media

Annotation = Mapping[str, Any]


# Fields of a candidate that cite the sources of its text.
SOURCES = frozenset({"groundingMetadata", "citationMetadata"})


def parse_media(parts: Iterable[Mapping[str, Any]]) -> tuple[Media, ...]:
    # An image that is produced during thinking is not part of the answer.
    candidates = (_media(part) for part in parts if not part.get("thought"))
    return tuple(media for media in candidates if media is not None)


def _media(part: Mapping[str, Any]) -> Media | None:
    inline, remote = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, Mapping):
        return parse_base64_media(inline.get("mimeType"), inline.get("data"))
    if isinstance(remote, Mapping):
        return parse_url_media(remote.get("fileUri"), non_empty_text(remote.get("mimeType")) or "")
    return None


def parse_annotations(candidate: Mapping[str, Any], text: str) -> tuple[Annotation, ...]:
    """Return the pages that a candidate cites, in OpenAI's format, with the positions of the citations in `text`."""
    grounding, citations = (candidate.get(name) for name in ("groundingMetadata", "citationMetadata"))
    if not (isinstance(grounding, Mapping) or isinstance(citations, Mapping)):
        return ()
    data = text.encode("utf-8", "replace")
    annotations = [*_groundings(grounding, data)] if isinstance(grounding, Mapping) else []
    for citation in _objects(citations.get("citations")) if isinstance(citations, Mapping) else []:
        annotations += _annotation(citation, citation, data)
    return tuple(annotations)


def _groundings(grounding: Mapping[str, Any], data: bytes) -> Iterator[Annotation]:
    pages = [_page(chunk) for chunk in _objects(grounding.get("groundingChunks"))]
    supports = _objects(grounding.get("groundingSupports"))
    for support in supports:
        indices = support.get("groundingChunkIndices")
        for index in indices if isinstance(indices, list) else []:
            if isinstance(index, int) and 0 <= index < len(pages):
                yield from _annotation(pages[index], support.get("segment"), data)
    # If the citations have no positions, cite all pages at the beginning of the text.
    if not supports:
        for page in pages:
            yield from _annotation(page, None, data)


def _page(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    # A chunk contains one object, and its name depends on the kind of source. If the source is a page, the object has a
    # `uri`.
    return next((page for page in chunk.values() if isinstance(page, Mapping) and page.get("uri")), {})


def _annotation(page: Mapping[str, Any], segment: Any, data: bytes) -> Iterator[Annotation]:
    url = non_empty_text(page.get("uri"))
    if url:
        # Gemini's positions are in bytes, and OpenAI's in characters.
        start, end = (len(data[: count_at(segment, name) or 0].decode("utf-8", "ignore")) for name in POSITIONS)
        position = {"start_index": start, "end_index": end}
        yield {
            "type": "url_citation",
            "url_citation": {"url": url, "title": non_empty_text(page.get("title")) or "", **position},
        }


POSITIONS = ("startIndex", "endIndex")


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


# Types of fields in the actions and results of Gemini's own tools, as Gemini's clients parse them. A field with a value
# of another type is dropped. The names are from google-genai's types (3.4.0), and a test compares them with these
# types. Fields that are not listed are passed on unchanged.

_NAMES: Mapping[str | type, str] = MappingProxyType(
    {
        str: (
            "chunkId displayName documentName domain duration encodedPolyline fileId fileSearchStore flagContentUri "
            "googleMapsUri googleMapsWidgetContextToken imageUri key license mediaId photoUri placeId "
            "relativePublishTimeDescription renderedContent retrievedUrl review reviewId sdkBlob sourceId sourceUri "
            "stringValue text title uri urlRetrievalStatus code language id outcome output toolType"
        ),
        int: "day distanceMeters endIndex firstPage lastPage month pageNumber partIndex startIndex year",
        float: "googleSearchDynamicRetrievalScore numericValue",
        dict: (
            "authorAttribution image maps pageSpan placeAnswerSources publicationDate ragChunk retrievalMetadata "
            "retrievedContext route searchEntryPoint segment stringListValue web args response executableCode "
            "codeExecutionResult toolCall toolResponse groundingMetadata citationMetadata urlContextMetadata"
        ),
        "list[str]": "imageSearchQueries retrievalQueries values webSearchQueries",
        "list[int]": "groundingChunkIndices renderedParts",
        "list[float]": "confidenceScores",
        "list[dict]": (
            "citations customMetadata groundingChunks groundingSupports reviewSnippet reviewSnippets "
            "sourceFlaggingUris urlMetadata"
        ),
    }
)
# Maps field names, at any depth, to types.
KINDS: Mapping[str, str | type] = MappingProxyType(
    {name: kind for kind, names in _NAMES.items() for name in names.split()}
)
_ITEMS: Mapping[Any, type] = {f"list[{kind.__name__}]": kind for kind in (str, int, float, dict)}
# Fields whose value is an object with arbitrary field names.
FREE = frozenset({"args", "response"})


def keep_readable(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object without the fields, at any depth, that Gemini's clients cannot parse."""
    return dict(_readable(value))


def _readable(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, field_value in value.items():
        kind = KINDS.get(name)
        if kind in _ITEMS and isinstance(field_value, list):
            inner = _ITEMS[kind]
            if all(_is(item, inner) for item in field_value):
                yield name, [keep_readable(item) for item in field_value] if inner is dict else field_value
        elif kind is None or (isinstance(kind, type) and _is(field_value, kind)):
            yield name, keep_readable(field_value) if kind is dict and name not in FREE else field_value


def _is(value: Any, kind: type) -> bool:
    # As in JSON, an integer is also a number, but a boolean is not.
    kinds = (int, float) if kind is float else (kind,)
    return isinstance(value, kinds) and (kind is bool or not isinstance(value, bool))
