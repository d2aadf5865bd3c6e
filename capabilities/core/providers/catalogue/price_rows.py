"""Read model prices from LiteLLM's map and models.dev's list, and encode them for the catalogue file.

A price is valid only at the host that charges it, so rows are stored by host and by the host's name for the model,
never by the model's maker. Amounts are in dollars per million tokens. A row is a string with each source's price,
separated by semicolons in the order of the sources. In `2.5,10,0.25|200000:5,15,0.5;2.5,10`, the first source states
rates in the order of the fields of `Rates`, followed by the rates above 200,000 tokens. The second source states only
the input and output rates.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from capabilities.core.prices import Price, Rates, Tier, amount_from_rate, rate_from_amount
from capabilities.core.providers.catalogue.names import HOSTS, YUAN_HOSTS
from capabilities.core.providers.catalogue.price_verdicts import SORTS
from capabilities.core.providers.catalogue.sources import MODES

CURRENCY = "USD"
LITELLM_RATES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
    "input_audio": "input_cost_per_audio_token",
    "input_image": "input_cost_per_image_token",
    "output_audio": "output_cost_per_audio_token",
    "output_image": "output_cost_per_image_token",
    "reasoning": "output_cost_per_reasoning_token",
}
"""Maps kinds of tokens to LiteLLM's field for the price of one token."""
MODELS_DEV_RATES = {
    "input": "input",
    "output": "output",
    "cache_read": "cache_read",
    "cache_write": "cache_write",
    "input_audio": "input_audio",
    "output_audio": "output_audio",
    "reasoning": "reasoning",
}
"""Maps kinds of tokens to models.dev's field for the price of a million tokens."""
ABOVE = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
IMPLAUSIBLE_PRICE = 10_000
"""A price of at least this many dollars per million tokens must be an error. In November 2026, the most expensive model
cost 600."""

Tiers = tuple[Tier, ...]
PricedModel = tuple[str, str, Tiers]
"""The host's name in the source, a model's name, and the model's price tiers."""


def read_litellm_prices(models: Mapping[str, Any]) -> Iterator[PricedModel]:
    for name, facts in models.items():
        if not isinstance(facts, Mapping) or facts.get("mode") not in MODES | {"embedding"}:
            continue
        host = str(facts.get("litellm_provider", ""))
        tiers = _litellm_tiers(facts)
        if tiers:
            yield host, name, tiers


def _litellm_tiers(facts: Mapping[str, Any]) -> Tiers:
    # For some models, LiteLLM has a list of ranges instead of fields with "above" in their names.
    steps = facts.get("tiered_pricing")
    if isinstance(steps, list) and steps:
        rates_above = {
            int(step["range"][0]): _rates(step, LITELLM_RATES, 1_000_000) for step in steps if "range" in step
        }
        return _tiers(rates_above)
    rates_above = {0: _rates(facts, LITELLM_RATES, 1_000_000)}
    for thousands in (int(match[1]) for key in facts if (match := ABOVE.fullmatch(key))):
        names = {sort: f"{name}_above_{thousands}k_tokens" for sort, name in LITELLM_RATES.items()}
        rates_above[thousands * 1000] = _rates(facts, names, 1_000_000)
    return _tiers(rates_above)


def read_models_dev_prices(providers: Mapping[str, Any]) -> Iterator[PricedModel]:
    for host, provider in providers.items():
        for name, facts in provider["models"].items():
            cost = facts.get("cost")
            if not isinstance(cost, Mapping):
                continue
            long = cost.get("context_over_200k")
            rates_above = {0: _rates(cost, MODELS_DEV_RATES, 1)}
            if isinstance(long, Mapping):
                rates_above[200_000] = _rates(long, MODELS_DEV_RATES, 1)
            if tiers := _tiers(rates_above):
                yield host, name, tiers


def _rates(facts: Mapping[str, Any], names: Mapping[str, str], times: int) -> Rates:
    amounts = {sort: _amount(facts.get(name)) for sort, name in names.items()}
    rates = {sort: rate_from_amount(amount * times) for sort, amount in amounts.items() if amount is not None}
    # Sources write 0 for unknown prices, so a price of 0 for input or output is treated as unknown.
    return Rates(**{sort: rate for sort, rate in rates.items() if rate or sort not in ("input", "output")})


