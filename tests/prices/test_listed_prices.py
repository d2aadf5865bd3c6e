"""Prices from the package `genai-prices` give the same costs after their conversion to the gateway's rates."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from genai_prices import Usage as ListedUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider

from capabilities.core.prices import NANO, calculate_cost
from capabilities.core.wire import Usage
from routing_admin.limits.prices.listed import SORTS, convert_price, listed_price

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com/v1"


def listed_models() -> list[tuple[Provider, ModelInfo]]:
    return [(provider, info) for provider in get_snapshot().providers for info in provider.models]


def has_only_counted_rates(info: ModelInfo) -> bool:
    """Return whether the model has prices only for what the gateway counts. It does not count pages or cached audio."""
    names = {name for name, amount in vars(info.get_prices(NOW)).items() if amount is not None}
    return names <= set(SORTS.values()) | {"requests_kcount", "web_searches_kcount", "storage_searches_kcount"}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Usage(1000, 100), {"input_tokens": 1000, "output_tokens": 100}),
        (
            Usage(1000, 100, cached_tokens=700, cache_write_tokens=200),
            {"input_tokens": 1000, "output_tokens": 100, "cache_read_tokens": 700, "cache_write_tokens": 200},
        ),
        (Usage(300_000, 100), {"input_tokens": 300_000, "output_tokens": 100}),
    ],
    ids=["plain", "cached", "long"],
)
def test_cost_of_every_listed_model_equals_the_cost_from_genai_prices(ours: Usage, theirs: dict[str, int]):
    compared = 0
    for provider, info in listed_models():
        prices = info.get_prices(NOW)
        if prices.input_mtok is None or prices.output_mtok is None or not has_only_counted_rates(info):
            continue
        expected = info.calc_price(ListedUsage(**theirs), provider, genai_request_timestamp=NOW)
        price = convert_price(prices)
        assert price is not None
        cost = calculate_cost(ours, price)
        request = Decimal(prices.requests_kcount or 0) / 1000
        assert cost is not None
        assert abs(Decimal(cost.nanos) / NANO - (expected.total_price - request)) <= Decimal(1) / NANO, info.id
        compared += 1
    # A smaller number would mean that the conversion has lost some models.
    assert compared > 1500


@pytest.mark.parametrize(
    ("endpoint", "model", "dollars"),
    [
        (OPENAI, "gpt-4o", "0.0035"),
        (f"{OPENAI}/chat/completions", "gpt-4o-2024-08-06", "0.0035"),
        (ANTHROPIC, "claude-sonnet-4-5", "0.0045"),
    ],
)
def test_listed_price_is_found_by_host_url_and_model(endpoint: str, model: str, dollars: str):
    price = listed_price(endpoint, model, NOW)
    assert price is not None
    cost = calculate_cost(Usage(1000, 100), price)
    assert cost is not None
    assert (cost.nanos, cost.currency) == (int(Decimal(dollars) * NANO), "USD")
    assert price.source.startswith("genai-prices 0.")


@pytest.mark.parametrize(
    ("endpoint", "model"), [("http://127.0.0.1:9/v1", "gpt-4o"), (OPENAI, "my-own"), ("", "gpt-4o")]
)
def test_unlisted_host_or_model_has_no_listed_price(endpoint: str, model: str):
    assert listed_price(endpoint, model, NOW) is None


def test_price_list_contains_prices_that_depend_on_the_date():
    changed = [
        info
        for _, info in listed_models()
        if str(info.get_prices(datetime(2024, 1, 1, tzinfo=UTC))) != str(info.get_prices(NOW))
    ]
    assert changed


def test_genai_prices_documentation_example_has_the_same_cost():
    expected = calc_price(ListedUsage(input_tokens=1000, output_tokens=100), model_ref="gpt-4o", provider_id="openai")
    price = listed_price(OPENAI, "gpt-4o", NOW)
    assert price is not None
    cost = calculate_cost(Usage(1000, 100), price)
    assert cost is not None
    assert Decimal(cost.nanos) / NANO == expected.total_price
