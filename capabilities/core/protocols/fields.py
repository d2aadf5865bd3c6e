"""Fields of a vendor's JSON that are there or not: counts, their sums, texts that say something."""

from __future__ import annotations

import math
from typing import Any

MAX_COUNT = 100_000_000
"""Far more tokens than any model reads or writes in one call; what a provider counts beyond it is cut to it."""


def count_of(value: Any) -> int | None:
    """Return a provider's count as a whole number from 0 to `MAX_COUNT`; None for what counts nothing.

    Below zero, NaN, infinite, and no number at all are no count: what came is estimated then.
    """
    if type(value) is int:
        return min(value, MAX_COUNT) if value >= 0 else None
    if type(value) is float and 0 <= value < math.inf:
        return min(int(value), MAX_COUNT)
    return None


def count(value: Any, *path: str) -> int | None:
    """The whole number at that path of an object; None where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def filled(value: Any) -> str | None:
    """The text where it is one and says something; None otherwise."""
    return value if isinstance(value, str) and value else None


def total_of(*numbers: int | None) -> int | None:
    """The sum of the counts that are known, itself a count; None when none is."""
    known = [number for number in numbers if number is not None]
    return min(sum(known), MAX_COUNT) if known else None
