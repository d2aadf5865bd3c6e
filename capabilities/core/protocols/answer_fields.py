"""What hosts say beside an answer's words in OpenAI's names, with every field that OpenAI itself always gives.

Typed clients read these with the vendor's own types, and lose the whole answer where one field is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from capabilities.core.protocols.fields import count, filled
from capabilities.core.wire import Annotation

URL_CITATION, FILE_CITATION = "url_citation", "file_citation"
SERVICE_TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})
"""OpenAI's; the word of another host (Groq: on_demand) has no place in an answer in its shape."""


def annotations_of(listed: Any) -> tuple[Annotation, ...]:
    """Return the annotations of a message or a delta; one of a page has its address, its title and its place."""
    return tuple(filter(None, map(annotation_of, listed))) if isinstance(listed, list) else ()


def annotation_of(value: Any) -> Annotation | None:
    """Return the annotation; None for what names no kind, or cites a page without its address."""
    kind = filled(value.get("type")) if isinstance(value, Mapping) else None
    if kind != URL_CITATION:
        return dict(value) if kind else None
    page = value.get(kind)
    if not (isinstance(page, Mapping) and filled(page.get("url"))):
        return None
    place = {name: count(page, name) or 0 for name in ("start_index", "end_index")}
    return {"type": kind, kind: {**page, "title": filled(page.get("title")) or "", **place}}


def logprobs_of(value: Any) -> Mapping[str, Any] | None:
    """Return how probable the words were; None where no token is named."""
    if not isinstance(value, Mapping):
        return None
    lists = {name: list_tokens(value.get(name)) or None for name in ("content", "refusal")}
    return lists if any(lists.values()) else None


def list_tokens(listed: Any) -> list[dict[str, Any]]:
    """Return the tokens of a list, each with its bytes and what else was probable in its place."""
    items = listed if isinstance(listed, list) else []
    tokens = ((each, _token(each)) for each in items)
    return [{**token, "top_logprobs": _alternatives(each)} for each, token in tokens if token is not None]


def _alternatives(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = value.get("top_logprobs")
    found: Iterable[Any] = map(_token, listed) if isinstance(listed, list) else ()
    return [each for each in found if each is not None]


def _token(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    token, logprob, data = value.get("token"), value.get("logprob"), value.get("bytes")
    if not (isinstance(token, str) and isinstance(logprob, int | float) and math.isfinite(logprob)):
        return None
    if not (isinstance(data, list) and all(type(each) is int for each in data)):
        data = list(token.encode("utf-8", "replace"))
    return {"token": token, "bytes": data, "logprob": logprob}
