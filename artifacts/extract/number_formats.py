"""Format cell values by their number format (ECMA-376 part 1, §18.8.31). Runs only in the extraction process."""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass

GENERAL = "General"
MAX_CODE_CHARS = 255
"""Excel's limit on the length of a format code."""
MAX_DECIMALS = 30
MAX_DATES = 10_000
"""Maximum number of formatted dates that a format caches. Columns often repeat the same dates."""

BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: '"$"#,##0;("$"#,##0)', 6: '"$"#,##0;("$"#,##0)',
    7: '"$"#,##0.00;("$"#,##0.00)', 8: '"$"#,##0.00;("$"#,##0.00)', 9: "0%", 10: "0.00%", 11: "0.00E+00",
    12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd hh:mm:ss", 37: "#,##0;(#,##0)",
    38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 41: "#,##0;(#,##0);-;@",
    42: '"$"#,##0;("$"#,##0);"$"-;@', 43: "#,##0.00;(#,##0.00);-;@", 44: '"$"#,##0.00;("$"#,##0.00);"$"-;@',
    45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
    **dict.fromkeys((*range(27, 32), 36, *range(50, 59)), "yyyy-mm-dd"), **dict.fromkeys(range(32, 36), "h:mm:ss"),
}  # fmt: skip
"""Built-in format codes by number. Dates whose format depends on Excel's locale (14, 22, East Asian ones) are written
in ISO 8601."""

