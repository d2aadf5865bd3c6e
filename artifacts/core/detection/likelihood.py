"""Find the legacy encoding in which bytes are most likely text in a natural language.

In a wrong encoding, frequent letters become rare ones, capitals appear inside words, and words mix alphabets. For each
encoding, the score of the decoded text is the sum of the natural logarithms of its characters' probabilities (in nats),
plus a bonus of a few nats if the encoding-guessing library or the user's language supports this encoding.
"""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from artifacts.core.detection.languages import ALPHABETS, FREQUENT, MARKS, PUNCTUATION, Alphabet

SAMPLE = 4 * 1024
"""Maximum number of bytes that are decoded in every encoding. More bytes would not improve the choice."""

EAST_ASIAN = (
    ("zh", "gb18030", ("gb18030",), ((0xB0, 0xD7),)),
    ("zh-Hant", "big5", ("big5hkscs",), ((0xA4, 0xC6),)),
    ("ja", "shift_jis", ("cp932", "shift_jis_2004"), ((0x88, 0x97),)),
    ("ja", "euc_jp", ("euc_jis_2004",), ((0xB0, 0xCF),)),
    ("ko", "cp949", ("cp949",), ((0xB0, 0xC8),)),
    ("ko", "johab", ("johab",), ((0x88, 0xD3),)),
)
"""East Asian legacy encodings: for each one, the language, the encoding, the supersets used for decoding, and the lead
bytes of common characters (GB 2312 and JIS X 0208 level 1, Big5 level 1, Hangul in KS X 1001 and Johab)."""

WIDER: Mapping[str, tuple[str, ...]] = {
    "big5": ("cp950", "big5hkscs"),
    "shift_jis": ("cp932", "shift_jis_2004"),
    "euc_jp": ("euc_jis_2004",),
}
"""Maps encodings to their supersets, for files with characters that only the supersets have."""

MIN_NATS, MIN_NATS_EAST_ASIAN = -6.0, -10.0
"""Minimum score of decoded text in nats per non-ASCII character. With a lower score, its characters are too rare for
any language."""

FREQUENT_NATS = -8.5
"""Minimum score in nats per character for running Chinese, Japanese or Korean text."""

CERTAIN_LEAD = 6.0
"""The most likely candidate counts as certain only if its score exceeds that of every candidate with different text by
at least this many nats (about 400 to 1)."""

MIN_CERTAIN_CHARS = 4
"""A candidate counts as certain only if it has at least this many non-ASCII characters."""

GUESS_BONUS = 3.0
LANGUAGE_BONUS = 2.5
ENCODING_BONUS = {"cp1252": 1.0, "cp1251": 0.5}
"""Bonuses in nats that break ties: for the encoding-guessing library's guess, for the preferred language, and for each
script's most common encoding."""

_ASCII = -3.0
_RARE = -13.0
_CAPITAL_INSIDE = -4.0
_TWO_ALPHABETS = -3.0
_TWO_ACCENTS = -2.0


@dataclass(frozen=True, slots=True)
class LikelyText:
    """A candidate encoding, the text decoded with it, and the score of the non-ASCII characters in nats."""

    encoding: str
    text: str
    non_ascii_nats: float
    extra: float = 0.0
    is_east_asian: bool = False

    @property
    def non_ascii_chars(self) -> int:
        return len(self.text) - len(self.text.encode("ascii", "ignore"))

    @property
    def nats(self) -> float:
        """Return the natural logarithm of the candidate's likelihood, including the bonus `extra`."""
        return self.non_ascii_nats + self.extra + _ASCII * (len(self.text) - self.non_ascii_chars)

    @property
    def is_likely(self) -> bool:
        return self.non_ascii_nats >= (MIN_NATS_EAST_ASIAN if self.is_east_asian else MIN_NATS) * self.non_ascii_chars


def rank_readings(head: bytes, guessed: str | None = None, prefer: str = "zh") -> list[LikelyText]:
    """Return the candidates that are likely text in some language, most likely first."""
    sample = head[:SAMPLE]
    candidates = [
        replace(candidate, extra=_extra(candidate.encoding, guessed, prefer))
        for candidate in (*_east_asian(sample), *_alphabetic(sample))
        if candidate.is_likely
    ]
    return sorted(candidates, key=lambda reading: -reading.nats)


def is_clear(candidates: list[LikelyText]) -> bool:
    """Return whether the first candidate is long enough and clearly ahead of candidates with different text."""
    different = [candidate for candidate in candidates[1:] if candidate.text != candidates[0].text]
    return candidates[0].non_ascii_chars >= MIN_CERTAIN_CHARS and (
        not different or candidates[0].nats - different[0].nats >= CERTAIN_LEAD
    )


def is_east_asian_text(text: str) -> bool:
    """Return whether text is running Chinese, Japanese or Korean rather than an arbitrary mix of their characters."""
    tables = (_characters(language, encoding, leads) for language, encoding, _, leads in EAST_ASIAN)
    candidates = (LikelyText("", text, _sum_nats(text, table)) for table in tables)
    return any(
        candidate.non_ascii_chars and candidate.non_ascii_nats >= FREQUENT_NATS * candidate.non_ascii_chars
        for candidate in candidates
    )


def _extra(encoding: str, guessed: str | None, prefer: str) -> float:
    guess_bonus = GUESS_BONUS if guessed in (encoding, *WIDER.get(encoding, ())) else 0.0
    language_bonus = LANGUAGE_BONUS if any(row[:2] == (prefer, encoding) for row in EAST_ASIAN) else 0.0
    return guess_bonus + language_bonus + ENCODING_BONUS.get(encoding, 0.0)


