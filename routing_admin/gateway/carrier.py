"""Thoughts of any vendor in one opaque text, for callers that give back what they were given and read none of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from capabilities.core.json_codec import is_bounded, read_mended_json
from capabilities.core.protocols.thought_fields import message_fields
from capabilities.core.thoughts import ReasoningBlock
from routing_admin.gateway.reasoning_signatures import label_thoughts, read_own_thoughts

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
