"""The `get_artifact` tool, and the parser that extracts the file from its result in a tool message."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifacts.core.artifact import REF_PREFIX, artifact_id
from artifacts.core.delivery.content_router import ArtifactContentRouter, ContentRouteResult
from artifacts.core.detection.kinds import OCTET_STREAM, clean_mime, filename_mime, mime_kind
from artifacts.core.store import ArtifactStore
from capabilities.core.json_codec import is_bounded
from capabilities.core.message import Blob, Content, Converted, ConvertTo, FilePart, Text, make_blob
from capabilities.core.texts.description import nearest_language
from capabilities.core.translatable import translatable
from capabilities.core.vocabulary import Kind

NOT_FOUND: Mapping[str, str] = MappingProxyType(
    {"zh": "工件不存在或已被删除", "en": "The artifact does not exist or has been deleted."}
)
"""The error message for the model. It does not reveal whether the artifact is missing or belongs to another agent."""


@dataclass(frozen=True, slots=True)
class ArtifactNotFound:
    """The artifact does not exist or is not visible to the calling agent, or the reference is invalid (ABR-8.1)."""

    ref: str
    message: str

    def as_json(self) -> dict[str, str]:
        return {"error": "artifact_not_found", "ref": self.ref, "message": self.message}


def get_artifact(
    store: ArtifactStore,
    router: ArtifactContentRouter,
    ref: str,
    service_id: str,
    *,
    language: str | None = None,
    offset: int | None = None,
    limit: int | None = None,
) -> ContentRouteResult | ArtifactNotFound:
    """Return the artifact in a form that the model service can read, or an `ArtifactNotFound`.

    Both results have `as_json()`. `ref` is `artifact:<id>` or a bare id, and is validated before the store is queried.
    """
    bare = artifact_id(ref)
    artifact = store.get_artifact(REF_PREFIX + bare) if bare else None
    if artifact is None:
        return ArtifactNotFound(ref, NOT_FOUND[nearest_language(language)])
    return router.route_content(artifact, service_id, language=language, offset=offset, limit=limit)


class BadBase64Error(ValueError):
    """The data in a tool result is not valid base64. The message names the field without repeating the data."""

    def __init__(self, param: str) -> None:
        self.sentence = translatable(
            "%(param)s in the tool result is not valid base64; send the file again.", param=param
        )
        super().__init__(self.sentence)


@dataclass(frozen=True, slots=True)
class InMemory:
    """File content that arrived within a message."""

    data: bytes
    kind: Kind

    def blob(self) -> Blob:
        return make_blob(self.data)

    def text(self) -> Text | None:
        """Return the text if the content is a UTF-8 text file, else None."""
        if self.kind is not Kind.TEXT:
            return None
        try:
            return Text(self.data.decode("utf-8-sig"), "utf-8")
        except UnicodeDecodeError:
            return None

    # Convert nothing, because only stored files can be converted.
    def convert(self, _: ConvertTo) -> Converted | None:
        return None


ContentOf = Callable[[bytes, Kind], Content]

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE)


def read_tool_result(text: str, content_of: ContentOf = InMemory) -> FilePart | None:
    """Return the file in a tool message if its text is a ContentRouteResult with media, else None.

    If the result names its artifact but has no data (the specification's short form), the returned file has no content,
    and the caller must read the content from the store. The specification's `status` key is ignored. Raise
    `BadBase64Error` if the data cannot be decoded.
    """
    result = _result(text)
    if result is None:
        return None
    file = _image(result) if result["routing"] == "image_url" else _file(result)
    filename, declared, data = file or (None, None, None)
    return _part(result, filename, declared, data, content_of)


def _part(
    result: Mapping[str, Any], filename: str | None, declared: str | None, data: bytes | None, content_of: ContentOf
) -> FilePart | None:
    metadata = result["metadata"] if isinstance(result.get("metadata"), dict) else {}
    known_id = artifact_id(_string(metadata, "id") or "")
    if data is None and known_id is None:
        return None
    filename = filename or _string(metadata, "filename")
    mime_type = clean_mime(declared) or clean_mime(metadata.get("mimeType")) or filename_mime(filename)
    kind_of_type = mime_kind(mime_type or OCTET_STREAM)
    # SVG is sent to models as text, whichever field the tool result used.
    kind = Kind.IMAGE if result["routing"] == "image_url" and kind_of_type is not Kind.TEXT else kind_of_type
    size = _count(metadata.get("size")) if data is None else len(data)
    return FilePart(
        kind,
        mime_type or OCTET_STREAM,
        filename,
        size,
        known_id,
        introduced=True,
        content=None if data is None else content_of(data, kind),
    )


def _result(text: str) -> dict[str, Any] | None:
    # Make this cheap check first, because a tool message can be arbitrarily large and deeply nested.
    if not text.lstrip().startswith("{") or '"routing"' not in text or not is_bounded(text):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    routed = isinstance(value, dict) and (value.get("contentType"), value.get("routing"))
    return value if routed in MEDIA_ROUTES else None


MEDIA_ROUTES = (("image", "image_url"), ("image", "file"), ("binary", "file"))
"""Pairs of `contentType` and `routing` in results that contain a file. Results whose `routing` is `text` contain only
text."""

_DecodedFile = tuple[str | None, str | None, bytes]


def _image(result: Mapping[str, Any]) -> _DecodedFile | None:
    outer = result.get("imageUrl")
    inner = outer.get("image_url") if isinstance(outer, dict) else None
    url = _string(inner, "url")
    match = _DATA_URL.match(url or "")
    return (None, match[1], _decode(url[match.end() :], "imageUrl.image_url.url")) if url and match else None


def _file(result: Mapping[str, Any]) -> _DecodedFile | None:
    outer = result.get("file")
    inner = outer.get("file") if isinstance(outer, dict) else None
    data = _string(inner, "data")
    if data is None:
        return None
    match = _DATA_URL.match(data)
    return (
        _string(inner, "filename"),
        _string(inner, "mimeType"),
        _decode(data[match.end() if match else 0 :], "file.data"),
    )


def _string(value: object, key: str) -> str | None:
    text = value.get(key) if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _decode(data: str, param: str) -> bytes:
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadBase64Error(param) from None
