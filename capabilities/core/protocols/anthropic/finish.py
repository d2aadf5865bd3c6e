"""Why the model stopped, in Anthropic's words."""

from __future__ import annotations

from typing import Any

FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
"""Reasons to stop; one that is not here counts as stop."""


def finish_of(reason: Any, *, has_calls: bool) -> str:
    """The reason in OpenAI's words."""
    word = FINISHES.get(str(reason), "stop")
    return "tool_calls" if has_calls and word == "stop" else word
