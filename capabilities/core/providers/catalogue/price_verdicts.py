"""What do several lists together say that a model costs? The price that counts, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations

from capabilities.core.prices import Price, Rates
from capabilities.core.providers.catalogue.judgement import FactVerdict

ROUNDING = 0.99
"""Amounts that differ by less are one amount, written with fewer digits."""
SORTS = tuple(field.name for field in fields(Rates))


def weigh_prices(stated: Sequence[Price]) -> Price | None:
    """The price that counts, with the others beside it; None where no list has one.

    The first list's, in the order given; where another one contradicts it, the first that any other list confirms.
    """
    if not stated:
        return None
    confirmed = (each for each in stated if any(_agree(each, other) for other in stated if other is not each))
    chosen = next(confirmed, stated[0])
    return replace(chosen, others=tuple(each for each in stated if each is not chosen))


def judge_price(price: Price) -> FactVerdict:
    """How sure a price is: contested where any two lists name different amounts for the same tokens."""
    if not price.source:
        return FactVerdict.ADMINISTRATOR
    if not price.others:
        return FactVerdict.ONE_SOURCE
    return FactVerdict.CONTESTED if find_contested(price) else FactVerdict.AGREED


def find_contested(price: Price) -> frozenset[str]:
    """The sorts of tokens whose amounts differ between the lists of a price."""
    pairs = combinations((price, *price.others), 2)
    return frozenset(sort for pair in pairs for sort in _differences(*pair))


def _agree(one: Price, other: Price) -> bool:
    return not _differences(one, other)


def _differences(one: Price, other: Price) -> frozenset[str]:
    """The sorts that two prices state differently; a sort or further tiers that only one of them has are no difference.

    Where a tier begins is not compared: models.dev has one word for every limit, "over 200k".
    """
    if one.currency != other.currency:
        return frozenset(SORTS)
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
