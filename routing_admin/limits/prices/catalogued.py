"""Prices that the catalogue's sources list (LiteLLM and models.dev, in dollars): those of the host at an address."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache, lru_cache
from urllib.parse import urlsplit

from capabilities.core.prices import Price
from capabilities.core.providers.catalogue.answers import read_data
from capabilities.core.providers.catalogue.names import dollar_host
from capabilities.core.providers.catalogue.price_rows import decode_prices


@lru_cache(maxsize=2000)
def catalogued_prices(endpoint: str, model: str) -> tuple[Price, ...]:
    """Return what each source says that a model costs at the host of an endpoint, by the name it is called there."""
    host = dollar_host(urlsplit(endpoint).hostname or "")
    labels, prices = _read()
    row = prices.get(host or "", {}).get(model.strip().lower().removeprefix("models/"))
    return decode_prices(row, labels) if row else ()


@cache
def _read() -> tuple[tuple[str, ...], Mapping[str, Mapping[str, str]]]:
    document = json.loads(gzip.decompress(read_data("prices.json.gz")))
    return tuple(f"{note['name']} {note['edition']}" for note in document["sources"]), document["prices"]
