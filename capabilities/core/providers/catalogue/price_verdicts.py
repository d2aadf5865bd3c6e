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
    confirmed = (each for each in stated if any(_agree(each, other) for other in stated if other is not each))
    chosen = next(confirmed, stated[0])
    return replace(chosen, others=tuple(each for each in stated if each is not chosen))


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


def _agree(one: Price, other: Price) -> bool:
    return not _differences(one, other)


def _differences(one: Price, other: Price) -> frozenset[str]:
    # Amounts in different currencies are never compared.
    if one.currency != other.currency:
        return frozenset(SORTS)
    # The start of a tier is not compared: models.dev has one word for every limit, "over 200k". A sort or tier that
    # only one of them has is not a difference either.
    tiers = (
        zip(one.tiers, other.tiers, strict=True)
        if len(one.tiers) == len(other.tiers)
        else [(one.tiers[0], other.tiers[0])]
    )
    return frozenset(
        sort
        for mine, theirs in tiers
        for sort in SORTS
        if _differ(getattr(mine.rates, sort), getattr(theirs.rates, sort))
    )


def _differ(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and min(one, other) < max(one, other) * ROUNDING
