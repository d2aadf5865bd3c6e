"""Limits on agents, keys and labels, as stored in their rows: allowed models, rates and budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from capabilities.core.prices import NANO, Price, Rates, Tier, rate_from_amount

MODELS = "models"
"""JSON key of the allowed models: `task:<task type>` for routes, and ids of services."""
CURRENCY = "currency"
"""JSON key of the currency in which money is counted. Costs in other currencies are converted if there is a rate."""
UNPRICED, UNPRICED_PRICE = "unpriced", "unpricedPrice"
"""JSON keys of a budget's policy for calls without a known price, and of the price that it may use instead."""
MOST = 10**15
"""Maximum amount of a limit that is not money."""
MAX_MONEY = 10**8
"""Maximum amount of a money limit, in units of its currency."""


class Meter(StrEnum):
    """A quantity that is counted for an agent's calls. The values are the names in JSON."""

    REQUESTS_PER_MINUTE = "requestsPerMinute"
    IN_FLIGHT = "inFlight"
    BYTES_PER_DAY = "bytesPerDay"
    TOKENS_PER_DAY = "tokensPerDay"
    TOKENS_PER_MONTH = "tokensPerMonth"
    MONEY_PER_DAY = "moneyPerDay"
    MONEY_PER_MONTH = "moneyPerMonth"


RATES = (Meter.REQUESTS_PER_MINUTE, Meter.IN_FLIGHT)
"""Limits that reset within a minute or when a request ends. The others are budgets."""
TOKENS = (Meter.TOKENS_PER_DAY, Meter.TOKENS_PER_MONTH)
MONEY = (Meter.MONEY_PER_DAY, Meter.MONEY_PER_MONTH)
"""Limits that are counted in nanos. Rows store them as decimal text, in units of their currency."""


class UnpricedPolicy(StrEnum):
    """A budget's policy for calls without a price, or with one that cannot be converted to the budget's currency.

    It allows the call without counting it, refuses it, or counts its tokens at the budget's own price.
    """

    ALLOW = "allow"
    REFUSE = "refuse"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """The limits on an agent, a key or a label. `most` has the maximum amounts by meter.

    `models` are the models that may be used, or None for all. Money is in nanos of `currency`, a three-letter code.
    `unpriced` is the policy for calls without a known price. `own_price` is the price of their tokens under
    `UnpricedPolicy.COUNT`.
    """

    models: frozenset[str] | None = None
    most: Mapping[Meter, int] = field(default_factory=dict)
    currency: str = ""
    unpriced: UnpricedPolicy = UnpricedPolicy.ALLOW
    own_price: Price | None = None

    @property
    def has_money(self) -> bool:
        return any(meter in self.most for meter in MONEY)

    def allows(self, name: str) -> bool:
        """Return whether a route (as `task:<task type>`) or a service (by its id) may be used."""
        return self.models is None or name in self.models


def parse_limits(stored: Mapping[str, Any]) -> AgentLimits | None:
    """Return the limits in an agent's row, or None if nothing is limited."""
    models = frozenset(stored[MODELS]) if stored.get(MODELS) else None
    amounts = {meter: _amount(meter, stored[meter]) for meter in Meter if stored.get(meter) is not None}
    if not models and not amounts:
        return None
    currency = stored.get(CURRENCY, "")
    return AgentLimits(
        models=models,
        most=amounts,
        currency=currency,
        unpriced=UnpricedPolicy(stored.get(UNPRICED, "allow")),
        own_price=_price(stored, currency),
    )


def combine_rights(*limits: AgentLimits | None) -> AgentLimits | None:
    """Return the models that all of these limits allow, or None if none of them restricts models."""
    models = [
        agent_limits.models for agent_limits in limits if agent_limits is not None and agent_limits.models is not None
    ]
    return AgentLimits(models=frozenset.intersection(*models)) if models else None


def _price(stored: Mapping[str, Any], currency: str) -> Price | None:
    if stored.get(UNPRICED) != UnpricedPolicy.COUNT:
        return None
    # The policy has one price for both input and output.
    rate = rate_from_amount(Decimal(stored[UNPRICED_PRICE]))
    return Price(currency, (Tier(0, Rates(rate, rate)),), "the budget")


def _amount(meter: Meter, stored: int | str) -> int:
    return int(Decimal(stored) * NANO) if meter in MONEY else int(stored)
