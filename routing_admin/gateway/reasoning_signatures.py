"""Where a model's thoughts are from, written into the names that a caller sends back with them.

A caller keeps `reasoning_details` and `extra_content` as they came, or loses them whole; fields of our own it would
not know. So the id of a thought says its origin and its place, and a signature has its origin before it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from capabilities.core.json_codec import is_bounded, read_mended_json
from capabilities.core.protocols.thought_fields import DETAILS, GOOGLE, message_fields, signature_of, thoughts_of
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm

_LABELLED = re.compile(r"([0-9a-f]{12}):(\d{1,9}):(\d{1,9}):(.*)", re.DOTALL)
_SIGNED = re.compile(r"([0-9a-f]{12}):(.+)", re.DOTALL)


def label_thoughts(thoughts: Iterable[ReasoningBlock], origin: str) -> list[ReasoningBlock]:
    """The thoughts as they are given out."""
    return [_label(each, origin) for each in thoughts] if origin else list(thoughts)


def _label(thought: ReasoningBlock, origin: str) -> ReasoningBlock:
    if thought.dialect == GOOGLE:
        return replace(thought, proof=label_signature(thought.proof, origin))
    return replace(thought, id=f"{origin}:{thought.offset}:{thought.calls}:{thought.id or ''}")


def read_thoughts(details: Any) -> tuple[ReasoningBlock, ...]:
    """The thoughts of `reasoning_details` that came back; without our label nobody knows whose they are."""
    return tuple(_unlabel(each) for each in thoughts_of(details))


def read_own_thoughts(value: Mapping[str, Any]) -> tuple[ReasoningBlock, ...]:
    """What a message of a model's own says of its thoughts: `reasoning_details`, and Google's proof beside them."""
    thoughts = read_thoughts(value[DETAILS]) if value.get(DETAILS) else ()
    if signature := signature_of(value):
        proof, origin = read_signature(signature)
        return (*thoughts, ReasoningBlock(ThoughtForm.ENCRYPTED, "", proof, dialect=GOOGLE, origin=origin))
    return thoughts


def _unlabel(thought: ReasoningBlock) -> ReasoningBlock:
    label = _LABELLED.fullmatch(thought.id or "")
    if label is None:
        return thought
    origin, offset, calls, own = label.groups()
    return replace(thought, origin=origin, offset=int(offset), calls=int(calls), id=own or None)


def label_signature(signature: str | None, origin: str) -> str | None:
    """A signature as it is given out."""
    return f"{origin}:{signature}" if signature and origin else signature


def read_signature(text: str | None) -> tuple[str | None, str]:
    """A signature that came back, and its origin; empty where it is a vendor's own, which are all plain base64."""
    labelled = _SIGNED.fullmatch(text or "")
    if labelled is None:
        return (None if text and ":" in text else text), ""
    return labelled[2], labelled[1]


# Thoughts of any vendor in one opaque text, for callers that give back what they were given and read none of it.

CARRIER = "routing:"
"""What it begins with; no vendor's base64 does."""


def pack_thoughts(thoughts: Sequence[ReasoningBlock], origin: str) -> str:
    """The thoughts with the mark of who thought them."""
    fields = message_fields(label_thoughts(thoughts, origin))
    return CARRIER + base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()


def unpack_thoughts(text: str) -> tuple[ReasoningBlock, ...]:
    """The thoughts in such a text; one that is not ours, or that somebody changed, holds none."""
    if not text.startswith(CARRIER):
        return ()
    try:
        packed = base64.urlsafe_b64decode(text.removeprefix(CARRIER))
        fields = read_mended_json(packed) if is_bounded(packed) else None
    except (ValueError, RecursionError):
        return ()
    return read_own_thoughts(fields) if isinstance(fields, dict) else ()
