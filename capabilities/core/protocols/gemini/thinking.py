"""How much a Gemini model is to think: `reasoning_effort` in the words that model has, as a table by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_LEVELS = MappingProxyType(
    {"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high"}
)
_BUDGETS = MappingProxyType({"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576})


def _levels(**other: str) -> Mapping[str, Any]:
    levels = {**_LEVELS, "max": "high", **other}
    return MappingProxyType({effort: {"thinkingLevel": level} for effort, level in levels.items()})


def _budgets(none: int) -> Mapping[str, Any]:
    budgets = {"none": none, **_BUDGETS, "max": 24576}
    return MappingProxyType({effort: {"thinkingBudget": tokens} for effort, tokens in budgets.items()})


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
"""The first row whose words are in a model's name has the thinkingConfig of every effort it knows; others get none.

Source: Google's pages on thinking and on compatibility with OpenAI (2026-11): levels from 3 on, numbers in 2.5, where
Pro cannot be told to stop thinking; 3 Pro knows low and high alone, no Pro `minimal`.
"""


def thinking_config(model: str, effort: Any) -> Mapping[str, Any] | None:
    """The thinkingConfig of an effort: empty where nothing needs saying, None where the model has no word for it."""
    name = model.rpartition("/")[2].lower()
    configs = next((configs for pattern, configs in CONFIGS if pattern.search(name)), {})
    config: Mapping[str, Any] | None = configs.get(effort) if isinstance(effort, str) else None
    return config
