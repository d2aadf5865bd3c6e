"""Prices in yuan depend on the date and the input length, and apply only at hosts in China."""

from __future__ import annotations

from datetime import date

import pytest

from capabilities.core.prices import NANO, Price, calculate_cost
from capabilities.core.wire import Usage
from routing_admin.limits.prices.listed import YuanRow, yuan_price

NOW = date(2026, 11, 20)
BEIJING = "https://dashscope.aliyuncs.com/compatible-mode/v1"


@pytest.mark.parametrize(("count", "yuan"), [(32_000, "0.08"), (32_001, "0.128004"), (200_000, "1.4")])
def test_longer_request_is_charged_at_its_tier(count: int, yuan: str):
    """Qwen3-Max costs 2.5, 4 or 7 yuan per million tokens, depending on the request's length."""
    price = yuan_price(BEIJING, "qwen3-max", NOW)
    assert price is not None
    cost = calculate_cost(Usage(count, 0), price)
    assert cost is not None
    assert (cost.nanos, cost.currency) == (round(float(yuan) * NANO), "CNY")


@pytest.mark.parametrize(
    ("endpoint", "model"),
    [
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen3-max"),
        ("http://127.0.0.1:9/v1", "qwen3-max"),
        (BEIJING, "unknown-model"),
    ],
)
def test_yuan_price_is_none_for_hosts_outside_china(endpoint: str, model: str):
    """Alibaba's Bailian has another host abroad, which bills in dollars."""
    assert yuan_price(endpoint, model, NOW) is None


@pytest.mark.parametrize(
    ("host", "day", "matches"),
    [("a.example", 20, True), ("a.example", 19, False), ("b.example", 20, False)],
)
def test_yuan_row_applies_to_its_hosts_from_its_first_day(host: str, day: int, matches: bool) -> None:
    row = YuanRow(("a.example",), ("qwen*",), date(2026, 11, 20), Price("CNY", ()))
    assert row.matches(host, "qwen3-max", date(2026, 11, day)) is matches


def test_yuan_price_has_a_source_and_a_date():
    price = yuan_price(BEIJING, "Qwen3-Max", NOW)
    assert price is not None
    assert price.source.startswith("https://")
    assert price.checked_on is not None


def test_first_price_tier_begins_at_zero_and_each_tier_where_the_previous_ends():
    price = yuan_price(BEIJING, "qwen3-max", NOW)
    assert price is not None
    assert [tier.above for tier in price.tiers] == [0, 32_000, 128_000]
