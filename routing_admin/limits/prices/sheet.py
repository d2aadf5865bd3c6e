"""Determine a current price: the administrator's, else the host's price in yuan, else the one in price lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.utils import timezone

from capabilities.core.prices import FREE, Cost, Price, calculate_cost, parse_price
from capabilities.core.providers.catalogue import FactVerdict
from capabilities.core.providers.catalogue.price_verdicts import judge_price, merge_prices
from capabilities.core.providers.origins import is_embedded
from capabilities.core.wire import Usage
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.limits.prices.listed import TIERS, catalogued_prices, changes_by_hour, listed_price, yuan_price


class PriceSheet:
    """The prices under one snapshot of the configuration. Prices set by administrators are parsed only once."""

    def __init__(self, state: Snapshot) -> None:
        self._configuration = configuration = state.configuration
        self._own = {
            (service.provider, service.model): parse_price(service.price)
            for service in reversed(configuration.services)
            if service.price and service is configuration.service_at(service.provider, service.model)
        }

    def price(self, provider: str, model: str, at: datetime, tier: str = "") -> Price | None:
        own = self._own.get((provider, model))
        if own is not None:
            return own
        found = self._configuration.provider(provider)
        return None if found is None else list_price(found.endpoint, model, at, tier)

    def find_contested(self, provider: str, model: str) -> Price | None:
        """Return a model's price today if the price lists disagree about it, otherwise None.

        A price set by an administrator is never contested.
        """
        price = self.price(provider, model, datetime.now(UTC))
        return price if price and judge_price(price) is FactVerdict.CONTESTED else None


def list_price(endpoint: str, model: str, at: datetime, tier: str = "") -> Price | None:
    """Return a model's price in price lists, ignoring prices set by administrators.

    Models that are built into this process are free.
    """
    if is_embedded(endpoint):
        return FREE
    yuan = yuan_price(endpoint, model, at.date())
    if yuan is not None:
        return yuan
    listed = listed_price(endpoint, model, at, tier)
    # Only genai-prices distinguishes service tiers and hours of the day. If the price depends on either, ignore the
    # other price lists.
    is_exclusive = tier in TIERS or changes_by_hour(endpoint, model)
    return listed if is_exclusive else _weigh(endpoint, model, listed)


@lru_cache(maxsize=2000)
def _weigh(endpoint: str, model: str, first: Price | None) -> Price | None:
    catalogued = catalogued_prices(endpoint, model)
    return merge_prices([first, *catalogued] if first else catalogued)


sheet_of: Callable[[Snapshot], PriceSheet] = lru_cache(maxsize=2)(PriceSheet)
"""Return the price sheet of a snapshot. The sheets of the last two snapshots are cached."""


def cost_now(provider: str, model: str, usage: Usage, at: datetime, tier: str = "") -> Cost | None:
    """Return a call's cost at the prices in the newest configuration, or None without token counts or a price."""
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return None
    price = sheet_of(snapshot.current()).price(provider, model, at, tier)
    return calculate_cost(usage, price) if price else None


def price_today(endpoint: str, model: str) -> Price | None:
    return list_price(endpoint, model, timezone.now())


def price_for(own: Mapping[str, Any], endpoint: str, model: str) -> Price | None:
    return parse_price(own) or price_today(endpoint, model)
