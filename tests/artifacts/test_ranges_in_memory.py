"""Byte ranges can be read from data in memory in the same way as from a stored file."""

from __future__ import annotations

import pytest

from artifacts.core.store import read_slices


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(0, 3, b"abc"), (2, 9, b"cde"), (-2, 2, b"ab"), (5, 1, b""), (0, 0, b""), (0, -1, b""), (1, -3, b"")],
)
def test_range_outside_the_bytes_is_clipped(offset: int, length: int, expected: bytes) -> None:
    """A negative offset counts as 0, and a negative length reads nothing."""
    assert read_slices(b"abcde")(offset, length) == expected
