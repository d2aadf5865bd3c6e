"""The cost of token usage, in whole billionths (nanos) of a currency unit. Each kind of token has its own rate.

The cost is None if token counts or rates are missing.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.prices import (
    MAX_NANOS,
    NANO,
    Cost,
    Price,
    Rates,
    Tier,
    amount_from_rate,
    amount_text,
    calculate_cost,
    rate_from_amount,
)
from capabilities.core.wire import Usage


def price(**amounts: str) -> Price:
    return Price("USD", (Tier(0, Rates(**{name: rate_from_amount(Decimal(text)) for name, text in amounts.items()})),))


PLAIN = price(input="2.5", output="10")
CACHING = price(input="3", output="15", cache_read="0.3", cache_write="3.75", cache_write_1h="6")
SOUNDS = price(input="2.5", output="10", input_audio="40", output_audio="80")


@pytest.mark.parametrize(
    ("usage", "price_of_model", "dollars", "saved"),
    [
        (Usage(1_000_000, 0), PLAIN, "2.5", "0"),
        (Usage(1000, 100), PLAIN, "0.0035", "0"),
        # Without a rate of their own, cached tokens are charged at the input rate.
        (Usage(1000, 100, cached_tokens=500), PLAIN, "0.0035", "0"),
        (Usage(1000, 100, cached_tokens=800), CACHING, "0.00234", "0.00216"),
        (Usage(1000, 0, cache_write_tokens=1000), CACHING, "0.00375", "-0.00075"),
        (Usage(1000, 0, cache_write_tokens=1000, cache_write_1h_tokens=400), CACHING, "0.00465", "-0.00165"),
        (Usage(1000, 1000, prompt_audio_tokens=200, completion_audio_tokens=500), SOUNDS, "0.055", "0"),
        (Usage(None, 100), PLAIN, "0.001", "0"),
        # If there are more cached tokens than tokens in total, they are reduced to the total.
        (Usage(10, 0, cached_tokens=99), CACHING, "0.000003", "0.000027"),
    ],
)
def test_each_token_type_is_charged_at_its_own_rate(usage: Usage, price_of_model: Price, dollars: str, saved: str):
    """The expected costs were computed by hand from prices per million tokens."""
    assert calculate_cost(usage, price_of_model) == Cost(
        int(Decimal(dollars) * NANO), "USD", int(Decimal(saved) * NANO)
    )


def test_cost_is_none_without_token_counts():
    assert calculate_cost(Usage(), PLAIN) is None


def test_cost_is_none_if_some_tokens_have_no_price():
    assert calculate_cost(Usage(10, 10), price(input="1")) is None
    assert calculate_cost(Usage(10, 0), price(input="1")) == Cost(10_000, "USD")


@pytest.mark.parametrize(("count", "dollars"), [(200_000, "0.6"), (200_001, "1.200006")])
def test_all_tokens_of_a_long_request_are_charged_at_the_higher_tier(count: int, dollars: str):
    low, high = (Rates(rate_from_amount(Decimal(text)), 0) for text in ("3", "6"))
    cost = calculate_cost(Usage(count, 0), Price("USD", (Tier(0, low), Tier(200_000, high))))
    assert cost == Cost(int(Decimal(dollars) * NANO), "USD")


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_cost_never_exceeds_all_tokens_at_the_highest_rate(reads: int, writes: int, cached: int):
    cost = calculate_cost(Usage(reads, writes, cached_tokens=cached, cache_write_tokens=cached), CACHING)
    assert cost is not None
    assert 0 <= cost.nanos <= (reads * 6 + writes * 15) * 1000


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "0.00"),
        (3_500_000, "0.0035"),
        (123, "0.00000012"),
        (1, "0.000000001"),
        (450_000_000, "0.45"),
        (12_345_678_901, "12.35"),
        (1_234_000_000_000, "1,234.00"),
        (-600_000, "-0.0006"),
    ],
)
def test_amount_text_has_at_least_two_decimal_places(nanos: int, text: str):
    assert amount_text(nanos) == text


@given(st.decimals(0, 10_000, places=6))
def test_rate_keeps_six_decimal_places(amount: Decimal):
    """No vendor's price has more than six decimal places."""
    rate = rate_from_amount(amount)
    assert rate is not None
    assert amount_from_rate(rate) == amount


@given(st.integers(0, 2**70), st.integers(0, 2**70))
def test_cost_is_capped_so_that_sums_fit_their_column(prompt, completion):
    """The sum of thousands of capped costs still fits its database column."""
    cost = calculate_cost(Usage(prompt, completion), price(input="1000000", output="1000000"))
    assert cost is not None
    assert 0 <= cost.nanos <= MAX_NANOS
    assert 9000 * MAX_NANOS < 2**63
