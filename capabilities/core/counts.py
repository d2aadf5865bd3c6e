"""Numbers with the noun they count, in the English of commands and errors; pages use `ngettext`."""

from __future__ import annotations


def count_of(number: int, noun: str, plural: str = "") -> str:
    """`1 request`, `2,000 requests`; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
