"""What an agent may use, as its row keeps it; absent is everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MODELS = "models"
"""The key under which the allowed names stand: `task:<task type>` and ids of services."""


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The limits of an agent: `models` are the names that it may use, empty for all."""

    models: frozenset[str] = frozenset()

    def allows(self, name: str) -> bool:
        """Whether a route, as `task:<task type>`, or a service by its id may be used."""
        return not self.models or name in self.models


def limits_of(stored: Mapping[str, Any]) -> AgentLimits | None:
    """The limits as an agent's row keeps them; None where nothing is limited."""
    models = frozenset(stored.get(MODELS) or ())
    return AgentLimits(models) if models else None
