"""A model's prices in several lists are compared, to choose one and to find prices on which the lists disagree."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.prices import Price, Rates, Tier, rate_from_amount
from capabilities.core.providers.catalogue import FactVerdict
from capabilities.core.providers.catalogue.price_rows import (
    decode_prices,
    encode_prices,
    group_prices,
    read_litellm_prices,
    read_models_dev_prices,
)
from capabilities.core.providers.catalogue.price_verdicts import find_contested, judge_price, merge_prices


def price_with_tiers(source: str, *tiers: tuple[int, dict[str, str]], currency: str = "USD") -> Price:
    """Return a list's price. Each tier has a threshold in tokens, and amounts per million tokens as decimal strings."""
    rates = [
        (above, {sort: rate_from_amount(Decimal(text)) for sort, text in amounts.items()}) for above, amounts in tiers
    ]
    return Price(currency, tuple(Tier(above, Rates(**tier_rates)) for above, tier_rates in rates), source)


def price_without_tiers(source: str, **amounts: str) -> Price:
    return price_with_tiers(source, (0, amounts))


@pytest.mark.parametrize(
    ("prices", "verdict", "contested", "counts"),
    [
        ([price_without_tiers("a", input="2", output="6")], "one_source", set(), "a"),
        (
            [price_without_tiers("a", input="2", output="6"), price_without_tiers("b", input="2", output="6")],
            "agreed",
            set(),
            "a",
        ),
        (
            [price_without_tiers("a", input="0.333", output="6"), price_without_tiers("b", input="0.3333", output="6")],
            "agreed",
            set(),
            "a",
        ),
        (
            [price_without_tiers("a", input="2", output="6"), price_without_tiers("b", input="1.5", output="6")],
            "contested",
            {"input"},
            "a",
        ),
        (
            [
                price_without_tiers("a", input="2", output="6"),
                price_without_tiers("b", input="0.5", output="1.5"),
                price_without_tiers("c", input="0.5"),
            ],
            "contested",
            {"input", "output"},
            "b",
        ),
        (
            [
                price_without_tiers("a", input="2", cache_read="0.2"),
                price_without_tiers("b", input="2", cache_read="0.5"),
                price_without_tiers("c", input="2"),
            ],
            "contested",
            {"cache_read"},
            "a",
        ),
        (
            [price_without_tiers("a", input="2"), price_without_tiers("b", input="2", cache_read="0.5")],
            "agreed",
            set(),
            "a",
        ),
    ],
    ids=["one", "same", "rounded", "two", "two against one", "cache", "silent"],
)
def test_first_price_list_is_chosen_unless_only_another_price_is_confirmed(
    prices: list[Price], verdict: str, contested: set[str], counts: str
) -> None:
    """An amount that only one list states, such as for cached tokens, contradicts no other list."""
    chosen = merge_prices(prices)
    assert chosen is not None
    assert (judge_price(chosen).value, find_contested(chosen), chosen.source) == (verdict, contested, counts)
    assert {chosen.source, *(other.source for other in chosen.others)} == {price.source for price in prices}


def test_price_tiers_are_compared_by_amounts_and_not_by_thresholds() -> None:
    """The thresholds are not compared, because models.dev only knows "over 200k". A missing tier contradicts
    nothing.
    """
    long = price_with_tiers("a", (0, {"input": "2"}), (272_000, {"input": "4"}))
    same = price_with_tiers("b", (0, {"input": "2"}), (200_000, {"input": "4"}))
    other = price_with_tiers("c", (0, {"input": "2"}), (200_000, {"input": "5"}))
    verdicts = [merge_prices([long, price]) for price in (same, price_without_tiers("d", input="2"), other)]
    assert [judge_price(price).value for price in verdicts if price] == ["agreed", "agreed", "contested"]


def test_prices_in_different_currencies_never_agree() -> None:
    """Amounts are not converted between currencies, so two yuan never agree with two dollars."""
    chosen = merge_prices(
        [price_without_tiers("a", input="2"), price_with_tiers("b", (0, {"input": "2"}), currency="CNY")]
    )
    assert chosen is not None
    assert judge_price(chosen) is FactVerdict.CONTESTED


def test_administrator_price_is_never_contested_and_no_list_gives_no_price() -> None:
    assert merge_prices([]) is None
    assert judge_price(price_without_tiers("", input="2")) is FactVerdict.ADMINISTRATOR


AMOUNTS = st.none() | st.sampled_from([1_000, 500_000, 504_000, 1_000_000, 2_000_000])
PRICES = st.builds(
    lambda rates, long: (Tier(0, rates),) + ((Tier(200_000, long),) if long else ()),
    st.builds(Rates, AMOUNTS, AMOUNTS, AMOUNTS),
    st.none() | st.builds(Rates, AMOUNTS, AMOUNTS),
)


