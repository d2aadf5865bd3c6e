"""Listed prices by host: from the package genai-prices (MIT), from the catalogue, and from `cny_prices.json`.

No network access is needed. The first two have prices in dollars; `cny_prices.json` has the prices of Chinese hosts in
yuan, which no package lists, each with its source and date. Rates are converted once per model: the package's own
calculation takes fifteen times as long and would run for every call. `tests/prices/test_listed_prices.py` compares both
calculations.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from capabilities.core.prices import Price, Rates, Tier, rate_from_amount
from capabilities.core.providers.catalogue.answers import read_data
from capabilities.core.providers.catalogue.names import dollar_host
from capabilities.core.providers.catalogue.price_rows import decode_prices
from capabilities.core.providers.presets import preset_for_endpoint
from capabilities.runtime import owned

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice


SORTS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "input_audio": "input_audio_mtok",
    "input_image": "input_image_mtok",
    "output_audio": "output_audio_mtok",
    "output_image": "output_image_mtok",
    "reasoning": "output_reasoning_mtok",
}
"""Maps the gateway's token types to the names that genai-prices uses for their prices."""
TIERS = frozenset({"flex", "priority", "batch"})
"""Service tiers that may have different prices."""
SOURCE = f"genai-prices {version('genai-prices')}"

_prices = owned(dict[int, Price | None])
"""Converted prices by the `id` of the price object in genai-prices. These objects live as long as the process."""


def listed_price(endpoint: str, model: str, at: datetime, tier: str = "") -> Price | None:
    """Return a model's price at the endpoint's host from genai-prices, or None if it is not listed.

    `tier` is the service tier that the provider named in its response. A tier may have a different price.
    """
    info = _find(endpoint, model)
    if info is None:
        return None
    standard = info.get_prices(at)
    if tier in TIERS:
        return convert_price(info.get_prices(at, {"processing": tier}))
    prices = _prices()
    if id(standard) not in prices:
        prices[id(standard)] = convert_price(standard)
    return prices[id(standard)]


@lru_cache(maxsize=2000)
def _find(endpoint: str, model: str) -> ModelInfo | None:
    # Import the package only when it is first used, because that takes 35 ms and 6 MB of memory.
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(model, None, None, endpoint)[1]
    except LookupError:
        return None


@lru_cache(maxsize=2000)
def changes_by_hour(endpoint: str, model: str) -> bool:
    """Return whether the price of a model in genai-prices depends on the hour of the day.

    No other price list distinguishes hours.
    """
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import TimeOfDateConstraint

    info = _find(endpoint, model)
    own = get_snapshot().find_provider(None, None, endpoint).models if info else ()
    # For DeepSeek models on Azure, genai-prices uses DeepSeek's own row, whose time-of-day prices do not apply there.
    prices = info.prices if info and info in own and isinstance(info.prices, list) else ()
    return any(isinstance(price.constraint, TimeOfDateConstraint) for price in prices)


def convert_price(prices: ModelPrice) -> Price | None:
    """Convert a price from genai-prices to our rates; return None if the model is not priced per token."""
    from genai_prices.types import TieredPrices

    amounts = {sort: getattr(prices, name) for sort, name in SORTS.items()}
    if amounts["input"] is None and amounts["output"] is None:
        return None
    starts = {step.start for value in amounts.values() if isinstance(value, TieredPrices) for step in value.tiers}

    def amount(value: Decimal | TieredPrices | None, threshold: int) -> Decimal | None:
        if not isinstance(value, TieredPrices):
            return value
        return next((step.price for step in reversed(value.tiers) if step.start <= threshold), value.base)

    tiers = (
        Tier(threshold, Rates(**{sort: rate_from_amount(amount(value, threshold)) for sort, value in amounts.items()}))
        for threshold in sorted({0, *starts})
    )
    return Price("USD", tuple(tiers), SOURCE)


# Prices in dollars from the catalogue's sources (LiteLLM and models.dev), by host.


@lru_cache(maxsize=2000)
def catalogued_prices(endpoint: str, model: str) -> tuple[Price, ...]:
    """Return the prices of all sources for a model at the endpoint's host; `model` is the host's name for it."""
    host = dollar_host(urlsplit(endpoint).hostname or "")
    labels, prices = _read()
    row = prices.get(host or "", {}).get(model.strip().lower().removeprefix("models/"))
    return decode_prices(row, labels) if row else ()


@cache
def _read() -> tuple[tuple[str, ...], Mapping[str, Mapping[str, str]]]:
    document = json.loads(gzip.decompress(read_data("prices.json.gz")))
    return tuple(f"{note['name']} {note['edition']}" for note in document["sources"]), document["prices"]


YUAN_SORTS: Mapping[str, str] = {
    "input": "input",
    "output": "output",
    "cacheRead": "cache_read",
    "cacheWrite": "cache_write",
    "thinkingOutput": "reasoning",
}
"""Maps token types in `cny_prices.json` to the gateway's names for them."""


@dataclass(frozen=True, slots=True)
class YuanRow:
    """One row of `cny_prices.json`; `since` is the first day on which it is valid, or None if it was always valid."""

    hosts: tuple[str, ...]
    models: tuple[str, ...]
    since: date | None
    price: Price

    def matches(self, host: str, model: str, day: date) -> bool:
        if host not in self.hosts or (self.since is not None and day < self.since):
            return False
        return any(fnmatchcase(model, pattern) for pattern in self.models)


@lru_cache(maxsize=2000)
def yuan_price(endpoint: str, model: str, day: date) -> Price | None:
    """Return a model's price at the endpoint's host on a day, or None if `cny_prices.json` does not contain it."""
    preset = preset_for_endpoint(endpoint)
    # A vendor's other hosts serve other countries, which the vendor bills in another currency.
    if preset is None or urlsplit(endpoint).hostname != urlsplit(preset.base_url).hostname:
        return None
    matching = [row for row in _rows() if row.matches(preset.name, model.lower(), day)]
    # Prices change over time. Of all rows that are valid on this day, the newest one applies.
    return max(matching, key=lambda row: row.since or date.min).price if matching else None


@cache
def _rows() -> tuple[YuanRow, ...]:
    document = json.loads(files(__package__).joinpath("cny_prices.json").read_text("utf-8"))
    return tuple(_row(raw, document["currency"]) for raw in document["rows"])


def _row(raw: Mapping[str, Any], currency: str) -> YuanRow:
    tiers, threshold = [], 0
    for tier in raw["tiers"]:
        rates = {
            rate_name: rate_from_amount(Decimal(tier[name])) for name, rate_name in YUAN_SORTS.items() if name in tier
        }
        tiers.append(Tier(threshold, Rates(**rates)))
        threshold = tier["upTo"] or threshold
    since = date.fromisoformat(raw["from"]) if raw.get("from") else None
    price = Price(currency, tuple(tiers), raw["source"], date.fromisoformat(raw["checkedOn"]))
    return YuanRow(tuple(raw["hosts"]), tuple(raw["models"]), since, price)
