"""Count list items and format their numbers like a word processor."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import ascii_lowercase

MAX_COUNTERS = 10_000
MAX_PATTERN_CHARS = 60
LEVEL_NUMBER = re.compile(r"%([1-9])")
ROMAN = {1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl"}
ROMAN |= {10: "x", 9: "ix", 5: "v", 4: "iv", 1: "i"}
DIGITS, UNITS = "零一二三四五六七八九", ("", "十", "百", "千")


def _roman(number: int) -> str:
    text = ""
    for value, letters in ROMAN.items() if 0 < number < 4000 else ():
        text += letters * (number // value)
        number %= value
    return text


def _letters(number: int) -> str:
    # The letters after z are aa, bb, cc and so on.
    return ascii_lowercase[(number - 1) % 26] * ((number - 1) // 26 + 1) if 0 < number <= 26 * 20 else ""


def _chinese(number: int) -> str:
    if not 0 < number < 10_000:
        return ""
    digits = str(number)
    written = (
        DIGITS[int(digit)] + (UNITS[len(digits) - at - 1] if digit != "0" else "") for at, digit in enumerate(digits)
    )
    text = re.sub("零+", "零", "".join(written)).rstrip("零")
    return text[1:] if 10 <= number < 20 else text


def _digits(number: int) -> str:
    return "".join(DIGITS[int(digit)] for digit in str(abs(number))).replace("零", "〇")


def _circled(number: int) -> str:
    return chr(0x245F + number) if 0 < number <= 20 else ""


WRITTEN: Mapping[str, Callable[[int], str]] = {
    "lowerRoman": _roman,
    "i": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "I": lambda number: _roman(number).upper(),
    "lowerLetter": _letters,
    "a": _letters,
    "upperLetter": lambda number: _letters(number).upper(),
    "A": lambda number: _letters(number).upper(),
    "decimalZero": lambda number: f"{number:02}",
    "chineseCounting": _chinese,
    "chineseCountingThousand": _chinese,
    "taiwaneseCountingThousand": _chinese,
    "japaneseCounting": _chinese,
    "一, 二, 三, ...": _chinese,
    "ideographDigital": _digits,
    "taiwaneseCounting": _chinese,
    "decimalEnclosedCircle": _circled,
    "decimalEnclosedCircleChinese": _circled,
    "①, ②, ③, ...": _circled,
}
"""Maps number formats, as named in Word or OpenDocument, to functions that write a number. Other formats use decimal
digits."""

NO_NUMBER = frozenset({"none", ""})


@dataclass(frozen=True, slots=True)
class ListLevel:
    """A level of a numbered or bulleted list.

    In `pattern`, `%1` is the number of the first level. The kinds `none` and "" have no number.
    """

    kind: str = "decimal"
    pattern: str | None = None
    start: int = 1
    plain: bool = False
    """Whether the pattern shows the numbers of other levels in decimal digits, whatever the kinds of those levels."""

    def format_number(self, number: int) -> str:
        if self.kind in NO_NUMBER:
            return ""
        return WRITTEN.get(self.kind, str)(number) or str(number)


class ListNumbers:
    """Counts the items of all lists, and returns the text before each item."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, int]] = {}
        self._starts: dict[str, dict[int, int]] = {}
        """The number of the next item, if it was set explicitly. The keys are counter and level."""

    def restart(self, counter: str, level: int, start: int) -> None:
        """Set the number of the next list item at this level."""
        if counter in self._starts or len(self._starts) < MAX_COUNTERS:
            self._starts.setdefault(counter, {})[level] = start
            self._counts.get(counter, {}).pop(level, None)

    def next_marker(self, counter: str, levels: Mapping[int, ListLevel], level: int) -> str:
        """Count an item. Return its number or bullet, with indentation and a space, or "" if it has none."""
        own = levels.get(level)
        if own is None:
            return ""
        counts = self._counts.get(counter, {})
        if not counts and len(self._counts) < MAX_COUNTERS:
            self._counts[counter] = counts
        for deeper in [other for other in counts if other > level]:
            del counts[deeper]
        indentation = "  " * level
        if own.kind == "bullet":
            return f"{indentation}- "
        starts = self._starts.get(counter, {})
        counts[level] = counts[level] + 1 if level in counts else starts.pop(level, own.start)

        def place(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            other = levels.get(at, ListLevel())
            number = counts.get(at, starts.get(at, other.start))
            return str(number) if own.plain and at != level else other.format_number(number)

        usual = f"%{level + 1}." if own.kind not in NO_NUMBER else ""
        text = LEVEL_NUMBER.sub(place, (usual if own.pattern is None else own.pattern)[:MAX_PATTERN_CHARS]).strip()
        return f"{indentation}{text} " if text else ""


def parse_level(text: str) -> int:
    """Return the list level (from 0) in an attribute's value, or 0 if the value is invalid."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 3 else 0


def parse_start(text: str) -> int:
    """Return the start number in an attribute's value, or 1 if the value is invalid."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 1
