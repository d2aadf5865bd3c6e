"""JSON read and written by the codec that the program gives at its start, else by the standard library.

Cores import nothing beside the standard library; a faster codec means the same values. What it refuses (NaN, half a
surrogate pair, another encoding than UTF-8, numbers beyond its range) the standard library decides. Half a pair is
never written: it is joined with its neighbor, or becomes U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from capabilities.core.halves import may_hold_half, mend, mend_text
from capabilities.core.json_scan import MAX_ANSWER_VALUES, NUMBERS_PER_ANSWER_VALUE, TooManyValuesError, is_bounded

Read = Callable[[bytes | str], Any]
Write = Callable[[Any, Callable[[Any], Any]], bytes]


def _write_plain(value: Any, default: Callable[[Any], Any]) -> bytes:
    return mend_text(json.dumps(value, default=default, ensure_ascii=False, separators=(",", ":"))).encode()


DIGITS = 20
"""Digits and sign of the longest number that every codec reads exactly."""
_given: list[tuple[Read, Write]] = []


def give_codec(read: Read, write: Write) -> None:
    """The codec from now on; both functions raise `ValueError` or `TypeError` for what they do not take."""
    _given[:] = [(read, write)]


def read_json(data: bytes | str, *, is_trusted: bool = False) -> Any:
    """The value in JSON text. Raises `ValueError`, or `RecursionError` for one that nests without end.

    Raises `TooManyValuesError` where that is more than a provider may send, unless it `is_trusted`.
    """
    if not is_trusted and not is_bounded(data, MAX_ANSWER_VALUES, NUMBERS_PER_ANSWER_VALUE):
        raise TooManyValuesError
    for read, _ in _given:
        try:
            return read(data)
        except ValueError:
            break
    return json.loads(data, parse_int=_read_int)


def _read_int(text: str) -> int | float:
    """The number, one that no writer takes as a float, as faster codecs read it."""
    number = int(text) if len(text) <= DIGITS else float(text)
    return number if isinstance(number, float) or -(2**63) <= number < 2**64 else float(number)


def read_mended_json(data: bytes | str, *, is_trusted: bool = False) -> Any:
    """The same with half a surrogate pair joined with its neighbor, or as U+FFFD: nothing writes half a pair."""
    value = read_json(data, is_trusted=is_trusted)
    return mend(value) if may_hold_half(data) else value


def write_json(value: Any, make_default: Callable[[], Callable[[Any], Any]]) -> bytes:
    """The value as compact UTF-8 JSON; each writer gets a fresh `default` for what is none.

    Raises `TypeError` for a value that no writer takes, `ValueError` for one that refers to itself.
    """
    for _, write in _given:
        try:
            return write(value, make_default())
        except (TypeError, ValueError):
            break
    return _write_plain(value, make_default())
