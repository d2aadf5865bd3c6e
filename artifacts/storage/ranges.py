"""Which bytes of a file a request asks for (RFC 9110 §14), so that a player can seek."""

from __future__ import annotations

import re
from collections.abc import Iterator

ONE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class UnsatisfiableRangeError(Exception):
    """None of the bytes asked for are there."""


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """The first byte and the one behind the last; None where all are wanted, or more ranges than one.

    Raises `UnsatisfiableRangeError`.
    """
    match = ONE_RANGE.fullmatch(header.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        start, stop = max(0, size - int(match[2])), size
    else:
        start, stop = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
        if match[2] and int(match[2]) < start:
            return None
    if start >= stop:
        raise UnsatisfiableRangeError
    return start, stop


def cut(blocks: Iterator[bytes], count: int) -> Iterator[bytes]:
    """So many bytes of the blocks."""
    for block in blocks:
        yield block[:count]
        count -= len(block)
        if count <= 0:
            return