@given(
    st.lists(PRICES, min_size=1, max_size=4).flatmap(lambda prices: st.tuples(st.just(prices), st.permutations(prices)))
)
def test_price_verdict_does_not_depend_on_the_order_of_the_lists(pair: tuple[list[object], list[object]]) -> None:
    """The order decides which of the agreeing lists is chosen, but not whether lists agree."""
    chosen = [merge_prices([Price("USD", tiers, "list") for tiers in prices]) for prices in pair]  # type: ignore[arg-type]
    assert chosen[0] is not None
    assert chosen[1] is not None
    assert judge_price(chosen[0]) is judge_price(chosen[1])
    assert find_contested(chosen[0]) == find_contested(chosen[1])


def litellm(name: str, host: str = "openai", **facts: object) -> dict[str, object]:
    return {name: {"litellm_provider": host, "mode": "chat", **facts}}


@given(st.decimals("0.001", "600", places=3), st.decimals("0.001", "600", places=3), st.decimals(0, 60, places=3))
def test_price_per_token_is_converted_to_the_price_per_million(
    reads: Decimal, writes: Decimal, cached: Decimal
) -> None:
    """LiteLLM states prices per token and models.dev per million tokens, both as binary floating-point numbers."""
    per_token = litellm(
        "m",
        input_cost_per_token=float(reads) / 1e6,
        output_cost_per_token=float(writes) / 1e6,
        cache_read_input_token_cost=float(cached) / 1e6,
        input_cost_per_token_above_200k_tokens=2 * float(reads) / 1e6,
    )
    cost = {"input": float(reads), "output": float(writes), "cache_read": float(cached)}
    per_million = {"openai": {"models": {"m": {"cost": {**cost, "context_over_200k": {"input": 2 * float(reads)}}}}}}
    assert list(read_litellm_prices(per_token)) == list(read_models_dev_prices(per_million))


def test_meaningless_list_amounts_are_ignored() -> None:
    models = {
        **litellm("free", input_cost_per_token=0.0, output_cost_per_token=0),
        **litellm("embedder", mode="embedding", input_cost_per_token=1e-7, output_cost_per_token=0.0),
        **litellm("painter", mode="image_generation", input_cost_per_token=1e-6),
        **litellm("odd", input_cost_per_token="a dollar", output_cost_per_token=True),
        **litellm("below", input_cost_per_token=-1e-6),
        **litellm("dear", input_cost_per_token=1.0),
        **litellm("steps", tiered_pricing=[{"range": [0, 32000], "input_cost_per_token": 1e-6},
                                           {"range": [32000, 64000], "input_cost_per_token": 2e-6}]),
    }  # fmt: skip
    assert list(read_litellm_prices(models)) == [
        ("openai", "embedder", (Tier(0, Rates(100_000)),)),
        ("openai", "steps", (Tier(0, Rates(1_000_000)), Tier(32_000, Rates(2_000_000)))),
    ]
    assert (
        list(read_models_dev_prices({"p": {"models": {"free": {"cost": {"input": 0, "output": 0}}, "mute": {}}}})) == []
    )


def test_listed_prices_are_grouped_by_host_that_bills_in_dollars() -> None:
    """Prices are stored under the host's name for the model.

    Names with two prices, and hosts in China, are left out.
    """
    first_price, second_price = (Tier(0, Rates(1, 2)),), (Tier(0, Rates(3, 4)),)
    rows = [
        ("mistral", "mistral/Open-Bear", first_price),
        ("deepinfra", "deepinfra/zoo/bear", first_price),
        ("together_ai", "together_ai/Bear", first_price),
        ("together_ai", "together_ai/bear", second_price),
        ("bigmodel", "bigmodel/glm", first_price),
        ("volcengine", "volcengine/doubao", first_price),
        ("unheard", "bear", first_price),
    ]
    assert {host: names for host, names in group_prices(rows, "litellm").items() if names} == {
        "mistral": {"open-bear": first_price},
        "deepinfra": {"zoo/bear": first_price},
    }


def test_encoded_price_row_decodes_to_the_same_prices() -> None:
    first = (Tier(0, Rates(2_500_000, 10_000_000, None, 1)), Tier(200_000, Rates(5_000_000)))
    second = (Tier(0, Rates(75_000, 300_000)),)
    rows = encode_prices([{"p": {"a": first}}, {"p": {"a": second, "b": second}}])
    assert rows == {"p": {"a": "2.5,10,,0.000001|200000:5;0.075,0.3", "b": ";0.075,0.3"}}
    assert decode_prices(rows["p"]["a"], ["x", "y"]) == (Price("USD", first, "x"), Price("USD", second, "y"))
    assert decode_prices(rows["p"]["b"], ["x", "y"]) == (Price("USD", second, "y"),)
