"""Why the model stopped, in the words of OpenAI and its like."""

from __future__ import annotations

from typing import Any

FINISHES = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "repetition_truncation": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
}
"""Reasons to stop in OpenAI's words; one that is not here counts as stop."""
BROKEN = {"error": 500, "network_error": 502, "insufficient_system_resource": 503}
"""Reasons to stop that mean that the provider failed, with the status they stand for."""


def finish_of(reason: Any, *, has_calls: bool) -> str:
    """The reason in OpenAI's words; tool calls are one whatever the provider calls it."""
    word = FINISHES.get(reason, "stop") if isinstance(reason, str) else "stop"
    return "tool_calls" if has_calls and word == "stop" else word
