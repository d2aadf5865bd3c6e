"""Limits on agents, keys and labels, as stored in the database: allowed models, rates and budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from capabilities.core.prices import NANO, Price, Rates, Tier, rate_from_amount

MODELS = "models"
"""JSON key of the allowed models: routes as `task:<task type>`, and services by id."""
CURRENCY = "currency"
"""JSON key of the currency of a money limit. Costs in other currencies are converted if the exchange rate is known."""
UNPRICED, UNPRICED_PRICE = "unpriced", "unpricedPrice"
"""JSON keys. `UNPRICED` is the policy for calls without a known price. `UNPRICED_PRICE` is the price that the policy
may use for the tokens of such calls."""
MAX_AMOUNT = 10**15
"""Maximum value of a limit on requests, bytes or tokens."""
MAX_MONEY = 10**8
"""Maximum value of a limit on money, in units of its currency."""


class Meter(StrEnum):
    """A quantity that can be limited. The values are the names in JSON."""

    REQUESTS_PER_MINUTE = "requestsPerMinute"
    IN_FLIGHT = "inFlight"
    BYTES_PER_DAY = "bytesPerDay"
    TOKENS_PER_DAY = "tokensPerDay"
    TOKENS_PER_MONTH = "tokensPerMonth"
    MONEY_PER_DAY = "moneyPerDay"
    MONEY_PER_MONTH = "moneyPerMonth"


RATES = (Meter.REQUESTS_PER_MINUTE, Meter.IN_FLIGHT)
"""Limits that reset within a minute or when a request ends. All other limits are budgets."""
TOKENS = (Meter.TOKENS_PER_DAY, Meter.TOKENS_PER_MONTH)
MONEY = (Meter.MONEY_PER_DAY, Meter.MONEY_PER_MONTH)
"""Limits on money. `AgentLimits` has them in nanos, and the database as decimal text in units of their currency."""


class UnpricedPolicy(StrEnum):
    """How a money budget treats a call whose price is unknown or cannot be converted to its currency.

    It allows the call without counting it, refuses the call, or counts its tokens at the budget's own price.
    """

    ALLOW = "allow"
    REFUSE = "refuse"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """The limits on an agent, a key or a label. `maximums` maps each limited quantity to its maximum.

    `models` are the routes and services that may be used, or None for all. Money is in nanos of `currency`, a
    three-letter code. `unpriced` is the policy for calls without a known price. Under `UnpricedPolicy.COUNT`,
    `own_price` is the price of their tokens.
    """

    models: frozenset[str] | None = None
    maximums: Mapping[Meter, int] = field(default_factory=dict)
    currency: str = ""
    unpriced: UnpricedPolicy = UnpricedPolicy.ALLOW
    own_price: Price | None = None

    @property
    def has_money(self) -> bool:
        return any(meter in self.maximums for meter in MONEY)

    def allows(self, name: str) -> bool:
        """Return whether a route (`task:<task type>`) or a service (its id) may be used."""
        return self.models is None or name in self.models


def parse_limits(stored: Mapping[str, Any]) -> AgentLimits | None:
    """Return the limits that are stored in a database row, or None if nothing is limited."""
    models = frozenset(stored[MODELS]) if stored.get(MODELS) else None
    amounts = {meter: _amount(meter, stored[meter]) for meter in Meter if stored.get(meter) is not None}
    if not models and not amounts:
        return None
    currency = stored.get(CURRENCY, "")
    return AgentLimits(
        models=models,
        maximums=amounts,
        currency=currency,
        unpriced=UnpricedPolicy(stored.get(UNPRICED, "allow")),
        own_price=_price(stored, currency),
    )


def combine_rights(*limits: AgentLimits | None) -> AgentLimits | None:
    """Combine limits into the models that all of them allow. Return None if none of them restricts the models."""
    models = [
        agent_limits.models for agent_limits in limits if agent_limits is not None and agent_limits.models is not None
    ]
    return AgentLimits(models=frozenset.intersection(*models)) if models else None


def _price(stored: Mapping[str, Any], currency: str) -> Price | None:
    if stored.get(UNPRICED) != UnpricedPolicy.COUNT:
        return None
    # A budget's own price is the same for input and output.
    rate = rate_from_amount(Decimal(stored[UNPRICED_PRICE]))
    return Price(currency, (Tier(0, Rates(rate, rate)),), "the budget")


def _amount(meter: Meter, stored: int | str) -> int:
    return int(Decimal(stored) * NANO) if meter in MONEY else int(stored)
