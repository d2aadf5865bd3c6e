"""What a model made beside its words, out of the forms in which vendors send it."""

from __future__ import annotations

from typing import Any

from capabilities.core.protocols.fields import filled
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Media

KINDS = {"image": Kind.IMAGE, "audio": Kind.AUDIO, "video": Kind.VIDEO, "text": Kind.TEXT}
"""Kinds by the first word of a type; every other type is a document's."""
TYPE_CHARS = 150
ANY_IMAGE = "image/png"
RAW_SOUND = "audio/L16"
"""A sound of which nobody says what it is: every other format shows what it is in its bytes."""


def media_of_base64(mime_type: Any, data: Any, otherwise: str = "") -> Media | None:
    """What came as base64, of a type that is named or `otherwise`; None where nothing came."""
    kind = (filled(mime_type) or otherwise)[:TYPE_CHARS]
    found = filled(data)
    return Media(_kind_of(kind), kind, found) if found else None


def media_of_url(url: Any, otherwise: str = "") -> Media | None:
    """What stands in a data URL, or at an address, which is passed on and never fetched; None for what is neither."""
    if not isinstance(url, str):
        return None
    if url[:5].lower() == "data:":
        head, _, data = url.partition(",")
        mime_type, *options = head[5:].split(";")
        return media_of_base64(mime_type, data, otherwise) if "base64" in options else None
    if not url.startswith(("https://", "http://")):
        return None
    return Media(_kind_of(otherwise), otherwise, url=url)


def _kind_of(mime_type: str) -> Kind:
    return KINDS.get(mime_type.partition("/")[0].lower(), Kind.DOCUMENT)
