"""Tokens as OpenAI's Responses counts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols.usage import read_counts
from capabilities.core.wire import Usage

TOTALS: Mapping[str, str] = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "input_tokens_details": {"cached_tokens": "cached_tokens", "cache_write_tokens": "cache_write_tokens"},
    "output_tokens_details": {"reasoning_tokens": "reasoning_tokens"},
}
"""From the names of a `usage` object and of its parts to those of `Usage`."""
WRITTEN: Mapping[str, str] = {"ttl_30m_tokens": "cache_write_30m_tokens", "ttl_12h_tokens": "cache_write_12h_tokens"}
"""The same for the part of `input_tokens_details` that says how long a cache keeps what was written."""


def usage_of(value: Any) -> Usage:
    """The token counts of a `usage` object."""
    if not isinstance(value, dict):
        return Usage()
    counts: dict[str, int] = {}
    read_counts(value, TOTALS, counts)
    for name, names in DETAILS.items():
        read_counts(value.get(name), names, counts)
    read = value.get("input_tokens_details")
    read_counts(read.get("cache_write_tokens_details") if isinstance(read, dict) else None, WRITTEN, counts)
    return Usage(**counts)
