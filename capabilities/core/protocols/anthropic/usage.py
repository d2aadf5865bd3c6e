"""Tokens as Anthropic counts them: what was read from the cache or written to it stands beside the input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols.fields import total_of
from capabilities.core.protocols.usage import read_counts
from capabilities.core.wire import Usage

TOTALS: Mapping[str, str] = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cache_read_input_tokens": "cached_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "cache_creation": {
        "ephemeral_5m_input_tokens": "cache_write_5m_tokens",
        "ephemeral_1h_input_tokens": "cache_write_1h_tokens",
    },
    "output_tokens_details": {"thinking_tokens": "reasoning_tokens"},
    "server_tool_use": {"web_search_requests": "web_search_requests", "web_fetch_requests": "web_fetch_requests"},
}
"""From the names of a `usage` object and of its parts to those of `Usage`."""
UNREAD: Mapping[str, str] = {
    "service_tier": "stands in the details of the answer",
    "inference_geo": "no count",
    "speed": "no count",
    "iterations": "the same tokens, call by call",
    "fallback_credit": "no count",
}
"""Names that are known and not kept, and why."""


def usage_of(value: Any) -> Usage:
    """The token counts; as everywhere else what was cached is a part of the prompt."""
    found: dict[str, int] = {}
    read_counts(value, TOTALS, found)
    for name, names in DETAILS.items():
        read_counts(value.get(name) if found else None, names, found)
    written = total_of(found.get("cache_write_5m_tokens"), found.get("cache_write_1h_tokens"))
    if written is not None:
        found.setdefault("cache_write_tokens", written)
    if "prompt_tokens" in found:
        read = (found["prompt_tokens"], found.get("cached_tokens"), found.get("cache_write_tokens"))
        prompt = total_of(*read)
        return Usage(
            **found | {"prompt_tokens": prompt, "total_tokens": total_of(prompt, found.get("completion_tokens"))}
        )
    return Usage(**found)
