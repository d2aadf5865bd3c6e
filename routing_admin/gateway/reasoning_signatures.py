"""Encode the origin of reasoning, the model that produced it, in ids and signatures that callers send back.

Callers return `reasoning_details` and `extra_content` unchanged or not at all, and would drop additional fields.
Therefore a reasoning block's id contains its origin and position, and a signature is prefixed with its origin.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from capabilities.core.json_codec import is_bounded, read_repaired_json
from capabilities.core.protocols.thought_fields import DETAILS, GOOGLE, message_fields, parse_signature, parse_thoughts
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm

_LABELLED = re.compile(r"([0-9a-f]{12}):(\d{1,9}):(\d{1,9}):(.*)", re.DOTALL)
_SIGNED = re.compile(r"([0-9a-f]{12}):(.+)", re.DOTALL)


def label_thoughts(thoughts: Iterable[ReasoningBlock], origin: str) -> list[ReasoningBlock]:
    """Return reasoning blocks for the caller, labelled with their origin."""
    return [_label(thought, origin) for thought in thoughts] if origin else list(thoughts)


def _label(thought: ReasoningBlock, origin: str) -> ReasoningBlock:
    if thought.dialect == GOOGLE:
        return replace(thought, proof=label_signature(thought.proof, origin))
    return replace(thought, id=f"{origin}:{thought.offset}:{thought.calls}:{thought.id or ''}")


def read_thoughts(details: Any) -> tuple[ReasoningBlock, ...]:
    """Return the blocks in `reasoning_details` that a caller sent back; blocks without our label have no origin."""
    return tuple(_unlabel(thought) for thought in parse_thoughts(details))


def read_own_thoughts(value: Mapping[str, Any]) -> tuple[ReasoningBlock, ...]:
    """Return the reasoning blocks in an assistant message: its `reasoning_details` and Google's signature."""
    thoughts = read_thoughts(value[DETAILS]) if value.get(DETAILS) else ()
    if signature := parse_signature(value):
        proof, origin = read_signature(signature)
        return (*thoughts, ReasoningBlock(ThoughtForm.ENCRYPTED, "", proof, dialect=GOOGLE, origin=origin))
    return thoughts


def _unlabel(thought: ReasoningBlock) -> ReasoningBlock:
    label = _LABELLED.fullmatch(thought.id or "")
    if label is None:
        return thought
    origin, offset, calls, own_id = label.groups()
    return replace(thought, origin=origin, offset=int(offset), calls=int(calls), id=own_id or None)


def label_signature(signature: str | None, origin: str) -> str | None:
    """Return a signature for the caller, labelled with its origin."""
    return f"{origin}:{signature}" if signature and origin else signature


def read_signature(text: str | None) -> tuple[str | None, str]:
    """Split a signature that a caller sent back into signature and origin; the origin is "" without our label."""
    labelled = _SIGNED.fullmatch(text or "")
    if labelled is None:
        # Vendors' signatures are plain base64, so a colon means a damaged label.
        return (None if text and ":" in text else text), ""
    return labelled[2], labelled[1]


CARRIER = "routing:"
"""Prefix of packed reasoning; no vendor's base64 starts with it."""


def pack_thoughts(thoughts: Sequence[ReasoningBlock], origin: str) -> str:
    """Pack reasoning blocks and their origin into an opaque string, which callers send back without reading it."""
    fields = message_fields(label_thoughts(thoughts, origin))
    return CARRIER + base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()


def unpack_thoughts(text: str) -> tuple[ReasoningBlock, ...]:
    """Return the packed reasoning blocks, or none if the string was changed or written by another system."""
    if not text.startswith(CARRIER):
        return ()
    try:
        packed = base64.urlsafe_b64decode(text.removeprefix(CARRIER))
        fields = read_repaired_json(packed) if is_bounded(packed) else None
    except (ValueError, RecursionError):
        return ()
    return read_own_thoughts(fields) if isinstance(fields, dict) else ()
