"""Rows in the sizes for which a statement is prepared, as every other size would have to be prepared anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Row = TypeVar("Row")


def in_chunks(rows: Sequence[Row], sizes: Sequence[int]) -> Iterator[Sequence[Row]]:
    """The rows in order, each chunk of the largest size that they still fill; fewer than the smallest go together."""
    at = 0
    while at < len(rows):
        left = len(rows) - at
        size = next((size for size in sizes if size <= left), left)
        yield rows[at : at + size]
        at += size
