"""Generate texts for which a regular expression may be slow.

Such a text repeats the beginning of a match without completing it, or repeats one piece of the pattern and then ends
with a character that does not match. Both kinds are generated for every repetition in the pattern, with several
characters per piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

ops, parser = import_module("re._constants"), import_module("re._parser")

REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
SINGLE = (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN)
VARIANTS = 6
"""The number of alternatives and characters to try for each piece of a pattern."""


def attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield texts as tuples of a beginning, a unit that is repeated, and an end."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    letters = list(dict.fromkeys([*map(chr, _codes(tree)), *' a0\n="\\']))
    if isinstance(pattern.pattern, bytes):
        letters = [letter for letter in letters if ord(letter) < 256]
    pieces = {("", _sample(tree, letters, nth)[: -cut or None]) for nth in range(VARIANTS) for cut in (0, 1)}
    pieces |= {("", letter) for letter in letters[:30]}
    for before, unit in _repeated(tree, letters, ""):
        pieces |= {(before, unit), ("", before + unit), ("", before + unit * 9), ("", before)}
    return ((head, unit, end) for head, unit in sorted(pieces) if unit for end in "\0\n"[: 1 if head else 2])


def build(attack: tuple[str, str, str], size: int) -> str:
    head, unit, end = attack
    return (head + unit * (size // len(unit) + 1))[: size - len(end)] + end


def _parts(op: Any, value: Any) -> tuple[Any, ...]:
    if op in REPEATS:
        return (value[2],)
    if op is ops.SUBPATTERN:
        return (value[3],)
    if op is ops.BRANCH:
        return tuple(value[1])
    if op is ops.ATOMIC_GROUP:
        return (value,)
    return (value[1],) if op in (ops.ASSERT, ops.ASSERT_NOT) else ()


def _codes(tree: Any) -> Iterator[int]:
    for op, value in tree:
        for item in value if op is ops.IN else [(op, value)]:
            if item[0] in (ops.LITERAL, ops.NOT_LITERAL):
                yield item[1]
            elif item[0] is ops.RANGE:
                yield item[1][0]
        for part in _parts(op, value):
            yield from _codes(part)


_CATEGORIES = {
    ops.CATEGORY_DIGIT: str.isdigit,
    ops.CATEGORY_NOT_DIGIT: lambda letter: not letter.isdigit(),
    ops.CATEGORY_SPACE: str.isspace,
    ops.CATEGORY_NOT_SPACE: lambda letter: not letter.isspace(),
    ops.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
    ops.CATEGORY_NOT_WORD: lambda letter: not (letter.isalnum() or letter == "_"),
}


def _fits(op: Any, value: Any, letter: str) -> bool:
    if op is ops.IN:
        inside = any(_fits(kind, argument, letter) for kind, argument in value if kind is not ops.NEGATE)
        return inside != (value[0][0] is ops.NEGATE)
    if op is ops.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    if op is ops.CATEGORY:
        return _CATEGORIES[value](letter)
    return op is ops.ANY or (value == ord(letter)) == (op is ops.LITERAL)


def _sample(tree: Any, letters: list[str], nth: int) -> str:
    """Return the `nth` of several short texts that match the parsed pattern `tree`."""
    text = ""
    for op, value in tree:
        if op in SINGLE:
            fitting = [letter for letter in letters if _fits(op, value, letter)]
            text += fitting[nth % len(fitting)] if fitting else "?"
        elif op in REPEATS:
            text += _sample(value[2], letters, nth) * max(1 if value[1] else 0, min(value[0], 300))
        elif op is ops.BRANCH:
            text += _sample(value[1][nth % len(value[1])], letters, nth // len(value[1]))
        elif op is not ops.ASSERT_NOT and not (op is ops.ASSERT and value[0] == 1):
            text += "".join(_sample(part, letters, nth) for part in _parts(op, value))
    return text


def _repeated(tree: Any, letters: list[str], before: str) -> Iterator[tuple[str, str]]:
    """Yield, for each repeated piece of the pattern, a text that may precede it and a text that matches it."""
    for op, value in tree:
        if op in REPEATS:
            yield from ((before, _sample(value[2], letters, nth)) for nth in range(VARIANTS))
        for part in _parts(op, value):
            yield from _repeated(part, letters, before)
        before += _sample([(op, value)], letters, 0)
