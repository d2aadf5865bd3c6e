"""Why the model stopped, in Anthropic's words."""

from __future__ import annotations

from collections.abc import Mapping

from capabilities.core.protocols.finish import CALLS, CUT, FILTERED, UNFINISHED, WHOLE, Ending

ENDINGS: Mapping[str, Ending] = {
    "end_turn": WHOLE,
    "stop_sequence": WHOLE,
    "tool_use": CALLS,
    "max_tokens": CUT,
    "model_context_window_exceeded": CUT,
    "refusal": FILTERED,
    "pause_turn": UNFINISHED,  # the provider's own tools want another call: with words it is a part of an answer
    "compaction": UNFINISHED,
}
"""Reasons to stop."""
