"""What an agent may use, and how much of what in which time, as its row keeps it; absent is without end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MODELS = "models"
"""The key under which the allowed names stand: `task:<task type>` and ids of services."""
MOST = 10**15
"""The largest amount of anything."""


class Meter(StrEnum):
    """What is counted of an agent's calls, as JSON names it."""

    REQUESTS_PER_MINUTE = "requestsPerMinute"
    IN_FLIGHT = "inFlight"
    BYTES_PER_DAY = "bytesPerDay"
    TOKENS_PER_DAY = "tokensPerDay"
    TOKENS_PER_MONTH = "tokensPerMonth"


RATES = (Meter.REQUESTS_PER_MINUTE, Meter.IN_FLIGHT)
"""What is soon there again; the others are budgets."""
TOKENS = (Meter.TOKENS_PER_DAY, Meter.TOKENS_PER_MONTH)


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The limits of an agent: `models` are the names that it may use, empty for all; `most` has an amount by meter."""

    models: frozenset[str] = frozenset()
    most: Mapping[Meter, int] = field(default_factory=dict)

    def allows(self, name: str) -> bool:
        """Whether a route, as `task:<task type>`, or a service by its id may be used."""
        return not self.models or name in self.models


def limits_of(stored: Mapping[str, Any]) -> AgentLimits | None:
    """The limits as an agent's row keeps them; None where nothing is limited."""
    models = frozenset(stored.get(MODELS) or ())
    most = {meter: int(stored[meter]) for meter in Meter if stored.get(meter) is not None}
    return AgentLimits(models, most) if models or most else None
