"""What was found of a file, and why: the evidence as a page shows it step by step."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
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
