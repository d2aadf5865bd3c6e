"""What Anthropic answers as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from capabilities.core.message import ToolCall
from capabilities.core.protocols.anthropic.finish import finish_of
from capabilities.core.protocols.errors import bad_shape, failure_inside, object_of
from capabilities.core.protocols.fields import count, filled, total_of
from capabilities.core.protocols.finish import EXPLAINS_SILENCE
from capabilities.core.wire import Answer, Failure, Fault, Usage
from capabilities.core.worded import worded

SIGNED = "anthropic:"
"""Marks a signature as this protocol's, so that no other one takes it for its own."""


def decode(status: int, headers: Mapping[str, str], body: bytes, now: float | None = None) -> Answer | Failure:
    """The outcome of a whole response."""
    value = object_of(status, headers, body, now)
    if isinstance(value, Failure):
        return value
    if value.get("type") == "error" or (value.get("error") and "content" not in value):
        return failure_inside(value)
    content = value.get("content")
    if not isinstance(content, list):
        return bad_shape(worded("the answer has no content blocks"))
    return _answer(value, [block for block in content if isinstance(block, dict)])


def _answer(value: dict[str, Any], blocks: list[dict[str, Any]]) -> Answer | Failure:
    text = "".join(words_of(block, "text", "text") for block in blocks)
    thoughts = "".join(words_of(block, "thinking", "thinking") for block in blocks)
    calls = _calls(blocks, _signature(blocks))
    finish = finish_of(value.get("stop_reason"), has_calls=bool(calls))
    if finish not in EXPLAINS_SILENCE and not (text or thoughts or calls):
        return Failure(Fault.EMPTY_CONTENT, worded("the model said nothing"), 200)
    usage = usage_of(value.get("usage"))
    model, identity = value.get("model"), value.get("id")
    return Answer(text, calls, thoughts or None, None, finish, usage, filled(model), filled(identity))


def words_of(block: Mapping[str, Any], kind: str, name: str) -> str:
    """The text under `name` of a block of that kind; empty where there is none."""
    words = block.get(name)
    return words if block.get("type") == kind and isinstance(words, str) else ""


def _signature(blocks: list[dict[str, Any]]) -> str | None:
    """The proof of the thoughts, where there is one block of them: joined ones could not be shown again."""
    signed = [block for block in blocks if block.get("type") == "thinking" and block.get("signature")]
    return SIGNED + str(signed[0]["signature"]) if len(signed) == 1 else None


def _calls(blocks: list[dict[str, Any]], signature: str | None) -> tuple[ToolCall, ...]:
    """The tool calls; the first one carries the proof of the thoughts before it."""
    calls: list[ToolCall] = []
    for block in blocks:
        if block.get("type") == "tool_use" and isinstance(block.get("name"), str):
            arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
            identity = filled(block.get("id")) or f"call_{len(calls)}"
            calls.append(ToolCall(identity, block["name"], arguments, None if calls else signature))
    return tuple(calls)


def usage_of(value: Any) -> Usage:
    """The token counts: what was cached is counted apart there, and is part of the prompt here."""
    read = count(value, "cache_read_input_tokens")
    prompt = count(value, "input_tokens")
    if prompt is not None:
        prompt = total_of(prompt, count(value, "cache_creation_input_tokens"), read)
    completion = count(value, "output_tokens")
    total = total_of(prompt, completion) if prompt is not None and completion is not None else None
    return Usage(prompt, completion, total, read, count(value, "output_tokens_details", "thinking_tokens"))
