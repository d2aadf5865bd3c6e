"""Paths into JSON values, and a reader of JSON documents that reports every problem.

Examples of paths are `providers[0].endpoint`, `routing.planning.fallback[1]` and `routing["a.b"].provider`.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from capabilities.core.problems import Problem
from capabilities.core.storable import DEPTH, find_unstorable, make_storable, storable_text
from capabilities.core.translatable import translatable

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
PARSER_SENTENCES = (
    translatable("Expecting value"),
    translatable("Expecting property name enclosed in double quotes"),
    translatable("Expecting ':' delimiter"),
    translatable("Expecting ',' delimiter"),
    translatable("Illegal trailing comma before end of object"),
    translatable("Illegal trailing comma before end of array"),
    translatable("Unterminated string starting at"),
    translatable("Invalid control character at"),
    translatable("Invalid \\escape"),
    translatable("Invalid \\uXXXX escape"),
    translatable("Extra data"),
)
"""Messages of Python's JSON parser that can be translated. Any other message is shown in English."""
TOO_DEEP = translatable("it is nested more than %(depth)s levels deep", depth=DEPTH)
GUESSES = (("gb18030", "GB18030"), ("big5", "Big5"), ("shift_jis", "Shift-JIS"), ("cp1252", "Windows-1252"))


def child(path: str, key: str | int) -> str:
    """Return the path of an item or field below `path`; keys that are not plain words are quoted."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not PLAIN.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


class _Doubled(dict[str, Any]):
    keys_twice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a JSON text, or None if it cannot be read, and the problems found in it."""

    value: Any = None
    problems: tuple[Problem, ...] = ()

    @property
    def readable(self) -> bool:
        return not self.problems


def read_document(data: bytes | str) -> Document:
    """Read UTF-8 JSON, with or without a byte order mark.

    Each problem says that the encoding is wrong, or names the line or the path.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
    except UnicodeDecodeError:
        return _unreadable(_not_utf8(_encoding(data)))  # type: ignore[arg-type]
    # Text in UTF-16 or UTF-32 without a byte order mark can be decoded as UTF-8, but contains NUL characters.
    if "\0" in text[:8]:
        return _unreadable(_not_utf8("UTF-16/UTF-32"))
    try:
        text = text.removeprefix("\ufeff")
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number, parse_float=_to_number)
    except json.JSONDecodeError as error:
        return _unreadable(
            translatable(
                "line %(line)s, column %(column)s: %(problem)s",
                line=error.lineno,
                column=error.colno,
                problem=translatable(error.msg),
            )
        )
    except RecursionError:
        return _unreadable(TOO_DEEP)
    except ValueError as error:
        return _unreadable(error.args[0])
    found = _check_doubled(value)
    if found.problems:
        return found
    return replace(found, problems=tuple(find_unstorable(value, lambda keys: reduce(child, keys, ""))))


def _check_doubled(value: Any) -> Document:
    # Use an explicit stack instead of recursion, because the sender determines the nesting depth.
    problems, pending = [], [(value, "", 0)]
    while pending:
        item, path, depth = pending.pop()
        if depth > DEPTH:
            return _unreadable(TOO_DEEP)
        for key in item.keys_twice if isinstance(item, _Doubled) else ():
            key_path = storable_text(child(path, key))
            message = translatable("%(path)s appears more than once. Keep one of them.", path=key_path)
            problems.append(Problem(key_path, message, "duplicate"))
        pairs: Any = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        pending += [(child_value, storable_text(child(path, key)), depth + 1) for key, child_value in pairs]
    return Document(value, tuple(problems))


def _unreadable(message: str) -> Document:
    return Document(None, (Problem("", translatable("Not readable as JSON: %(problem)s.", problem=message), "type"),))


def _not_utf8(encoding: str) -> str:
    return translatable("the file is in %(encoding)s, not in UTF-8; save it as UTF-8", encoding=encoding)


def _encoding(data: bytes) -> str:
    for mark, name in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return name
    for codec, name in GUESSES:
        try:
            data.decode(codec)
        except UnicodeDecodeError:
            continue
        return translatable("another encoding (probably %(name)s)", name=name)
    return translatable("another encoding")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    repeated = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
    marked = _Doubled(found)
    marked.keys_twice = tuple(dict.fromkeys(repeated))
    return marked


def _to_number(text: str) -> Any:
    number = float(text)
    return make_storable(number) if math.isfinite(number) else number


def _no_number(text: str) -> Any:
    raise ValueError(translatable("%(word)s is not a JSON number", word=text))


def write_document(value: Any) -> str:
    """Format a JSON value in the style of the original programs' files.

    Indent by two spaces, write lists of plain values on one line, leave non-ASCII characters unescaped, and end with a
    newline.
    """
    # A lone surrogate cannot be encoded in UTF-8, so it is written as an escape.
    text = _write(value, "\n") + "\n"
    return LONE_SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _write(value: Any, break_: str) -> str:
    inner = break_ + "  "
    if isinstance(value, Mapping) and value:
        fields = (f"{_scalar(key)}: {_write(item, inner)}" for key, item in value.items())
        return "{" + inner + f",{inner}".join(fields) + break_ + "}"
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping | list | tuple) for item in value):
        return "[" + inner + f",{inner}".join(_write(item, inner) for item in value) + break_ + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