def _amount(value: Any) -> Decimal | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        return None
    # repr returns the digits as written in the file.
    return Decimal(repr(value))


def _tiers(rates_above: Mapping[int, Rates]) -> Tiers:
    base = rates_above.get(0, Rates())
    amounts = [rate for rates in rates_above.values() for sort in SORTS if (rate := getattr(rates, sort)) is not None]
    # Ignore models without an input price or with an implausible price.
    if base.input is None or max(amounts) >= IMPLAUSIBLE_PRICE * 1_000_000:
        return ()
    return tuple(Tier(threshold, rates_above[threshold]) for threshold in sorted(rates_above))


def group_prices(priced: Iterable[PricedModel], alias_field: str) -> dict[str, dict[str, Tiers]]:
    """Group the prices of one source by host and by the host's name for the model.

    Only hosts that bill in dollars are included. `alias_field` is the `Host` field with this source's names for a host.
    The first name with a price for the model is used. Models with several prices, such as one per region, are excluded.
    """
    by_host: dict[str, dict[str, set[Tiers]]] = defaultdict(lambda: defaultdict(set))
    for host, name, tiers in priced:
        by_host[host][name.lower()].add(tiers)
    grouped: dict[str, dict[str, Tiers]] = {}
    for host_row in HOSTS:
        aliases = [alias for alias in getattr(host_row, alias_field) if host_row.in_dollars and alias not in YUAN_HOSTS]
        # The first alias takes precedence, so its rows are added last.
        rows: dict[str, set[Tiers]] = {}
        for alias in reversed(aliases):
            alias_rows: dict[str, set[Tiers]] = defaultdict(set)
            for name, tier_sets in by_host[alias].items():
                alias_rows[_called(name, (*aliases, host_row.name))] |= tier_sets
            rows |= alias_rows
        # If the source states different prices for a model, the price is unknown.
        grouped[host_row.name] = {
            name: tiers for name, tier_sets in rows.items() if len(tier_sets) == 1 for tiers in tier_sets
        }
    return grouped


def _called(name: str, aliases: Sequence[str]) -> str:
    first, slash, rest = name.partition("/")
    # LiteLLM writes the host's name before the model's name.
    return rest if slash and first in aliases else name


def encode_prices(sources: Sequence[Mapping[str, Mapping[str, Tiers]]]) -> dict[str, dict[str, str]]:
    """Encode the prices of several sources as one string for each host and model name, sorted by both."""
    encoded: dict[str, dict[str, str]] = {}
    for host in sorted({host for rows in sources for host, names in rows.items() if names}):
        names = sorted({name for rows in sources for name in rows.get(host, ())})
        encoded[host] = {
            name: ";".join(_encode(rows.get(host, {}).get(name, ())) for rows in sources).rstrip(";") for name in names
        }
    return encoded


def _encode(tiers: Tiers) -> str:
    return "|".join((f"{tier.above}:" if tier.above else "") + _encode_rates(tier.rates) for tier in tiers)


def _encode_rates(rates: Rates) -> str:
    amounts = (getattr(rates, sort) for sort in SORTS)
    return ",".join("" if rate is None else f"{amount_from_rate(rate).normalize():f}" for rate in amounts).rstrip(",")


def decode_prices(text: str, labels: Sequence[str]) -> tuple[Price, ...]:
    """Decode a row into prices, each with its source's label. Sources without a price are omitted."""
    return tuple(
        Price(CURRENCY, tuple(_decode(tier) for tier in part.split("|")), label)
        for label, part in zip(labels, text.split(";"), strict=False)
        if part
    )


def _decode(text: str) -> Tier:
    threshold, _, amounts = text.rpartition(":")
    rates = (rate_from_amount(Decimal(amount)) if amount else None for amount in amounts.split(","))
    return Tier(int(threshold or 0), Rates(*rates))
