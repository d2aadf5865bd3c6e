"""Combine several lists' prices of a model: the price that counts, and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations

from capabilities.core.prices import Price, Rates
from capabilities.core.providers.catalogue.judgement import FactVerdict

ROUNDING = 0.99
"""Amounts closer than this are one amount, written with fewer digits."""
SORTS = tuple(field.name for field in fields(Rates))


def weigh_prices(stated: Sequence[Price]) -> Price | None:
    """Return the price that counts, with the others attached, or None without any.

    It is the first in the order given. If another list contradicts that, it is the first that any other list confirms.
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
    """Return the verdict on a price: contested if two lists state different amounts for the same tokens."""
    if not price.source:
        return FactVerdict.ADMINISTRATOR
    if not price.others:
        return FactVerdict.ONE_SOURCE
    return FactVerdict.CONTESTED if find_contested(price) else FactVerdict.AGREED


def find_contested(price: Price) -> frozenset[str]:
    """Return the sorts of tokens whose amounts differ between the lists of a price."""
    pairs = combinations((price, *price.others), 2)
    return frozenset(sort for pair in pairs for sort in _differences(*pair))


def _agree(first: Price, second: Price) -> bool:
    return not _differences(first, second)


def _differences(first: Price, second: Price) -> frozenset[str]:
    # Amounts in different currencies are never compared.
    if first.currency != second.currency:
        return frozenset(SORTS)
    # The start of a tier is not compared: models.dev has one word for every limit, "over 200k". A sort or tier that
    # only one of them has is not a difference either.
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
