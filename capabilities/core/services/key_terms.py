"""What an agent's key may use beside its agent's limits, and how its calls are labelled; as its row keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capabilities.core.services.agent_limits import AgentLimits, limits_of
from capabilities.core.services.labels import NO_LABELS, LabelKind, Labels

LIMITS = "limits"
"""The key under which the limits stand, beside `team` and `project`."""


@dataclass(frozen=True, slots=True)
class KeyTerms:
    """A key's own limits, None for none, and the labels of its calls."""

    limits: AgentLimits | None = None
    labels: Labels = NO_LABELS


def terms_of(stored: Mapping[str, Any]) -> KeyTerms:
    """The terms as a key's row keeps them."""
    if not stored:
        return KeyTerms()
    labels = Labels(stored.get(LabelKind.TEAM, ""), stored.get(LabelKind.PROJECT, ""))
    return KeyTerms(limits_of(stored.get(LIMITS) or {}), NO_LABELS if labels == NO_LABELS else labels)
