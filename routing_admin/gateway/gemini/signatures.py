"""What a model wants to be shown again, as the `thoughtSignature` of a part.

A signature is bytes to Gemini's clients: ours are a text with the proof of the part's call, and the thoughts of any
vendor that came before it, each with the mark of who gave it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from capabilities.core.protocols.gemini.replies import DIALECT
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from capabilities.core.values import value_class
from routing_admin.gateway.carrier import pack_thoughts, unpack_thoughts
from routing_admin.gateway.gemini.fields import decode_text
from routing_admin.gateway.reasoning_signatures import label_signature, read_signature

FORMAT = "routing-1"
"""The first line of a signature of ours; the proof of a call and the packed thoughts follow, a line each."""


@value_class
class PartSignature:
    """What came back in a signature: thoughts, and the proof of the part's own call with its origin."""

    thoughts: tuple[ReasoningBlock, ...] = ()
    proof: str | None = None
    origin: str = ""


def write_signature(thoughts: Sequence[ReasoningBlock], proof: str | None, origin: str) -> dict[str, str]:
    """Return the field of a part that holds them; none for nothing."""
    if not thoughts and not proof:
        return {}
    lines = (FORMAT, label_signature(proof, origin) or "", pack_thoughts(thoughts, origin) if thoughts else "")
    return {"thoughtSignature": base64.b64encode("\n".join(lines).encode("utf-8", "replace")).decode()}


def read_part_signature(text: str | None, offset: int, calls: int, *, of_call: bool) -> PartSignature:
    """Return what a signature says behind so many characters and calls; one that is not ours is Gemini's own."""
    if not text:
        return PartSignature()
    format_, _, rest = decode_text(text).partition("\n")
    if format_ == FORMAT:
        labelled, _, packed = rest.partition("\n")
        proof, origin = read_signature(labelled or None)
        return PartSignature(unpack_thoughts(packed), proof, origin)
    if of_call:
        return PartSignature(proof=text)
    return PartSignature((ReasoningBlock(ThoughtForm.ENCRYPTED, "", text, offset, calls, dialect=DIALECT),))
