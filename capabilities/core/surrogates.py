"""Join or replace lone surrogates, which JSON can escape but UTF-8 cannot encode.

A provider that splits its answer by UTF-16 units may send an emoji as two surrogates in two events.
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
    """Return whether JSON contains an escaped surrogate, whether alone or in a pair."""
    # Unescaped surrogates are not valid UTF-8 and have already been rejected, so search only for escaped ones.
    if isinstance(json_text, bytes):
        return b"\\ud" in json_text or b"\\uD" in json_text
    return "\\u" in json_text and ("\\ud" in json_text or "\\uD" in json_text)


def repair_text(text: str) -> str:
    """Return the text with adjacent surrogates joined, and all others replaced by U+FFFD."""
    if text.isascii() or not _HALF.search(text):
        return text
    # Decoding UTF-16 joins surrogate pairs and replaces lone surrogates.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def repair(value: T) -> T:
    """Repair the surrogates in all strings of a JSON value or dataclass.

    Raise RecursionError if it is nested too deeply.
    """
    return _repair(value)  # type: ignore[no-any-return]


def _repair(value: Any) -> Any:
    if isinstance(value, Translatable):
        return value.change_texts(repair_text)
    if isinstance(value, str):
        return repair_text(value)
    if isinstance(value, Mapping):
        return {_repair(key): _repair(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_repair(item) for item in value]
    if isinstance(value, tuple):
        repaired = map(_repair, value)
        return type(value)(*repaired) if hasattr(value, "_fields") else tuple(repaired)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _repair(getattr(value, field.name)) for field in fields(value)})
    return value


class SurrogateJoiner:
    """Joins surrogate pairs that are split between two chunks of a stream.

    Each text in the stream is identified by a key.
    """

    def __init__(self) -> None:
        self._waiting: dict[Any, str] = {}

    def join(self, key: Any, piece: str) -> str:
        """Return the text that can be sent now. The first half of a surrogate pair at its end is held back."""
        if not piece:
            return ""
        text = self._waiting.pop(key, "") + piece
        # The second half may be in the next chunk.
        if _FIRST_HALVES[0] <= text[-1] <= _FIRST_HALVES[1]:
            self._waiting[key], text = text[-1], text[:-1]
        return repair_text(text)

    def rest(self) -> dict[Any, str]:
        """At the end of the stream, return what is still held back, by key. Lone surrogates become U+FFFD."""
        waiting, self._waiting = self._waiting, {}
        return {key: repair_text(half) for key, half in waiting.items()}
