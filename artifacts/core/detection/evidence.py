"""The result of type detection, with the evidence that a page shows step by step."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from artifacts.core.detection.structures import Structure
from capabilities.core.vocabulary import Kind

REASONS = {
    "declared": "as declared by the uploader",
    "undeclared": "no usable type was declared",
    "extension": "by the file name's extension",
    "signature": "confirmed by the content: a signature with a valid structure",
    "signature_hint": "starts like it, but the structure is not valid",
    "container": "by what is inside the container",
    "libmagic": "libmagic's guess from the first bytes",
    "text": "every byte decodes, no NUL, few control characters",
    "text_guessed": "every byte decodes, but other encodings fit nearly as well; this one is the most likely",
    "no_text": "not text in any encoding that was tried",
    "markup": "by how the text begins",
    "empty": "the file has no content to check",
    "kept": "the content proves no other type, so the declared information decides",
    "overruled": "the content proves a different type than declared, so the content decides",
    "agrees": "the declared information and the content agree",
    "bytes": "nothing was declared, so the content decides",
    "unknown": "neither the declared information nor the content reveals the type",
    "corrected": "corrected by a person",
    "corrected_lossy": "corrected by a person, but some bytes are not valid in this encoding",
    "failed": "the content could not be checked, so the declared information decides",
}
"""English sentences by reason key. Pages translate them."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One finding: the step, the type or encoding found (empty if none), and the reason's key in `REASONS`."""

    step: str
    says: str
    reason: str

    @property
    def because(self) -> str:
        return REASONS[self.reason]

    def as_json(self) -> dict[str, str]:
        return {"step": self.step, "says": self.says, "reason": self.reason, "because": self.because}


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The detected type, kind and encoding of a file, with the evidence.

    `mime_type` is the effective type. `encoding` is set only for text. `encoding_certain` is False if the encoding was
    guessed and another encoding fits almost as well. `detected_mime_type` is the type that the bytes prove, or None.
    `mismatch` is True if the bytes overrode the declared type or, without one, the extension.
    """

    mime_type: str
    kind: Kind
    is_binary: bool
    encoding: str | None = None
    declared_mime_type: str | None = None
    detected_mime_type: str | None = None
    mismatch: bool = False
    evidence: tuple[Evidence, ...] = ()
    encoding_certain: bool = True

    def evidence_json(self) -> list[dict[str, str]]:
        return [item.as_json() for item in self.evidence]


# Third-party libraries are called only if our own checks cannot decide. Their results never count as proof.

log = logging.getLogger(__name__)

Opinion = Callable[[bytes], str | None]
"""Function that returns a MIME type (libmagic) or an encoding (charset-normalizer), or None if it is unknown. See
`sniffer.py`."""


def ask_opinion(ask: Opinion | None, head: bytes) -> str | None:
    """Return what a third-party library guesses for the first bytes of a file, or None if the library fails."""
    try:
        return ask(head) if ask else None
    except Exception:  # A library may raise any exception, which must not make an upload fail (ABR-8.3).
        log.exception("asking a library about a file failed; %d bytes were examined", len(head))
        return None


@dataclass(frozen=True, slots=True)
class Signature:
    """A file signature: fixed bytes at an offset. Without a valid `structure` after them, they are only a hint."""

    mime: str
    fixed: bytes
    structure: Structure | None
    offset: int = 0
    family: str = ""
    also: tuple[str, ...] = ()
    textual: bool = False
