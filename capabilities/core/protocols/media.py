"""Encode files in a payload, and decode media from a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from capabilities.core.message import CacheBreakpoint, Message, NativePart, Part, TextPart
from capabilities.core.protocols.answer_fields import non_empty_text
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Media, MediaData

# OpenAI's `format` by MIME type.
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


def bare_base64(part: NativePart) -> MediaData | str:
    """Return the file's base64 without a prefix, or an empty string if there are no bytes."""
    return MediaData(part.blob) if part.blob is not None else ""


def address(part: NativePart) -> MediaData | str:
    """Return the file as a URL: a data URL with its bytes, or its web URL if there are no bytes."""
    if part.blob is None:
        return part.url or ""
    return MediaData(part.blob, f"data:{part.mime_type};base64,")


def placeholder(part: NativePart) -> str:
    """Return a line of text that replaces a file for which the protocol has no field."""
    # This line is rarely needed, because a description has normally replaced such a file already.
    name = f" {part.filename}" if part.filename else ""
    address_part = f": {part.url}" if part.url else ""
    return f"[{part.kind.value}{name} ({part.mime_type}) cannot be sent here{address_part}]"


def join_text_parts(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


# Prefix of a failed tool's result if the protocol has no field for failures.
FAILED = "Error:"


def result_parts(message: Message) -> tuple[Part, ...]:
    """Return a message's parts. If a tool failed, text before its result says so."""
    return (TextPart(FAILED), *message.parts) if message.is_error else message.parts


def list_native_parts(message: Message) -> list[NativePart]:
    parts = message.parts
    if len(parts) == 1 and isinstance(parts[0], TextPart):  # Nearly all messages consist of a single text.
        return []
    return [part for part in parts if isinstance(part, NativePart)]


def find_cache_breakpoint(parts: Iterable[Part]) -> CacheBreakpoint | None:
    """Return the last cache breakpoint among these parts, which ends the longest prefix."""
    mark = None
    for part in parts:
        mark = part.cache or mark
    return mark


# Media from a model, in the formats that vendors use.

# Kinds by the first part of a MIME type. All other types are documents.
KINDS = {"image": Kind.IMAGE, "audio": Kind.AUDIO, "video": Kind.VIDEO, "text": Kind.TEXT}
TYPE_CHARS = 150
ANY_IMAGE = "image/png"
# The default type of audio. Other formats can be detected by their bytes.
RAW_SOUND = "audio/L16"


def parse_base64_media(mime_type: Any, data: Any, otherwise: str = "") -> Media | None:
    """Return media sent as base64 with this type or else `otherwise`, or None if there is none."""
    kind = (non_empty_text(mime_type) or otherwise)[:TYPE_CHARS]
    content = non_empty_text(data)
    return Media(_media_kind(kind), kind, content) if content else None


def parse_url_media(url: Any, otherwise: str = "") -> Media | None:
    """Return media in a data URL or at a web URL, or None for other values."""
    if not isinstance(url, str):
        return None
    if url[:5].lower() == "data:":
        head, _, data = url.partition(",")
        mime_type, *options = head[5:].split(";")
        return parse_base64_media(mime_type, data, otherwise) if "base64" in options else None
    if not url.startswith(("https://", "http://")):
        return None
    # The URL is passed on and never fetched.
    return Media(_media_kind(otherwise), otherwise, url=url)


def _media_kind(mime_type: str) -> Kind:
    return KINDS.get(mime_type.partition("/")[0].lower(), Kind.DOCUMENT)
