"""Prices in yuan of Chinese hosts that no package lists, from `cny_prices.json`, each with its source and date."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from capabilities.core.prices import Price, Rates, Tier, rate_of
from capabilities.core.providers.presets import preset_for_endpoint

SORTS: Mapping[str, str] = {
    "input": "input",
    "output": "output",
    "cacheRead": "cache_read",
    "cacheWrite": "cache_write",
    "thinkingOutput": "reasoning",
}
"""Token types in the file and the gateway's names for them."""


@dataclass(frozen=True, slots=True)
class YuanRow:
    """One row of the file: its hosts and models, and the first day it is valid; None means from the beginning."""

    hosts: tuple[str, ...]
    models: tuple[str, ...]
    since: date | None
    price: Price

    def is_of(self, host: str, model: str, day: date) -> bool:
        if host not in self.hosts or (self.since is not None and day < self.since):
            return False
        return any(fnmatchcase(model, pattern) for pattern in self.models)


@lru_cache(maxsize=2000)
def yuan_price(endpoint: str, model: str, day: date) -> Price | None:
    """Return the price of a model at the endpoint's host on a day, or None if the file has no such price."""
    preset = preset_for_endpoint(endpoint)
    # Other host names of the same vendor serve other countries, where it bills in another currency.
    if preset is None or urlsplit(endpoint).hostname != urlsplit(preset.base_url).hostname:
        return None
    matching = [row for row in _rows() if row.is_of(preset.name, model.lower(), day)]
    # Prices change over time: the newest row that is valid on the day counts.
    return max(matching, key=lambda row: row.since or date.min).price if matching else None


@cache
def _rows() -> tuple[YuanRow, ...]:
    document = json.loads(files(__package__).joinpath("cny_prices.json").read_text("utf-8"))
    return tuple(_row(raw, document["currency"]) for raw in document["rows"])


def _row(raw: Mapping[str, Any], currency: str) -> YuanRow:
    tiers, threshold = [], 0
    for tier in raw["tiers"]:
        rates = {rate_name: rate_of(Decimal(tier[name])) for name, rate_name in SORTS.items() if name in tier}
        tiers.append(Tier(threshold, Rates(**rates)))
        threshold = tier["upTo"] or threshold
    since = date.fromisoformat(raw["from"]) if raw.get("from") else None
    price = Price(currency, tuple(tiers), raw["source"], date.fromisoformat(raw["checkedOn"]))
    return YuanRow(tuple(raw["hosts"]), tuple(raw["models"]), since, price)
