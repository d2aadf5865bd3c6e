"""Apply a user's correction of a file's type or encoding, which takes precedence over metadata and bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches

from artifacts.core.detection.encoding_names import CHOICES, NAMES, canonical_encoding
from artifacts.core.detection.evidence import Detection, Evidence
from artifacts.core.detection.extensions import EXTENSION_MIMES
from artifacts.core.detection.kinds import UNDECLARED, clean_mime, mime_kind
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.vocabulary import Kind

MAX_TYPE = 150
MAX_WORD = 60
"""An error message repeats at most this many characters of an invalid value."""


class CorrectionError(ValueError):
    """The correction is invalid. `field` is `type` or `encoding`, and `sentence` is the error message for the user."""

    def __init__(self, field: str, sentence: Translatable) -> None:
        super().__init__(sentence)
        self.field, self.sentence = field, sentence


def correct(detection: Detection, mime_type: str | None = None, encoding: str | None = None) -> Detection:
    """Return the detection with the type, the encoding or both replaced. None keeps the detected value.

    Raise `CorrectionError` if the type is malformed or generic, if the encoding is unknown, or if an encoding is given
    for a type that is not text.
    """
    mime = _parse_or_refuse("type", mime_type, _parse_type, _refuse_type)
    name = _parse_or_refuse("encoding", encoding, canonical_encoding, _refuse_encoding)
    if name and mime is not None and mime_kind(mime) is not Kind.TEXT:
        raise CorrectionError("encoding", _refuse_both(mime))
    if name and mime is None and detection.kind is not Kind.TEXT:
        # An encoding implies that the file is text.
        mime = "text/plain"
    new_type = mime or detection.mime_type
    kind = mime_kind(new_type) if mime else detection.kind
    is_text = kind is Kind.TEXT
    encoding_evidence = (Evidence("text", name, "corrected"),) if name and is_text else ()
    return replace(
        detection,
        mime_type=new_type,
        kind=kind,
        is_binary=not is_text,
        # Without a given encoding, assume UTF-8 and mark it as a guess.
        encoding=(name or detection.encoding or "utf-8") if is_text else None,
        encoding_certain=not is_text
        or name is not None
        or (detection.encoding is not None and detection.encoding_certain),
        mismatch=detection.mismatch if mime is None else False,
        evidence=(*detection.evidence, *encoding_evidence, Evidence("verdict", new_type, "corrected")),
    )


def is_text_type(mime_type: str) -> bool:
    """Return whether this is a text type, ignoring differences in spelling. Return False for an invalid type."""
    mime = clean_mime(mime_type)
    return mime is not None and mime_kind(mime) is Kind.TEXT


def _parse_or_refuse(
    field: str, value: str | None, parse: Callable[[str], str | None], refuse: Callable[[str], Translatable]
) -> str | None:
    name = None if value is None else parse(value)
    if value is not None and name is None:
        raise CorrectionError(field, refuse(value.strip()))
    return name


def _parse_type(value: str) -> str | None:
    mime = clean_mime(value)
    return mime if mime and len(mime) <= MAX_TYPE else None


def _refuse_type(word: str) -> Translatable:
    if word.lower() in UNDECLARED:
        return translatable("%(word)s is too general. Enter the file's actual type.", word=word)
    if near := _closest_type(word):
        return translatable("%(word)s is not a valid type. Did you mean %(near)s?", word=word[:MAX_WORD], near=near)
    return translatable(
        ("%(word)s is not a valid type. Enter one like %(example)s."), word=word[:MAX_WORD], example="image/png"
    )


def _refuse_encoding(word: str) -> Translatable:
    close = get_close_matches(word[:MAX_WORD].lower(), {*CHOICES, *NAMES}, 1)
    if near := canonical_encoding(close[0]) if close else None:
        return translatable("There is no encoding %(word)s. Did you mean %(near)s?", word=word[:MAX_WORD], near=near)
    known = "utf-8, gb18030"
    return translatable("There is no encoding %(word)s. Examples: %(known)s.", word=word[:MAX_WORD], known=known)


def _refuse_both(mime: str) -> Translatable:
    return translatable("%(mime)s is not text, so it has no encoding. Correct one of the two.", mime=mime)


def _closest_type(value: str) -> str | None:
    # Users may enter an extension (`png`) or misspell a type (`image/pgn`).
    by_extension = EXTENSION_MIMES.get(value.lower().lstrip("."))
    return by_extension or next(
        iter(get_close_matches(value[:MAX_WORD].lower(), set(EXTENSION_MIMES.values()), 1)), None
    )
