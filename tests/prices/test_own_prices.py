"""Model prices that administrators enter."""

from __future__ import annotations

from typing import Any

import pytest

from capabilities.core.prices import Price, Rates, Tier, check_price, parse_price
from routing_admin.limits.prices.sheet import price_for, price_today

GOOD = {"currency": "CNY", "input": 2, "output": 8, "cacheRead": 0.4}


def test_amounts_per_million_tokens_become_rates():
    """A price per million tokens is stored as an integer, in millionths of the currency unit."""
    rates = Rates(input=2_000_000, output=8_000_000, cache_read=400_000)
    assert parse_price(GOOD) == Price("CNY", (Tier(0, rates),))
    assert check_price(GOOD) == ()


@pytest.mark.parametrize(
    ("data", "field", "constraint"),
    [
        ("2.5", "price", "type"),
        ({"input": 1, "output": 2}, "price.currency", "required"),
        ({**GOOD, "currency": "yuan"}, "price.currency", "type"),
        ({"currency": "USD", "input": 1}, "price.output", "required"),
        ({**GOOD, "input": -1}, "price.input", "range"),
        ({**GOOD, "output": True}, "price.output", "range"),
        ({**GOOD, "output": float("nan")}, "price.output", "range"),
        ({**GOOD, "cacheRead": 1e9}, "price.cacheRead", "range"),
    ],
)
def test_invalid_price_is_rejected_with_its_field(data: Any, field: str, constraint: str):
    """An invalid price is ignored completely, including its valid amounts."""
    (problem,) = check_price(data)
    assert (problem.field, problem.constraint, problem.severity) == (field, constraint, "error")
    assert not isinstance(data, dict) or parse_price(data) is None


def test_unknown_price_field_is_reported_as_a_warning():
    (problem,) = check_price({**GOOD, "discount": 0.5})
    assert (problem.field, problem.severity) == ("price.discount", "warning")
    assert parse_price({**GOOD, "discount": 0.5}) == parse_price(GOOD)


def test_empty_price_is_valid_and_parses_to_none():
    assert (check_price({}), parse_price({})) == ((), None)


def test_listed_price_applies_without_an_own_price() -> None:
    endpoint, model = "https://api.openai.com/v1", "gpt-4o"
    assert price_for({}, endpoint, model) == price_today(endpoint, model)
    own = {"currency": "USD", "input": 1, "output": 2}
    assert price_for(own, endpoint, model) == parse_price(own) != price_today(endpoint, model)
