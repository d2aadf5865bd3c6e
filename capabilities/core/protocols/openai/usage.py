"""Tokens as OpenAI and its like count them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols.fields import count_of, total_of
from capabilities.core.protocols.usage import read_counts
from capabilities.core.wire import Usage

TOTALS: Mapping[str, str] = {
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
    "cached_tokens": "cached_tokens",  # Kimi
    "prompt_cache_hit_tokens": "cached_tokens",  # DeepSeek
}
PROMPT: Mapping[str, str] = {
    "cached_tokens": "cached_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "audio_tokens": "prompt_audio_tokens",
    "image_tokens": "prompt_image_tokens",
    "text_tokens": "prompt_text_tokens",
}
COMPLETION: Mapping[str, str] = {
    "reasoning_tokens": "reasoning_tokens",
    "audio_tokens": "completion_audio_tokens",
    "image_tokens": "completion_image_tokens",
    "text_tokens": "completion_text_tokens",
    "accepted_prediction_tokens": "accepted_prediction_tokens",
    "rejected_prediction_tokens": "rejected_prediction_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "prompt_tokens_details": PROMPT,
    "completion_tokens_details": COMPLETION,
}
"""From the names of a `usage` object and of its parts to those of `Usage`."""


def usage_of(value: Any) -> Usage:
    """The token counts of a `usage` object."""
    if not isinstance(value, dict):
        return Usage()
    found: dict[str, int] = {}
    read_counts(value, TOTALS, found)
    for name, names in DETAILS.items():
        read_counts(value.get(name), names, found)
    if "prompt_tokens" not in found and "prompt_cache_miss_tokens" in value:  # DeepSeek counts both sorts apart
        hit, miss = found.get("cached_tokens"), count_of(value["prompt_cache_miss_tokens"])
        return Usage(total_of(hit, miss), **found)
    return Usage(**found)
