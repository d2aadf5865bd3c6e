"""Files inside a payload: where their data goes, and the words that stand for one that has no place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from capabilities.core.message import CacheMark, Message, NativePart, Part, TextPart
from capabilities.core.protocols.answer_fields import filled
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Media, MediaData

AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/aac": "aac",
    "audio/aiff": "aiff",
    "audio/mp4": "m4a",
    "audio/x-m4a": "m4a",
    "audio/webm": "webm",
}
"""OpenAI's `format` word for an audio type."""


def bare_base64(part: NativePart) -> MediaData | str:
    """The file's base64 alone; empty where there are no bytes."""
    return MediaData(part.blob) if part.blob is not None else ""


def address(part: NativePart) -> MediaData | str:
    """The file as a URL: its web address, else a data URL."""
    if part.blob is None:
        return part.url or ""
    return MediaData(part.blob, f"data:{part.mime_type};base64,")


def placeholder(part: NativePart) -> str:
    """A line for a file that its protocol has no place for; delivery describes it before it comes so far."""
    name = f" {part.filename}" if part.filename else ""
    where = f": {part.url}" if part.url else ""
    return f"[{part.kind.value}{name} ({part.mime_type}) cannot be sent here{where}]"


def words_of(parts: Iterable[Part]) -> str:
    """The words among these parts, one a line."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


FAILED = "Error:"
"""What a failed tool's result begins with where a protocol has no field that says so."""


def result_parts(message: Message) -> tuple[Part, ...]:
    """The parts of a message; those of a failed tool's result say so in words."""
    return (TextPart(FAILED), *message.parts) if message.is_error else message.parts


def natives_of(message: Message) -> list[NativePart]:
    """The files of a message, in order."""
    parts = message.parts
    if len(parts) == 1 and isinstance(parts[0], TextPart):  # as nearly every message is
        return []
    return [part for part in parts if isinstance(part, NativePart)]


def mark_of(parts: Iterable[Part]) -> CacheMark | None:
    """The last mark among these parts: the prefix that ends furthest on."""
    found = None
    for part in parts:
        found = part.cache or found
    return found


# What a model made beside its words, out of the forms in which vendors send it.

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
