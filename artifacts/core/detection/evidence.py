"""What was found of a file, and why: the evidence as a page shows it step by step."""

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
"""Every reason that evidence can give, in English; pages translate these sentences."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation: at which step, what it says (a type or an encoding, empty for nothing) and because of what."""

    step: str
    says: str
    reason: str

    @property
    def because(self) -> str:
        """The reason as an English sentence, one of `REASONS`."""
        return REASONS[self.reason]

    def as_json(self) -> dict[str, str]:
        """The observation as it is kept beside the artifact."""
        return {"step": self.step, "says": self.says, "reason": self.reason, "because": self.because}


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """What a file is: the type in effect, its kind, and the evidence; `encoding` for text only.

    `encoding_certain` is false where the encoding was guessed and the bytes read nearly as well in another one.
    `detected_mime_type` is what the bytes say, None when they say nothing; `mismatch` is true when they overruled a
    declared type or, without one, the extension.
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
        """The evidence as JSON values, in the order of the steps."""
        return [item.as_json() for item in self.evidence]


# Opinions from outside the core on what a file is: asked for what we cannot tell ourselves, never proof.

log = logging.getLogger(__name__)

Opinion = Callable[[bytes], str | None]
"""`ask(head)`: a MIME type (libmagic) or an encoding (charset-normalizer), None when it knows none; see sniffer.py."""


def opinion_of(ask: Opinion | None, head: bytes) -> str | None:
    """What is said of these bytes; None where asking fails, which costs nothing that we found ourselves.

    What a library is known to raise for a hostile file is an answer in its own module; the rest is logged as a fault.
    """
    try:
        return ask(head) if ask else None
    except Exception:  # a library may raise anything, and no file's upload ends for it (ABR-8.3)
        log.exception("asking an opinion on a file failed; %d bytes were looked at", len(head))
        return None


# One row of the tables of signatures: which bytes stand where, and the structure that proves them.


@dataclass(frozen=True, slots=True)
class Signature:
    """One row: these bytes at that offset; `structure` None means that they only hint."""

    mime: str
    fixed: bytes
    structure: Structure | None
    offset: int = 0
    family: str = ""
    also: tuple[str, ...] = ()
    textual: bool = False
