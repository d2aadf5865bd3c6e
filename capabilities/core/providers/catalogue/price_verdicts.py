"""Combine the prices that several sources state for a model into one price and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations

from capabilities.core.prices import Price, Rates
from capabilities.core.providers.catalogue.judgement import FactVerdict

ROUNDING = 0.99
"""Two amounts are treated as the same, rounded differently, if the lower is at least this fraction of the higher."""
SORTS = tuple(field.name for field in fields(Rates))


def merge_prices(stated: Sequence[Price]) -> Price | None:
    """Return the price to use, with the others in `others`, or None if there is no price.

    This is the first price that another source confirms or, if there is none, the first price.
    """
    if not stated:
        return None
    confirmed = (
        price
        for price in stated
        if any(_agree(price, other_price) for other_price in stated if other_price is not price)
    )
    chosen = next(confirmed, stated[0])
    return replace(chosen, others=tuple(price for price in stated if price is not chosen))


def judge_price(price: Price) -> FactVerdict:
    """Return the verdict on a price. It is contested if two sources state different amounts for the same tokens."""
    if not price.source:
        return FactVerdict.ADMINISTRATOR
    if not price.others:
        return FactVerdict.ONE_SOURCE
    return FactVerdict.CONTESTED if find_contested(price) else FactVerdict.AGREED


def find_contested(price: Price) -> frozenset[str]:
    """Return the kinds of tokens for which the sources of a price state different amounts."""
    pairs = combinations((price, *price.others), 2)
    return frozenset(sort for pair in pairs for sort in _differences(*pair))


def _agree(first: Price, second: Price) -> bool:
    return not _differences(first, second)


def _differences(first: Price, second: Price) -> frozenset[str]:
    # Amounts in different currencies cannot be compared, so all of them count as different.
    if first.currency != second.currency:
        return frozenset(SORTS)
    # Ignore tier thresholds, because models.dev calls all of them "over 200k". Also ignore kinds of tokens and tiers
    # that have a price in only one source.
    tiers = (
        zip(first.tiers, second.tiers, strict=True)
        if len(first.tiers) == len(second.tiers)
        else [(first.tiers[0], second.tiers[0])]
    )
    return frozenset(
        sort
        for first_tier, second_tier in tiers
        for sort in SORTS
        if _differ(getattr(first_tier.rates, sort), getattr(second_tier.rates, sort))
    )


def _differ(first: int | None, second: int | None) -> bool:
    return first is not None and second is not None and min(first, second) < max(first, second) * ROUNDING
