"""Encode files for a request's payload, and decode media in a model's answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from capabilities.core.message import CacheBreakpoint, Message, NativePart, Part, TextPart
from capabilities.core.protocols.answer_fields import non_empty_text
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Media, MediaData

# Maps MIME types of audio to OpenAI's names for the formats.
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
    """Return the file as base64 without a prefix, or an empty string if its bytes are not available."""
    return MediaData(part.blob) if part.blob is not None else ""


def address(part: NativePart) -> MediaData | str:
    """Return the file as a URL: a data URL with its bytes, or its web URL if the bytes are not available."""
    if part.blob is None:
        return part.url or ""
    return MediaData(part.blob, f"data:{part.mime_type};base64,")


def placeholder(part: NativePart) -> str:
    """Return a line of text that replaces a file if the protocol cannot send the file."""
    # This is rarely needed, because a description has normally already replaced such a file.
    name = f" {part.filename}" if part.filename else ""
    address_part = f": {part.url}" if part.url else ""
    return f"[{part.kind.value}{name} ({part.mime_type}) cannot be sent here{address_part}]"


def join_text_parts(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


# Text that is put before the result of a failed tool, for protocols that have no field for failures.
FAILED = "Error:"


def result_parts(message: Message) -> tuple[Part, ...]:
    """Return the parts of a message, preceded by the text `FAILED` if it is the result of a failed tool."""
    return (TextPart(FAILED), *message.parts) if message.is_error else message.parts


def list_native_parts(message: Message) -> list[NativePart]:
    parts = message.parts
    if len(parts) == 1 and isinstance(parts[0], TextPart):  # Nearly all messages consist of a single text part.
        return []
    return [part for part in parts if isinstance(part, NativePart)]


def find_cache_breakpoint(parts: Iterable[Part]) -> CacheBreakpoint | None:
    """Return the last cache breakpoint in these parts, which ends the longest prefix, or None."""
    mark = None
    for part in parts:
        mark = part.cache or mark
    return mark


# Maps the first part of a MIME type to the kind of media. Media with other types are documents.
KINDS = {"image": Kind.IMAGE, "audio": Kind.AUDIO, "video": Kind.VIDEO, "text": Kind.TEXT}
TYPE_CHARS = 150
ANY_IMAGE = "image/png"
# Raw audio samples. This type is assumed if none is stated, because all other audio formats can be detected from the
# bytes.
RAW_SOUND = "audio/L16"


def parse_base64_media(mime_type: Any, data: Any, otherwise: str = "") -> Media | None:
    """Return media sent as base64, or None if there is no data. `otherwise` is used if no type is given."""
    kind = (non_empty_text(mime_type) or otherwise)[:TYPE_CHARS]
    content = non_empty_text(data)
    return Media(_media_kind(kind), kind, content) if content else None


def parse_url_media(url: Any, otherwise: str = "") -> Media | None:
    """Return the media in a data URL or at a web URL. Return None for other values."""
    if not isinstance(url, str):
        return None
    if url[:5].lower() == "data:":
        head, _, data = url.partition(",")
        mime_type, *options = head[5:].split(";")
        return parse_base64_media(mime_type, data, otherwise) if "base64" in options else None
    if not url.startswith(("https://", "http://")):
        return None
    # The URL is passed on to the client and never fetched.
    return Media(_media_kind(otherwise), otherwise, url=url)


def _media_kind(mime_type: str) -> Kind:
    return KINDS.get(mime_type.partition("/")[0].lower(), Kind.DOCUMENT)
