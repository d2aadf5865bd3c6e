"""What a file is when somebody who knows it says so: their word outranks metadata and bytes, which stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from artifacts.core.detection.encoding_names import canonical
from artifacts.core.detection.evidence import Detection, Evidence
from artifacts.core.detection.kinds import clean_mime, kind_of
from capabilities.core.vocabulary import Kind


class CorrectionError(ValueError):
    """A correction names a type or an encoding that there is none of; `field` is `type` or `encoding`."""

    def __init__(self, field: str, word: str) -> None:
        super().__init__(f"no such {field}: {word}")
        self.field, self.word = field, word


def correct(detection: Detection, mime_type: str | None = None, encoding: str | None = None) -> Detection:
    """The detection with the given type, encoding or both instead of its own; None leaves what was found.

    An encoding alone makes a file the text it was said to be: a type that is none becomes `text/plain`. A type that
    is no text has no encoding; a text whose encoding nobody knew is UTF-8, and that is a guess. Raises
    `CorrectionError` for a type that is malformed or says nothing, and for an encoding that Python does not know.
    """
    mime, name = _read_word("type", mime_type, clean_mime), _read_word("encoding", encoding, canonical)
    if name and mime is None and detection.kind is not Kind.TEXT:
        mime = "text/plain"
    type_now = mime or detection.mime_type
    kind = kind_of(type_now) if mime else detection.kind
    is_text = kind is Kind.TEXT
    read_as = (Evidence("text", name, "corrected"),) if name and is_text else ()
    return replace(
        detection,
        mime_type=type_now,
        kind=kind,
        is_binary=not is_text,
        encoding=(name or detection.encoding or "utf-8") if is_text else None,
        encoding_certain=not is_text
        or name is not None
        or (detection.encoding is not None and detection.encoding_certain),
        mismatch=detection.mismatch if mime is None else False,
        evidence=(*detection.evidence, *read_as, Evidence("verdict", type_now, "corrected")),
    )


def _read_word(field: str, word: str | None, read: Callable[[str], str | None]) -> str | None:
    name = None if word is None else read(word)
    if word is not None and name is None:
        raise CorrectionError(field, word)
    return name
