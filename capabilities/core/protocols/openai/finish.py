"""Why the model stopped, in the words of OpenAI and its like."""

from __future__ import annotations

from collections.abc import Mapping

from capabilities.core.protocols.finish import CALLS, CUT, FILTERED, WHOLE, Ending

ENDINGS: Mapping[str, Ending] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "STOP", "COMPLETE"), WHOLE),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), CALLS),
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS", "model_length", "repetition_truncation"), CUT),
    "model_context_window_exceeded": CUT,
    **dict.fromkeys(("content_filter", "sensitive"), FILTERED),
}
"""Reasons to stop."""
BROKEN: Mapping[str, int] = {"error": 500, "network_error": 502, "insufficient_system_resource": 503, "abort": 503}
"""Reasons to stop that mean that the provider failed, with the status they stand for."""
