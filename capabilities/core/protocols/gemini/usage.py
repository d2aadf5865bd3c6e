"""Tokens as Gemini counts them: thoughts beside the words, what its own tools found beside the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.core.protocols.fields import filled, total_of
from capabilities.core.protocols.usage import read_counts
from capabilities.core.wire import Usage

TOTALS: Mapping[str, str] = {
    "promptTokenCount": "prompt_tokens",
    "candidatesTokenCount": "completion_tokens",
    "totalTokenCount": "total_tokens",
    "cachedContentTokenCount": "cached_tokens",
    "thoughtsTokenCount": "reasoning_tokens",
    "toolUsePromptTokenCount": "tool_tokens",
}
DETAILS: Mapping[str, Mapping[str, str]] = {
    "promptTokensDetails": {
        "TEXT": "prompt_text_tokens",
        "AUDIO": "prompt_audio_tokens",
        "IMAGE": "prompt_image_tokens",
    },
    "candidatesTokensDetails": {
        "TEXT": "completion_text_tokens",
        "AUDIO": "completion_audio_tokens",
        "IMAGE": "completion_image_tokens",
    },
}
"""From the names of `usageMetadata`, and of the modalities in its lists, to those of `Usage`."""
UNREAD: Mapping[str, str] = {
    "cacheTokensDetails": "of what sort the cached part was",
    "toolUsePromptTokensDetails": "of what sort the tools' part was",
    "trafficType": "no count",
}
UNREAD_MODALITIES = frozenset({"MODALITY_UNSPECIFIED", "VIDEO", "DOCUMENT"})
"""Names that are known and not kept; `Usage` has no place for these sorts."""


def usage_of(value: Any) -> Usage:
    """The token counts; thinking is part of what the model wrote, what its tools found part of what it read."""
    if not isinstance(value, dict):
        return Usage()
    found: dict[str, int] = {}
    read_counts(value, TOTALS, found)
    for name, names in DETAILS.items():
        if name in value:
            read_counts(_by_modality(value[name]), names, found)
    for part, whole in (("reasoning_tokens", "completion_tokens"), ("tool_tokens", "prompt_tokens")):
        if part in found:
            found[whole] = total_of(found.get(whole), found[part]) or 0
    return Usage(**found)


def _by_modality(value: Any) -> dict[str, Any]:
    each = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return {filled(item.get("modality")) or "": item.get("tokenCount") for item in each}
