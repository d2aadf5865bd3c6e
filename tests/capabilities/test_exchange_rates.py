"""Amounts are converted only with configured exchange rates: directly, inversely and through the common currency."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from capabilities.core.exchange import ExchangeRate, ExchangeTable, check_rate
from capabilities.core.prices import parse_price

DOLLAR = ExchangeRate("USD", "CNY", "7.1", "2026-11-22", "bank")
EURO = ExchangeRate("EUR", "CNY", "8.2", "2026-11-22", "bank")
TABLE = ExchangeTable((DOLLAR, EURO))
TODAY = date(2026, 11, 23)


@pytest.mark.parametrize(
    ("nanos", "currency", "into", "expected"),
    [
        (1_000, "USD", "CNY", 7_100),
        (7_100, "CNY", "USD", 1_000),
        (7_100, "EUR", "USD", 8_200),
        (5, "CNY", "CNY", 5),
        (5, "JPY", "JPY", 5),
        (5, "JPY", "CNY", None),
        (5, "CNY", "JPY", None),
        (0, "XXX", "CNY", 0),
    ],
)
def test_amount_is_converted_directly_inversely_and_through_a_common_currency(
    nanos: int, currency: str, into: str, expected: int | None
):
    assert TABLE.convert(nanos, currency, into) == expected


def test_currency_total_is_none_if_one_amount_cannot_be_converted():
    assert TABLE.total({"USD": 1_000, "CNY": 100, "XXX": 0}) == 7_200
    assert TABLE.total({"USD": 1_000, "JPY": 1}) is None
    assert ExchangeTable().total({"USD": 1_000}) is None


def test_prices_of_all_token_types_are_converted_to_another_currency():
    price = parse_price({"currency": "USD", "input": 2, "output": 10})
    assert price is not None
    converted = TABLE.price_in(price, "CNY")
    assert converted is not None
    assert (converted.currency, converted.rates_for(1).input, converted.rates_for(1).output) == (
        "CNY",
        14_200_000,
        71_000_000,
    )
    assert converted.rates_for(1).cache_read is None
    assert TABLE.price_in(price, "JPY") is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"currency": "usd"}, "currency"),
        ({"currency": "CNY"}, "currency"),
        ({"into": "XXX"}, "into"),
        ({"rate": "0"}, "rate"),
        ({"rate": "-1"}, "rate"),
        ({"rate": "7,1"}, "rate"),
        ({"rate": "1e3"}, "rate"),
        ({"day": "2026-11-24"}, "day"),
        ({"day": "today"}, "day"),
        ({"source": " "}, "source"),
    ],
)
def test_invalid_exchange_rate_is_reported_at_its_field(change: dict[str, str], field: str):
    assert [problem.field for problem in check_rate(replace(DOLLAR, **change), (), TODAY)] == [field]


def test_exchange_rates_must_share_one_target_currency():
    """If the rates led to several target currencies, there would be several totals."""
    assert [*check_rate(EURO, [DOLLAR], TODAY)] == []
    reverse_rate = ExchangeRate("CNY", "EUR", "0.12", "2026-11-22", "bank")
    assert [problem.field for problem in check_rate(reverse_rate, [DOLLAR], TODAY)] == ["into"]
