"""Why the model stopped, in Gemini's words."""

from __future__ import annotations

from typing import Any

FINISHES = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"),
        "content_filter",
    ),
}
"""Reasons to stop; one that is not here counts as stop, one of an image as a filter's."""
BROKEN_CALLS = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})
"""Reasons to stop that mean a function call which the model wrote wrong."""


def finish_of(reason: Any, *, has_calls: bool) -> str:
    """The reason in OpenAI's words."""
    word = str(reason or "STOP")
    known = FINISHES.get(word, "content_filter" if word.startswith("IMAGE_") else "stop")
    return "tool_calls" if has_calls and known == "stop" else known
