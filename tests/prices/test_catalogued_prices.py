"""Prices from the bundled price lists (genai-prices, LiteLLM, models.dev), and which list applies to a call."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from capabilities.core.prices import Price
from capabilities.core.providers.catalogue import FactVerdict
from capabilities.core.providers.catalogue.price_verdicts import judge_price
from routing_admin.limits.prices.listed import catalogued_prices
from routing_admin.limits.prices.sheet import list_price

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
MISTRAL, DEEPINFRA = "https://api.mistral.ai/v1", "https://api.deepinfra.com/v1/openai"


def find(endpoint: str, model: str, tier: str = "") -> Price:
    price = list_price(endpoint, model, NOW, tier)
    assert price is not None
    return price


def test_host_missing_from_genai_prices_is_priced_by_another_list() -> None:
    """The package `genai-prices` does not contain this host. Another list contains the model under the host's name for
    it, ignoring case.
    """
    price = find(DEEPINFRA, "meta-llama/Llama-3.3-70B-Instruct-Turbo")
    assert price.source.split()[0] in {"LiteLLM", "models.dev"}
    assert price.currency == "USD"


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1:9/v1/openai",
        "https://openai.relay.example/v1",
        "https://api.deepinfra.com.evil.example/v1",
        "https://api.siliconflow.cn/v1",
        "",
    ],
)
def test_catalogued_price_applies_only_to_its_own_host(endpoint: str) -> None:
    """A relay sets its own prices, even if its name resembles a vendor's. Hosts in China bill in yuan."""
    assert catalogued_prices(endpoint, "gpt-4o") == ()
    assert catalogued_prices(endpoint, "meta-llama/llama-3.3-70b-instruct-turbo") == ()


def test_contested_price_is_taken_from_the_first_list_unless_two_others_agree() -> None:
    """The lists disagree about the prices of these two models. docs/prices.md explains both cases."""
    magistral, large = find(MISTRAL, "magistral-medium-latest"), find(MISTRAL, "mistral-large-latest")
    assert (judge_price(magistral), judge_price(large)) == (FactVerdict.CONTESTED, FactVerdict.CONTESTED)
    assert [(price.source.split()[0], price.tiers[0].rates.input) for price in (magistral, *magistral.others)] == [
        ("genai-prices", 2_000_000),
        ("LiteLLM", 1_500_000),
        ("models.dev", 2_000_000),
    ]
    assert [(price.source.split()[0], price.tiers[0].rates.input) for price in (large, *large.others)] == [
        ("LiteLLM", 500_000),
        ("genai-prices", 2_000_000),
        ("models.dev", 500_000),
    ]


def test_service_tier_price_is_taken_only_from_a_list_with_tiers() -> None:
    """Lists without service tiers have only the standard price, but a tier costs half or twice as much."""
    assert find("https://api.openai.com/v1", "gpt-5.4", "priority").others == ()
    assert list_price(DEEPINFRA, "meta-llama/Llama-3.3-70B-Instruct-Turbo", NOW, "flex") is None


def test_price_that_depends_on_the_hour_is_not_compared_with_lists_without_hours() -> None:
    """DeepSeek doubles its prices between 1:00 and 4:00 and between 6:00 and 10:00 UTC. Price lists without hours are
    not compared with them.
    """
    prices = [list_price("https://api.deepseek.com", "deepseek-v4-pro", NOW.replace(hour=hour)) for hour in (2, 12)]
    assert [(price.tiers[0].rates.input, price.others) for price in prices if price] == [(1_320_000, ()), (660_000, ())]
    assert find("https://mine.openai.azure.com/openai", "deepseek-v4-pro").tiers[0].rates.input == 1_740_000


@pytest.mark.parametrize(
    ("endpoint", "models"),
    [
        (DEEPINFRA, ["deepseek-ai/DeepSeek-V3.1", "Qwen/Qwen3-32B"]),
        ("https://api.x.ai/v1", ["grok-4", "grok-3-mini"]),
        ("https://generativelanguage.googleapis.com/v1beta", ["gemini-2.5-pro", "models/gemini-2.5-flash"]),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ["qwen-plus", "qwen3-max"]),
    ],
)
def test_models_listed_in_only_one_price_list_are_priced(endpoint: str, models: list[str]) -> None:
    assert [model for model in models if list_price(endpoint, model, NOW) is None] == []