def _decode(sample: bytes, encoding: str) -> str | None:
    try:
        # An incremental decoder ignores an incomplete last character, which `decode` would reject.
        return codecs.getincrementaldecoder(encoding)("strict").decode(sample)
    except (UnicodeError, ValueError):
        return None


def _sum_nats(text: str, table: Mapping[str, float]) -> float:
    return sum(n * table.get(char, _RARE) for char, n in Counter(text).items() if char > "\x7f")


def _east_asian(sample: bytes) -> Iterator[LikelyText]:
    for language, encoding, forms, leads in EAST_ASIAN:
        decoded = next((text for form in forms if (text := _decode(sample, form)) is not None), None)
        if decoded:
            nats = _sum_nats(decoded, _characters(language, encoding, leads))
            yield LikelyText(encoding, decoded, nats, is_east_asian=True)


@cache
def _characters(language: str, encoding: str, leads: tuple[tuple[int, int], ...]) -> dict[str, float]:
    # Map characters to log probabilities. In running text, 60 % of characters are frequent ones and 10 % are
    # punctuation.
    common = [
        char
        for first, last in leads
        for lead in range(first, last + 1)
        for trail in range(0x31, 0xFF)
        if len(char := bytes((lead, trail)).decode(encoding, "ignore")) == 1 and char > "\x7f"
    ]
    table = dict.fromkeys(common, math.log(0.28 / len(common)))
    table |= dict.fromkeys(PUNCTUATION, math.log(0.1 / len(PUNCTUATION)))
    return table | _by_rank(FREQUENT[language], 0.6)


def _by_rank(letters: str, share: float) -> dict[str, float]:
    # By Zipf's law, a letter's probability is inversely proportional to its frequency rank.
    weights = {letter: 1 / (rank + 5) for rank, letter in enumerate(dict.fromkeys(letters))}
    whole = sum(weights.values())
    return {letter: math.log(share * weight / whole) for letter, weight in weights.items()}


def _alphabetic(sample: bytes) -> Iterator[LikelyText]:
    decoded = {encoding: _decode(sample, encoding) for language in ALPHABETS for encoding in language.encodings}
    for language in ALPHABETS:
        for encoding in language.encodings:
            if text := decoded[encoding]:
                yield LikelyText(encoding, text, _alphabet_nats(text, language))


def _alphabet_nats(text: str, language: Alphabet) -> float:
    penalty = sum(cost * len(pattern.findall(text)) for pattern, cost in _unusual_patterns(language))
    return _sum_nats(text, _letters(language)) + penalty


@cache
def _letters(language: Alphabet) -> dict[str, float]:
    # Map letters to log probabilities. A capital letter is twelve times as rare as its lower-case form.
    small = _by_rank(language.letters, 0.9)
    capitals = {letter.upper(): nats - math.log(12) for letter, nats in small.items() if len(letter.upper()) == 1}
    return _by_rank(MARKS, 0.1 if language.beside_latin else 0.02) | (capitals if language.cased else {}) | small


@cache
def _unusual_patterns(language: Alphabet) -> tuple[tuple[re.Pattern[str], float], ...]:
    # Patterns that hardly ever occur in the language's words, each with its cost in nats.
    small = re.escape(language.letters)
    capitals = re.escape("".join(letter.upper() for letter in language.letters if len(letter.upper()) == 1))
    letters = f"{small}{capitals}" if language.cased else small
    patterns = [(re.compile(f"[a-z{small}](?=[{capitals}])"), _CAPITAL_INSIDE)] if language.cased else []
    if language.beside_latin:
        return (*patterns, (re.compile(f"[{letters}](?=[{letters}])"), _TWO_ACCENTS))
    return (*patterns, (re.compile(f"[A-Za-z](?=[{letters}])|[{letters}](?=[A-Za-z])"), _TWO_ALPHABETS))


# The code below decides whether the bytes of a short file are words if no type was declared. Any two or three bytes can
# be letters by accident, and half of all combinations of four bytes are valid in some legacy encoding.

SHORT = 24
"""If a file has fewer bytes than this, its content must consist of words. Longer files do not look like a language by
accident."""

SCRIPTS = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f",
    "\u0370-\u03ff",
    "\u0400-\u052f",
    "\u0591-\u05ff",
    "\u060c-\u06d3",
    "\u0e01-\u0e5b",
    "\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff66-\uff9f",
)
"""Character ranges of scripts: Latin, Greek, Cyrillic, Hebrew, Arabic, Thai, East Asian. A word contains letters of
only one script."""

_LETTERS = "".join(SCRIPTS)
_BETWEEN = "0-9\\s.,;:!?'\"()/+%\u3000-\u3003\u3008-\u301c\uff01-\uff5e" + re.escape(MARKS + "-")
_WORD = "|".join(f"[{letters}]+" for letters in SCRIPTS)
_WORDS = re.compile(f"(?:[{_BETWEEN}]|(?:{_WORD})(?![{_LETTERS}]))*")
_RUN = re.compile(f"[{_LETTERS}]+")


def is_word_like(text: str) -> bool:
    """Return whether text consists of words, numbers and punctuation, with one script and normal case in each word."""
    return bool(_WORDS.fullmatch(text)) and all(_is_cased(word) for word in _RUN.findall(text))


def _is_cased(word: str) -> bool:
    return word.upper() == word or word[1:].lower() == word[1:]
