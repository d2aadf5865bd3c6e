"""What was found of a file, and why: the evidence as a page shows it step by step."""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.vocabulary import Kind

REASONS = {
    "declared": "as the uploader declared it",
    "undeclared": "no usable type was declared",
    "extension": "by the extension of the file's name",
    "signature": "the bytes prove it: a signature with a valid structure behind it",
    "signature_hint": "the bytes begin like it, without a valid structure behind that",
    "container": "by what is inside the container",
    "libmagic": "libmagic's opinion of the first bytes",
    "text": "every byte decodes, there is no NUL and control characters are rare",
    "text_guessed": "every byte decodes, but in other encodings nearly as well; this one reads likeliest",
    "no_text": "the bytes are no text in any encoding that was tried",
    "markup": "by the words the text begins with",
    "empty": "there are no bytes to look at",
    "kept": "the bytes prove no other type, so the metadata decides",
    "overruled": "the bytes prove another type than the metadata, so the bytes decide",
    "agrees": "the metadata and the bytes agree",
    "bytes": "the metadata says nothing, so the bytes decide",
    "unknown": "neither the metadata nor the bytes say what this is",
    "corrected": "as somebody who knows the file corrected it",
    "corrected_lossy": "as somebody who knows the file corrected it, though some bytes are no character in it",
    "failed": "looking at the bytes failed, so the metadata alone decides",
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
