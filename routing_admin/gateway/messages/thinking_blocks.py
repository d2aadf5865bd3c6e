"""Convert reasoning to thinking blocks in an answer, and convert the blocks that clients send back in the next turn.

Anthropic's reasoning keeps its format. Other vendors' reasoning is sent as redacted thinking, whose data only this
gateway reads. In both cases, the signature is prefixed with the reasoning's origin, the model that produced it, so that
the reasoning is sent back only to this model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.message import ChatRequest
from capabilities.core.protocols.anthropic.replies import DIALECT
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm
from routing_admin.gateway.fields import Object
from routing_admin.gateway.reasoning_signatures import (
    CARRIER,
    label_signature,
    pack_thoughts,
    read_signature,
    unpack_thoughts,
)

THINKING = ("thinking", "redacted_thinking")
UNSIGNED = f"{CARRIER}unsigned"
"""Signature for unsigned thinking, because clients drop a block whose signature is empty."""


def shows_thinking(chat: ChatRequest) -> bool:
    """Return whether an answer may contain thinking: in Anthropic's API only if thinking or tools are requested.

    A client that requested neither expects text in the first block (`content[0].text`), which a thinking block lacks.
    """
    thinking = chat.extra.get("thinking")
    is_requested = isinstance(thinking, Mapping) and thinking.get("type") != "disabled"
    return is_requested or bool(chat.tools)


def thinking_block(text: str, signature: str | None = None) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature or UNSIGNED}


def is_carrier(thought: ReasoningBlock) -> bool:
    """Return whether another vendor's model produced the reasoning, which is then sent as opaque data."""
    return thought.dialect != DIALECT


def build_block(thought: ReasoningBlock, origin: str) -> dict[str, Any]:
    """Return the block for reasoning that the next turn must send back to its model."""
    if is_carrier(thought):
        return {"type": "redacted_thinking", "data": pack_thoughts([thought], origin)}
    proof = label_signature(thought.proof, origin)
    if thought.form is ThoughtForm.ENCRYPTED:
        return {"type": "redacted_thinking", "data": proof or ""}
    return thinking_block(thought.text, proof)


def parse_block(block: Object, offset: int, calls: int) -> tuple[ReasoningBlock, ...]:
    """Return the reasoning in a block that follows `offset` characters of text and `calls` calls.

    An unsigned block contains none.
    """
    if block.get("type") == "thinking":
        proof, origin = read_signature(_text(block, "signature"))
        text = _text(block, "thinking") or ""
        return (
            (ReasoningBlock(ThoughtForm.TEXT, text, proof, offset, calls, dialect=DIALECT, origin=origin),)
            if proof
            else ()
        )
    data = _text(block, "data") or ""
    if data.startswith(CARRIER):
        return unpack_thoughts(data)
    proof, origin = read_signature(data)
    if not proof:
        return ()
    return (ReasoningBlock(ThoughtForm.ENCRYPTED, "", proof, offset, calls, dialect=DIALECT, origin=origin),)


def _text(block: Object, key: str) -> str | None:
    value = block.get(key)
    return value if isinstance(value, str) else None
