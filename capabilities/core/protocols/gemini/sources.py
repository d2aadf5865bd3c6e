"""What a Gemini's own tools did and found, as its clients can read it: fields of another type than theirs are left out.

The names are from google-genai's types (3.4.0), to which a test compares them; what is newer passes as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

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
KINDS: Mapping[str, str | type] = MappingProxyType(
    {name: kind for kind, names in _NAMES.items() for name in names.split()}
)
"""What stands under a name, wherever it is."""
_ITEMS: Mapping[Any, type] = {f"list[{kind.__name__}]": kind for kind in (str, int, float, dict)}
FREE = frozenset({"args", "response"})
"""Objects of any names."""


def keep_readable(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with those fields, at any depth, that a client of Gemini's takes."""
    return dict(_readable(value))


def _readable(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, each in value.items():
        kind = KINDS.get(name)
        if kind in _ITEMS and isinstance(each, list):
            inner = _ITEMS[kind]
            if all(_is(item, inner) for item in each):
                yield name, [keep_readable(item) for item in each] if inner is dict else each
        elif kind is None or (isinstance(kind, type) and _is(each, kind)):
            yield name, keep_readable(each) if kind is dict and name not in FREE else each


def _is(value: Any, kind: type) -> bool:
    """As JSON has it: a whole number is a number, too, and a truth value is none."""
    kinds = (int, float) if kind is float else (kind,)
    return isinstance(value, kinds) and (kind is bool or not isinstance(value, bool))