_TOKEN = re.compile(
    r"""(?P<word>"[^"]*"?|\\.|_.|\*.)            # literals, and widths of characters, which are not shown
    |\[(?P<bracket>[^\]]*)\]
    |(?P<general>general)|(?P<half>am/pm|a/p|上午/下午)
    |(?P<exponent>e[+-])|(?P<date>y+|m+|d+|h+|s+|aaaa?|e+)
    |(?P<digit>[0\#?])|(?P<other>.)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?\d{1,15}(?:\.\d{1,15})?)")
_SYSTEM_DATE = re.compile(r"\[\$-[^\]]*F(800|400)\]", re.IGNORECASE)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LAST_SERIAL = 2_958_466
"""Serial number of the day after 31 December 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a number format: the condition for using it, and its tokens as pairs of kind and text."""

    condition: tuple[str, float] | None
    tokens: tuple[tuple[str, str], ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Plain:
    """A section that Python itself can format: digits with a fixed number of decimals, and literal text around them."""

    before: str
    spec: str
    after: str
    factor: float
    limit: float


_PLAIN = re.compile(r"(?:#,##|#*)(0+)(?:\.(0{1,9}))?(,{0,3})")
_ROUNDING_FACTOR = 1 + 1e-15
"""Factor that makes decimal halves such as 2.675 round up (up to 15 digits), because their binary form can be slightly
less than a half."""


class NumberFormat:
    """A compiled number format. An invalid format code is treated as `General`."""

    def __init__(self, code: str, *, from_1904: bool = False) -> None:
        if len(code) > MAX_CODE_CHARS:
            code = GENERAL
        elif system := _SYSTEM_DATE.match(code):
            code = "yyyy-mm-dd" if system[1] == "800" else "h:mm:ss"
        self._from_1904 = from_1904
        # A line break in a format code would end the table row.
        self._sections = [_section(tokens) for tokens in _split(" ".join(code.splitlines()).replace("\t", " "))[:4]]
        self._dates = dict[float, str]()
        self._conditional = any(section.condition for section in self._sections[:2])
        self._plain = [None if self._conditional else _plain(section) for section in self._sections[:2]]
        self._has_zero = len(self._sections) > 2

    def number(self, value: float) -> str:
        """Return the formatted number. If the format hides the number entirely, return it as `General`."""
        plain = self._plain[-1 if value < 0 else 0]
        if plain and -plain.limit < value < plain.limit and (value or not self._has_zero):
            shown = f"{plain.before}{abs(value) * plain.factor:{plain.spec}}{plain.after}"
            return f"-{shown}" if value < 0 and len(self._plain) == 1 else shown
        if value in self._dates:
            return self._dates[value]
        section, sign = self._choose(value)
        try:
            shown = _render(section, abs(value), sign, value, from_1904=self._from_1904)
        # Percent signs in the format can make very large numbers overflow, and a format code may be invalid.
        except (ArithmeticError, ValueError):
            shown = ""
        if section.kind == "date" and len(self._dates) < MAX_DATES:
            self._dates[value] = shown
        return shown if shown.strip() or not value else general(value)

    def words(self, text: str) -> str:
        """Return text as the format's text section (the fourth) shows it, or unchanged if there is none."""
        last = self._sections[-1]
        if last.kind != "text" or (len(self._sections) < 4 and len(self._sections) > 1):
            return text
        return "".join(text if kind == "@" else part for kind, part in last.tokens)

    def _choose(self, value: float) -> tuple[Section, str]:
        sections, sign = self._sections, "-" if value < 0 else ""
        if self._conditional:
            for section in sections[:3]:
                if section.condition and not _holds(value, section.condition):
                    continue
                # A section that applies only to negative numbers writes the sign itself.
                negative = section.condition and section.condition[0] in ("<", "<=") and section.condition[1] <= 0
                return section, "" if negative else sign
            return Section(condition=None, tokens=(), kind="general"), sign
        if value == 0 and len(sections) > 2:
            return sections[2], ""
        return (sections[1], "") if value < 0 and len(sections) > 1 else (sections[0], sign)


def _plain(section: Section) -> Plain | None:
    kinds = [kind for kind, _ in section.tokens]
    places = [index for index, kind in enumerate(kinds) if kind in ("digit", ".", ",")]
    if section.kind != "number" or section.condition or not places or set(kinds) & {"exponent", "/"}:
        return None
    first, last = places[0], places[-1] + 1
    code = "".join(text for _, text in section.tokens[first:last])
    match = _PLAIN.fullmatch(code)
    if not match or len(places) != last - first or ("," in code[:2] and len(match[1]) > 1):
        return None
    decimals = len(match[2] or "")
    zeros = len(match[1]) + decimals + bool(decimals)
    factor = 100.0 ** min(kinds.count("%"), 5) / 1000.0 ** len(match[3])
    spec = f",.{decimals}f" if code.startswith("#,") else f"0{zeros}.{decimals}f"
    before, after = ("".join(text for _, text in part) for part in (section.tokens[:first], section.tokens[last:]))
    # Above this limit, the last decimal of a number exceeds Excel's precision of 15 digits.
    return Plain(before, spec, after, factor * _ROUNDING_FACTOR, 1e11 / factor / 10.0**decimals)


def general(value: float) -> str:
    """Return a number as Excel's `General` shows it in a wide cell, but with all digits of integers (phone numbers)."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if 1e-4 <= abs(value) < 1e11:
        whole = len(str(int(abs(value))))
        shown = f"{value * _ROUNDING_FACTOR:.{max(0, 10 - whole)}f}"
        return shown.rstrip("0").rstrip(".") if "." in shown else shown
    mantissa, _, exponent = f"{value:.5e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}E{exponent}"


def _split(code: str) -> list[list[re.Match[str]]]:
    sections: list[list[re.Match[str]]] = [[]]
    for match in _TOKEN.finditer(code):
        if match[0] == ";":
            sections.append([])
        else:
            sections[-1].append(match)
    return sections


def _section(matches: list[re.Match[str]]) -> Section:
    condition, tokens = None, list[tuple[str, str]]()
    for match in matches:
        kind, text = str(match.lastgroup), match[0]
        if kind == "bracket":
            inside = match["bracket"]
            if found := _CONDITION.fullmatch(inside):
                condition = (found[1], float(found[2]))
            elif inside.startswith("$"):
                tokens.append(("word", inside[1:].partition("-")[0]))
            elif inside and set(inside.lower()) in ({"h"}, {"m"}, {"s"}):
                tokens.append(("elapsed", inside.lower()))
        elif kind == "word":
            if text[0] in '"\\':
                tokens.append(("word", text.strip('"') if text[0] == '"' else text[1:]))
            elif text[0] == "_":
                tokens.append(("word", " "))
        elif kind == "other":
            tokens.append((text, text) if text in ".,%/@" else ("word", text))
        else:
            tokens.append((kind, text if kind == "digit" else text.lower()))
    return _with_kind(condition, tokens)


def _with_kind(condition: tuple[str, float] | None, tokens: list[tuple[str, str]]) -> Section:
    kinds = {kind for kind, _ in tokens}
    if kinds & {"date", "elapsed", "half"}:
        kind, tokens = "date", _with_minutes(tokens)
    elif "general" in kinds or not (kinds - {"word"} or tokens):
        kind = "general" if "general" in kinds else "number"
    elif "@" in kinds:
        kind = "text"
    elif "/" in kinds and "digit" in kinds:
        kind = "fraction"
    else:
        kind = "number"
    return Section(condition=condition, tokens=tuple(tokens), kind=kind)


def _with_minutes(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    # The letter `m` means minutes after an hour or before a second, but months elsewhere.
    result, places = list(tokens), [index for index, (kind, _) in enumerate(tokens) if kind in ("date", "elapsed")]
    for number, place in enumerate(places):
        if tokens[place][0] == "date" and tokens[place][1] in ("m", "mm"):
            before = tokens[places[number - 1]][1][0] if number else ""
            after = tokens[places[number + 1]][1][0] if number + 1 < len(places) else ""
            if before == "h" or after == "s":
                result[place] = ("date", "n" * len(tokens[place][1]))
    return result


def _holds(value: float, condition: tuple[str, float]) -> bool:
    sign, limit = condition
    return {
        "<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit,
        "=": value == limit, "<>": value != limit,
    }[sign]  # fmt: skip


def _render(section: Section, size: float, sign: str, value: float, *, from_1904: bool) -> str:
    if section.kind == "general" or section.kind == "text":
        shown = general(size)
        if not section.tokens:
            return sign + shown
        return sign + "".join(shown if kind in ("general", "@") else text for kind, text in section.tokens)
    if section.kind == "date":
        return _date(section.tokens, value, from_1904=from_1904)
    if section.kind == "fraction":
        return sign + _fraction(section.tokens, size)
    return sign + _number(section.tokens, size)


def _digits(value: float, decimals: int) -> int:
    # As in Excel, round halves up and use 15 digits: 2.675 becomes 2.68.
    mantissa, _, exponent = f"{value:.14e}".partition("e")
    digits, shift = int(mantissa.replace(".", "")), int(exponent) - 14 + decimals
    if shift >= 0:
        return digits * int(10**shift)
    return 0 if shift < -16 else (digits + 5 * int(10 ** (-shift - 1))) // int(10**-shift)


def _number(tokens: tuple[tuple[str, str], ...], size: float) -> str:
    kinds = [kind for kind, _ in tokens]
    end = kinds.index("exponent") if "exponent" in kinds else len(kinds)
    point = kinds.index(".") if "." in kinds[:end] else end
    whole = [index for index in range(point) if kinds[index] == "digit"]
    part = [index for index in range(point + 1, end) if kinds[index] == "digit"][:MAX_DECIMALS]
    if not whole and not part:
        return "".join(text for kind, text in tokens if kind != ",")
    # A comma between digits groups thousands. A comma after the digits divides the number by a thousand.
    groups = "," in kinds[whole[0] : whole[-1]] if whole else False
    scale = (kinds[whole[-1] : point].count(",") if whole else 0) + (kinds[part[-1] : end].count(",") if part else 0)
    size = size * 100.0 ** min(kinds.count("%"), 5) / 1000.0**scale
    power = 0
    if end < len(kinds) and size:
        step = max(len(whole), 1)
        power = math.floor(math.log10(size))
        power -= power % step if step > 1 else 0
        if _digits(size / 10.0**power, len(part)) >= 10 ** (step + len(part)):
            power += step
        size /= 10.0**power
    if not math.isfinite(size):
        return "".join(text for _, text in tokens)
    digits = str(_digits(size, len(part))).rjust(len(part), "0")
    shown = _whole(digits[: len(digits) - len(part)].lstrip("0"), whole, tokens, groups=groups)
    shown |= _decimals(digits[len(digits) - len(part) :] if part else "", part, tokens)
    return _joined(tokens, shown, end, power)


def _whole(digits: str, places: list[int], tokens: tuple[tuple[str, str], ...], *, groups: bool) -> dict[int, str]:
    shown, count = dict[int, str](), 0
    for number, place in enumerate(reversed(places)):
        is_first = number == len(places) - 1
        mine = digits if is_first else digits[-1:]
        digits = "" if is_first else digits[:-1]
        mine = mine or {"0": "0", "?": " "}.get(tokens[place][1], "")
        text = ""
        for digit in reversed(mine):
            comma = "," if groups and count and count % 3 == 0 and digit != " " else ""
            text, count = digit + comma + text, count + 1
        shown[place] = text
    return shown


def _decimals(digits: str, places: list[int], tokens: tuple[tuple[str, str], ...]) -> dict[int, str]:
    shown, kept = dict[int, str](), False
    for place, digit in zip(reversed(places), reversed(digits), strict=True):
        kept = kept or digit != "0" or tokens[place][1] == "0"
        shown[place] = digit if kept else " " if tokens[place][1] == "?" else ""
    return shown


def _joined(tokens: tuple[tuple[str, str], ...], shown: dict[int, str], end: int, power: int) -> str:
    parts, zeros = list[str](), sum(kind == "digit" for kind, _ in tokens[end:])
    for index, (kind, text) in enumerate(tokens):
        if kind == "digit" and index < end:
            parts.append(shown.get(index, ""))
        elif kind == "exponent":
            sign = "-" if power < 0 else "+" if text[1] == "+" else ""
            parts.append(f"E{sign}{str(abs(power)).rjust(zeros, '0')}")
        elif kind not in ("digit", ","):
            parts.append(text)
    return "".join(parts)


def _fraction(tokens: tuple[tuple[str, str], ...], size: float) -> str:
    kinds = [kind for kind, _ in tokens]
    slash = kinds.index("/")
    below = "".join(text for kind, text in tokens[slash + 1 :] if kind == "digit" or text.isdigit())
    before = [index for index in range(slash) if kinds[index] == "digit"]
    mixed = any(text == " " and before and index > before[0] for index, (_, text) in enumerate(tokens[:slash]))
    whole = int(size) if mixed else 0
    rest = size - whole
    if size >= 1e15:
        return general(size)
    if below.isascii() and below.isdecimal() and below.strip("0"):
        bottom = int(below[:6]) or 1
        top = math.floor(rest * bottom + 0.5)
    else:
        top, bottom = _ratio(rest, 10 ** min(max(len(below), 1), 4) - 1)
    if mixed and top == bottom:
        whole, top = whole + 1, 0
    if not top and mixed:
        return str(whole)
    return f"{whole} {top}/{bottom}" if whole else f"{top}/{bottom}"


def _ratio(value: float, limit: int) -> tuple[int, int]:
    # Use continued fractions, up to the last convergent whose denominator has at most the allowed number of digits.
    before, now, rest = (0, 1), (1, 0), value
    for _ in range(24):
        step = math.floor(rest)
        following = (step * now[0] + before[0], step * now[1] + before[1])
        if following[1] > limit:
            break
        before, now = now, following
        if rest - step < 1e-9:
            break
        rest = 1 / (rest - step)
    return now


def _date(tokens: tuple[tuple[str, str], ...], value: float, *, from_1904: bool) -> str:
    is_elapsed = any(kind == "elapsed" for kind, _ in tokens)
    if not (abs(value) if is_elapsed else value) < _LAST_SERIAL or (value < 0 and not is_elapsed):
        return general(value)
    # The format shows the fraction of a second as digits after a point.
    decimals = min(sum(kind == "digit" for kind, _ in tokens), 3)
    moments = math.floor(abs(value) * 86_400 * 10**decimals + 0.5)
    total, fraction = divmod(moments, 10**decimals)
    days, seconds = divmod(total, 86_400)
    day = _day(days, from_1904=from_1904)
    hour, half = seconds // 3600, any(kind == "half" for kind, _ in tokens)
    units = {"y": day[0], "e": day[0], "m": day[1], "d": day[2], "h": (hour + 11) % 12 + 1 if half else hour}
    units |= {"n": seconds // 60 % 60, "s": seconds % 60}
    elapsed = {"h": total // 3600, "m": total // 60, "s": total}
    parts, digits = ["-" if value < 0 else ""], f"{fraction:0{decimals}}" if decimals else ""
    for kind, text in tokens:
        if kind == "date":
            parts.append(_unit(text, units[text[0]] if text[0] != "a" else 0, day[3]))
        elif kind == "elapsed":
            parts.append(str(elapsed[text[0]]).rjust(len(text), "0"))
        elif kind == "half":
            first, _, second = text.upper().partition("/")
            parts.append(second if hour >= 12 else first)
        elif kind == "digit":
            parts.append(digits[:1])
            digits = digits[1:]
        else:
            parts.append(text)
    return "".join(parts)


def _day(days: int, *, from_1904: bool) -> tuple[int, int, int, int]:
    # Excel's 1900 calendar has a day 0, and counts 29 February 1900, which did not exist, as day 60.
    if from_1904:
        days += 1462
    if days == 60:
        return 1900, 2, 29, 2
    if days == 0:
        return 1900, 1, 0, 5
    date = dt.date.fromordinal(min(693_594 + days + (days < 60), dt.date.max.toordinal()))
    return date.year, date.month, date.day, (days - 2) % 7


def _unit(text: str, number: int, weekday: int) -> str:
    letter, length = text[0], len(text)
    if letter == "a":
        return ("星期" if length > 3 else "") + "一二三四五六日"[weekday]
    if letter == "y":
        return f"{number % 100:02}" if length < 3 else f"{number:04}"
    if letter == "m" and length > 2:
        name = _MONTHS[number - 1]
        return name[:3] if length == 3 else name[:1] if length == 5 else name
    if letter == "d" and length > 2:
        return _DAYS[weekday][:3] if length == 3 else _DAYS[weekday]
    return f"{number:02}" if length > 1 else str(number)
