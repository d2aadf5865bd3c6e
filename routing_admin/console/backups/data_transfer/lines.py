r"""Convert rows to and from PostgreSQL's COPY text format: tabs between fields, `\N` for NULL, backslash escapes.

Equal rows in SQLite and PostgreSQL have the same text, so tables can be compared by hash. A batch is formatted column
by column, which takes half as long as formatting it value by value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from json.encoder import encode_basestring
from typing import Any

from capabilities.core.storable import is_storable, make_storable, storable_text

Row = Sequence[Any]
NULL = r"\N"
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
SPECIAL = ("\\", *ESCAPES.values())
ESCAPING = str.maketrans({"\\": r"\\", **{character: f"\\{letter}" for letter, character in ESCAPES.items()}})
# Possible lengths of a timestamp: without a fraction, and with microseconds.
TIME_LENGTHS = {len("2026-01-31 12:00:00"), len("2026-01-31 12:00:00.123456")}


def format_lines(kinds: Sequence[str], rows: Sequence[Row]) -> bytes:
    """Return rows as lines of text, given the kind of each column. Text that PostgreSQL cannot store is replaced."""
    columns: list[Iterable[str]] = []
    for kind, values in zip(kinds, zip(*rows, strict=True), strict=True):
        render, first = RENDERERS.get(kind, _render_plain), values[0]
        if values.count(first) == len(values):  # Fast path: many columns have the same value in a whole batch.
            columns.append(repeat(NULL if first is None else next(iter(render([first]))), len(values)))
        elif None in values:
            rendered = iter(render([value for value in values if value is not None]))
            columns.append([NULL if value is None else next(rendered) for value in values])
        else:
            columns.append(render(values))
    return "".join("\t".join(fields) + "\n" for fields in zip(*columns, strict=True)).encode()


def _render_plain(values: Sequence[Any]) -> Iterable[str]:
    return map(str, values)


def _render_text(values: Sequence[Any]) -> Iterable[str]:
    # Most batches need no escaping, and one check of the joined values detects this.
    joined = "".join(values)
    if not is_storable(joined):
        values = [storable_text(value) for value in values]
    if any(character in joined for character in SPECIAL):
        return [value.translate(ESCAPING) for value in values]
    return values


def _render_times(values: Sequence[Any]) -> Iterable[str]:
    if {len(value) for value in values} <= TIME_LENGTHS and ".000000" not in "".join(values):
        return values
    return [_trim_fraction(value) for value in values]


def _trim_fraction(text: str) -> str:
    seconds, _, fraction = text.partition(".")
    return f"{seconds}.{fraction:0<6}" if fraction.strip("0") else seconds


def _render_floats(values: Sequence[Any]) -> Iterable[str]:
    return [repr(value + 0.0).removesuffix(".0") for value in values]  # Adding 0.0 turns -0.0 into 0.0.


def _render_bytes(values: Sequence[Any]) -> Iterable[str]:
    return [rf"\\x{value.hex()}" for value in values]


def _render_json(values: Sequence[Any]) -> Iterable[str]:
    return map(_json_field, values)


@lru_cache(maxsize=4096)
def _json_field(text: str) -> str:
    return _json_text(make_storable(json.loads(text))).translate(ESCAPING)


def _json_text(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, dict):
        # PostgreSQL's `jsonb` sorts keys by their length in bytes, then bytewise.
        pairs = sorted(((key.encode(), item) for key, item in value.items()), key=lambda pair: (len(pair[0]), pair[0]))
        return "{" + ", ".join(f"{encode_basestring(key.decode())}: {_json_text(item)}" for key, item in pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json_text, value)) + "]"
    return json.dumps(value)


RENDERERS: Mapping[str, Callable[[Sequence[Any]], Iterable[str]]] = {
    "DateTimeField": _render_times,
    "FloatField": _render_floats,
    "BinaryField": _render_bytes,
    "JSONField": _render_json,
    **dict.fromkeys(("CharField", "TextField"), _render_text),
}
"""Functions that format the non-NULL values of a column, by kind of column. Other kinds, such as numbers, use `str`."""


def parse_line(line: str, blob_columns: Sequence[int], json_columns: list[int]) -> Row:
    """Parse a line into values. The values at `blob_columns` are bytes, and those at `json_columns` are JSON.

    Numbers remain text, because SQLite itself converts them.
    """
    values: list[str | bytes | None] = [
        (None if field == NULL else ESCAPED.sub(_unescape, field)) if "\\" in field else field
        for field in line.rstrip("\n").split("\t")
    ]
    for column in blob_columns:
        if isinstance(value := values[column], str):
            values[column] = bytes.fromhex(value.removeprefix("\\x"))
    return escape_json(values, json_columns) if json_columns and not line.isascii() else values


def _unescape(match: re.Match[str]) -> str:
    return ESCAPES.get(match[1], match[1])


def escape_json(row: Row, columns: list[int]) -> Row:
    """Return the row with non-ASCII characters in JSON values escaped, as Django stores JSON in SQLite."""
    if all((row[column] or "").isascii() for column in columns):
        return row
    return [
        json.dumps(json.loads(value)) if column in columns and value is not None else value
        for column, value in enumerate(row)
    ]
