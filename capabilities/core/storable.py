"""Restrict values to those that every database returns unchanged.

User input that cannot be stored is rejected with an error that names its path. Data that cannot be rejected, such as a
logged response, is converted to the nearest value that every database can store. Stored text cannot contain NUL or lone
surrogates. PostgreSQL's JSON has neither −0.0 nor exponents: it returns 1e16 as an integer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.translatable import translatable

REPLACEMENT = "\ufffd"
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
SUSPECT_TEXT = re.compile(
    r"\\u0000|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
EXPONENT = re.compile(r"[0-9][eE]\+?[0-9]")
SUSPECT_NUMBER = re.compile(r"(?:^|[\[:, ])(?:-0\.0(?!\d)|-?[0-9][0-9.]*[eE]\+?[0-9]|-?Infinity|NaN)")
"""The patterns `SUSPECT_…` find values in JSON that may need conversion: an escaped NUL, an escaped lone surrogate,
−0.0, an exponent, infinity or NaN. They may also match harmless text."""
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MAX_NUMBER = 2**63
"""Stored numbers must be at least −2⁶³ and less than 2⁶³."""
WHOLE_FROM = 1e16
"""From this number on, Python writes floats with an exponent, and every float is an integer."""
DEPTH = 100
"""Maximum nesting depth of stored values. A configuration has six levels."""

JsonPath = tuple[str | int, ...]
"""Keys and indexes on the path to a value."""


def is_storable(text: str) -> bool:
    return (text.isascii() and "\x00" not in text) or not UNSTORABLE.search(text)


def storable_text(text: str) -> str:
    return text if is_storable(text) else UNSTORABLE.sub(REPLACEMENT, text)


def is_name(text: str) -> bool:
    """Return whether a string is a single line without control characters."""
    return not CONTROL.search(text)


def make_storable(value: Any) -> Any:
    """Convert a value to the nearest one that every database returns unchanged. NaN and infinity become None."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        # `value or 0.0` converts −0.0 to 0.0.
        return int(value) if abs(value) >= WHOLE_FROM else value or 0.0
    if isinstance(value, Mapping):
        return {make_storable(key) if isinstance(key, str) else key: make_storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [make_storable(item) for item in value]
    return value


def write_json(value: Any, encoder: type[json.JSONEncoder] | None = None) -> str:
    return make_json_storable(json.dumps(value, cls=encoder))


def make_json_storable(text: str) -> str:
    """Convert JSON text so that every database returns its value unchanged. Most text is returned unchanged."""
    # First search with cheap patterns, because most text needs neither conversion nor parsing.
    is_odd = "\\u" in text and SUSPECT_TEXT.search(text)
    if not is_odd and ("-0.0" in text or "NaN" in text or "Infinity" in text or EXPONENT.search(text)):
        is_odd = SUSPECT_NUMBER.search(text)
    return json.dumps(make_storable(json.loads(text))) if is_odd else text


def format_path(path: Iterable[str | int]) -> str:
    """Format a path as in `Problem.field`: `message.attachments[0].type`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def find_unstorable(value: Any, path_text: Callable[[JsonPath], str] = format_path) -> Iterator[Problem]:
    """Yield the problems in a JSON value: strings and numbers that cannot be stored, and too many nesting levels."""
    # Use a stack instead of recursion, because input may be nested to any depth.
    waiting: list[tuple[JsonPath, Any]] = [((), value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, str) and not is_storable(item):
            yield unreadable_text(path_text(path))
        elif isinstance(item, int | float) and not -MAX_NUMBER <= item < MAX_NUMBER:  # NaN fails this comparison, too.
            message_path = path_text(path)
            message = translatable(
                "%(path)s must be a number between −2⁶³ and 2⁶³; no other can be stored.", path=message_path
            )
            yield Problem(message_path, message, "range")
        elif isinstance(item, Mapping | list | tuple):
            if len(path) > DEPTH:
                # The beginning of the path is enough, because the complete path has a hundred parts.
                message_path = path_text(path[:3])
                message = translatable(
                    "%(path)s is nested more than %(depth)s levels deep.", path=message_path, depth=DEPTH
                )
                yield Problem(message_path, message, "range")
                continue
            pairs: Any = item.items() if isinstance(item, Mapping) else enumerate(item)
            for key, member in pairs:
                storable_key = storable_text(key) if isinstance(key, str) else key
                if storable_key != key:
                    yield unreadable_text(path_text((*path, storable_key)))
                waiting.append(((*path, storable_key), member))


def unreadable_text(path: str) -> Problem:
    message = translatable(
        "%(path)s contains a character that cannot be stored (NUL or half a surrogate pair).", path=path
    )
    return Problem(path, message, "type")
