"""Limits of agents, keys and labels as their rows store them: allowed names, rates and budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from capabilities.core.prices import NANO, Price, Rates, Tier, rate_of

MODELS = "models"
"""The key of the allowed names: `task:<task type>` and ids of services."""
CURRENCY = "currency"
"""The key of the currency in which money is counted. Costs in another one are converted if there is a rate."""
UNPRICED, UNPRICED_PRICE = "unpriced", "unpricedPrice"
"""The keys of what a budget of money does with a call without a known price, and of the price it may count then."""
MOST = 10**15
"""The largest amount of anything but money."""
MAX_MONEY = 10**8
"""The largest amount of money, in the unit of its currency."""


class Meter(StrEnum):
    """What is counted of an agent's calls, by its name in JSON."""

    REQUESTS_PER_MINUTE = "requestsPerMinute"
    IN_FLIGHT = "inFlight"
    BYTES_PER_DAY = "bytesPerDay"
    TOKENS_PER_DAY = "tokensPerDay"
    TOKENS_PER_MONTH = "tokensPerMonth"
    MONEY_PER_DAY = "moneyPerDay"
    MONEY_PER_MONTH = "moneyPerMonth"


RATES = (Meter.REQUESTS_PER_MINUTE, Meter.IN_FLIGHT)
"""Limits that recover soon, within a minute or when a request ends. The others are budgets."""
TOKENS = (Meter.TOKENS_PER_DAY, Meter.TOKENS_PER_MONTH)
MONEY = (Meter.MONEY_PER_DAY, Meter.MONEY_PER_MONTH)
"""Counted in nanos. Rows store decimal text, in the unit of their currency."""


class UnpricedPolicy(StrEnum):
    """What a budget of money does with a call that has no price, or none convertible to its currency.

    It allows the call uncounted, refuses it, or counts its tokens at a price of the budget's own.
    """

    ALLOW = "allow"
    REFUSE = "refuse"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """The limits of an agent, a key or a label: `models` may be used (None: all), `most` has an amount by meter.

    Money is in nanos of the currency of three letters. `unpriced` is what happens to a call without a known price;
    `own_price` what its tokens cost under `UnpricedPolicy.COUNT`.
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
        """Return whether a route, as `task:<task type>`, or a service, by its id, may be used."""
        return self.models is None or name in self.models


def limits_of(stored: Mapping[str, Any]) -> AgentLimits | None:
    """Return the limits stored in an agent's row, or None if nothing is limited."""
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


def rights_of(*limits: AgentLimits | None) -> AgentLimits | None:
    """Return what all of these limits allow, or None if none of them restricts models."""
    models = [
        agent_limits.models for agent_limits in limits if agent_limits is not None and agent_limits.models is not None
    ]
    return AgentLimits(models=frozenset.intersection(*models)) if models else None


def _price(stored: Mapping[str, Any], currency: str) -> Price | None:
    if stored.get(UNPRICED) != UnpricedPolicy.COUNT:
        return None
    # One rate for input and output.
    rate = rate_of(Decimal(stored[UNPRICED_PRICE]))
    return Price(currency, (Tier(0, Rates(rate, rate)),), "the budget")


def _amount(meter: Meter, stored: int | str) -> int:
    return int(Decimal(stored) * NANO) if meter in MONEY else int(stored)
