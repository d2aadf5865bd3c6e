"""Tokens as the operations beside chat count them: OpenAI's two ways, and those of hosts that rerank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from capabilities.core.protocols.usage import read_counts
from capabilities.core.wire import Usage

TOTALS: Mapping[str, str] = {
    "prompt_tokens": "prompt_tokens",
    "input_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
INPUT: Mapping[str, str] = {
    "audio_tokens": "prompt_audio_tokens",
    "image_tokens": "prompt_image_tokens",
    "text_tokens": "prompt_text_tokens",
    "cached_tokens": "cached_tokens",
    "cache_write_tokens": "cache_write_tokens",
}
OUTPUT: Mapping[str, str] = {
    "audio_tokens": "completion_audio_tokens",
    "image_tokens": "completion_image_tokens",
    "text_tokens": "completion_text_tokens",
    "reasoning_tokens": "reasoning_tokens",
    "accepted_prediction_tokens": "accepted_prediction_tokens",
    "rejected_prediction_tokens": "rejected_prediction_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "input_tokens_details": INPUT,
    "input_token_details": INPUT,  # of transcripts
    "prompt_tokens_details": INPUT,
    "output_tokens_details": OUTPUT,
    "completion_tokens_details": OUTPUT,
}
"""From the names of a `usage` object and of its parts to those of `Usage`."""
UNREAD: Mapping[str, str] = {
    "seconds": "a length and no count of tokens",
    "type": "says whether tokens or seconds are counted",
}
"""Names that are known and not kept, and why."""


def usage_of(value: Mapping[str, Any]) -> Usage:
    """The token counts of an answer, or of the last event of one; Cohere and its like have theirs in `meta`."""
    meta = value.get("meta")
    counted = value.get("usage") or (meta.get("tokens") if isinstance(meta, dict) else None)
    if not isinstance(counted, dict):
        return Usage()
    counts: dict[str, int] = {}
    read_counts(counted, TOTALS, counts)
    for name, names in DETAILS.items():
        read_counts(counted.get(name), names, counts)
    usage = Usage(**counts)
    if usage.prompt_tokens is None and usage.completion_tokens is None:  # Jina and Voyage say the total alone
        return replace(usage, prompt_tokens=usage.total_tokens)
    return usage
