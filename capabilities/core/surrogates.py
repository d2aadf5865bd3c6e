"""Join or replace lone halves of surrogate pairs, which JSON can escape but no encoding can write.

A provider that cuts its answer by UTF-16 units may send an emoji as two halves in two events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from capabilities.core.translatable import Translatable

T = TypeVar("T")
_HALF = re.compile("[\ud800-\udfff]")
_FIRST_HALVES = ("\ud800", "\udbff")


def may_have_surrogate(json_text: str | bytes) -> bool:
    """Return whether JSON contains an escaped half, alone or in a pair."""
    # Only escapes are looked for, since unescaped halves are not valid UTF-8 and never get here.
    if isinstance(json_text, bytes):
        return b"\\ud" in json_text or b"\\uD" in json_text
    return "\\u" in json_text and ("\\ud" in json_text or "\\uD" in json_text)


def repair_text(text: str) -> str:
    """Return the text with neighbouring halves joined, and every other half as U+FFFD."""
    if text.isascii() or not _HALF.search(text):
        return text
    # Decoding UTF-16 joins two halves, and replaces a lone half.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def repair(value: T) -> T:
    """Return the JSON value or dataclass with every string in it mended; raise RecursionError if nested too deep."""
    return _mend(value)  # type: ignore[no-any-return]


def _mend(value: Any) -> Any:
    if isinstance(value, Translatable):
        return value.change_texts(repair_text)
    if isinstance(value, str):
        return repair_text(value)
    if isinstance(value, Mapping):
        return {_mend(key): _mend(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mend(item) for item in value]
    if isinstance(value, tuple):
        mended = map(_mend, value)
        return type(value)(*mended) if hasattr(value, "_fields") else tuple(mended)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _mend(getattr(value, field.name)) for field in fields(value)})
    return value


class SurrogateJoiner:
    """Joins the halves of a pair that arrive in two pieces of a streamed text. Each text has a key."""

    def __init__(self) -> None:
        self._waiting: dict[Any, str] = {}

    def join(self, key: Any, piece: str) -> str:
        """Return the text that can be sent now. A first half at the end of a piece is kept for the next piece."""
        if not piece:
            return ""
        text = self._waiting.pop(key, "") + piece
        # The second half may be in the next event.
        if _FIRST_HALVES[0] <= text[-1] <= _FIRST_HALVES[1]:
            self._waiting[key], text = text[-1], text[:-1]
        return repair_text(text)

    def rest(self) -> dict[Any, str]:
        """Return the halves that are still kept at the end of the stream, mended, by key."""
        waiting, self._waiting = self._waiting, {}
        return {key: repair_text(half) for key, half in waiting.items()}
