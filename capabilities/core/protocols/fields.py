"""Fields of a vendor's JSON that are there or not: counts, their sums, texts that say something."""

from __future__ import annotations

from typing import Any


def count(value: Any, *path: str) -> int | None:
    """The whole number at that path of an object; None where there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def filled(value: Any) -> str | None:
    """The text where it is one and says something; None otherwise."""
    return value if isinstance(value, str) and value else None


def total_of(*numbers: int | None) -> int | None:
    """The sum of the counts that are known; None when none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
