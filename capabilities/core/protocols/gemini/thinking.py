"""Convert `reasoning_effort` for Gemini models, with a table of model names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_LEVELS = MappingProxyType(
    {"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high"}
)
_BUDGETS = MappingProxyType({"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576})


def _levels(**overrides: str) -> Mapping[str, Any]:
    levels = {**_LEVELS, "max": "high", **overrides}
    return MappingProxyType({effort: {"thinkingLevel": level} for effort, level in levels.items()})


def _budgets(none: int) -> Mapping[str, Any]:
    budgets = {"none": none, **_BUDGETS, "max": 24576}
    return MappingProxyType({effort: {"thinkingBudget": tokens} for effort, tokens in budgets.items()})


# The first pattern that matches a model's name determines the thinkingConfig for each effort. No thinkingConfig is sent
# to other models. Source: Google's pages on thinking and on compatibility with OpenAI (2026-11). Gemini 2.5 has
# thinking budgets, and later models have thinking levels. 2.5 Pro cannot disable thinking. 3 Pro has only low and high,
# and no Pro model has `minimal`.
CONFIGS: tuple[tuple[re.Pattern[str], Mapping[str, Any]], ...] = tuple(
    (re.compile(pattern), configs)
    for pattern, configs in (
        (r"gemini-2\.5-pro", _budgets(128)),
        (r"gemini-2\.5", _budgets(0)),
        (r"gemini-[12](\D|$)|gemini-pro($|-vision)|gemma|learnlm", {"none": {}}),
        (r"gemini-3-pro", _levels(none="low", minimal="low", medium="high")),
        (r"gemini-[\d.]+-pro", _levels(none="low", minimal="low")),
        (r"gemini-3\.8-flash", _levels(none="low", minimal="low")),
        (r"gemini-\d", _levels()),
        (r"gemini-(flash|pro)", _levels(none="low", minimal="low")),
    )
)


def thinking_config(model: str, effort: Any) -> Mapping[str, Any] | None:
    """Return the thinkingConfig for an effort: empty if none is needed, None if the effort is not supported."""
    name = model.rpartition("/")[2].lower()
    configs = next((configs for pattern, configs in CONFIGS if pattern.search(name)), {})
    config: Mapping[str, Any] | None = configs.get(effort) if isinstance(effort, str) else None
    return config
