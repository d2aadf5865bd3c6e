"""Why a model stopped, in the words all protocols come to (OpenAI's): what they mean for an answer without words."""

from __future__ import annotations

EXPLAINS_SILENCE = frozenset({"length", "content_filter"})
"""Reasons to stop that make an answer of no words an answer; to announce tool calls and make none is no reason."""
