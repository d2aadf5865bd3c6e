"""In which old encoding do these bytes read as a language? By how likely their characters are in each.

Read in the wrong encoding, frequent letters become rare ones, capitals stand inside words and letters of two
alphabets side by side. Each reading gets the sum of the logarithms of its characters' probabilities, a few nats for
what the guesser and the reader's language say, and the likeliest comes first.
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
"""Bytes that are read in every encoding; more tell nothing new."""

EAST_ASIAN = (
    ("zh", "gb18030", ("gb18030",), ((0xB0, 0xD7),)),
    ("zh-Hant", "big5", ("big5hkscs",), ((0xA4, 0xC6),)),
    ("ja", "shift_jis", ("cp932", "shift_jis_2004"), ((0x88, 0x97),)),
    ("ja", "euc_jp", ("euc_jis_2004",), ((0xB0, 0xCF),)),
    ("ko", "cp949", ("cp949",), ((0xB0, 0xC8),)),
    ("ko", "johab", ("johab",), ((0x88, 0xD3),)),
)
"""Language, encoding, the widest forms of it that are read, and the lead bytes of its common characters
(GB 2312 and JIS X 0208 level 1, Big5 level 1, the Hangul of KS X 1001 and of Johab)."""

WIDER: Mapping[str, tuple[str, ...]] = {
    "big5": ("cp950", "big5hkscs"),
    "shift_jis": ("cp932", "shift_jis_2004"),
    "euc_jp": ("euc_jis_2004",),
}
"""Encoding → those that hold more characters in the same places, for files that need them."""

LEAST, LEAST_EAST_ASIAN = -6.0, -10.0
"""Nats for each character beyond ASCII: with less the characters are so rare that no language was found."""

FREQUENT_NATS = -8.5
"""What the characters of running Chinese, Japanese and Korean exceed on average."""

CLEAR = 6.0
"""Nats that the likeliest reading is ahead of every other when it is certain: 400 to 1."""

FEW = 4
"""Characters beyond ASCII without which no reading is certain."""

GUESSED = 3.0
PREFERRED = 2.5
USUAL = {"cp1252": 1.0, "cp1251": 0.5}
"""Nats for what is otherwise as likely: the guesser's word, the reader's language, the usual one of a script."""

_ASCII = -3.0
_RARE = -13.0
_CAPITAL_INSIDE = -4.0
_TWO_ALPHABETS = -3.0
_TWO_ACCENTS = -2.0


@dataclass(frozen=True, slots=True)
class LikelyText:
    """One way to read the bytes: the encoding, the text, and the nats of its characters beyond ASCII."""

    encoding: str
    words: str
    beyond_ascii: float
    extra: float = 0.0
    is_east_asian: bool = False

    @property
    def wide(self) -> int:
        """How many characters are beyond ASCII."""
        return len(self.words) - len(self.words.encode("ascii", "ignore"))

    @property
    def nats(self) -> float:
        """The logarithm of the whole reading's likelihood, with what speaks for it beside its characters."""
        return self.beyond_ascii + self.extra + _ASCII * (len(self.words) - self.wide)

    @property
    def is_likely(self) -> bool:
        """Whether some language is written with such characters."""
        return self.beyond_ascii >= (LEAST_EAST_ASIAN if self.is_east_asian else LEAST) * self.wide


def readings(head: bytes, guessed: str | None = None, prefer: str = "zh") -> list[LikelyText]:
    """The ways to read a head that some language makes likely, the likeliest first, none for bytes of no language."""
    sample = head[:SAMPLE]
    found = [
        replace(each, extra=_extra(each.encoding, guessed, prefer))
        for each in (*_east_asian(sample), *_alphabetic(sample))
        if each.is_likely
    ]
    return sorted(found, key=lambda each: -each.nats)


def is_clear(texts: list[LikelyText]) -> bool:
    """Whether the likeliest reading of `FEW` characters or more is far ahead of all that read otherwise."""
    others = [each for each in texts[1:] if each.words != texts[0].words]
    return texts[0].wide >= FEW and (not others or texts[0].nats - others[0].nats >= CLEAR)


def reads_as_east_asian(words: str) -> bool:
    """Whether words are running Chinese, Japanese or Korean rather than any of their characters."""
    tables = (_characters(language, encoding, leads) for language, encoding, _, leads in EAST_ASIAN)
    found = (LikelyText("", words, _sum_nats(words, table)) for table in tables)
    return any(each.wide and each.beyond_ascii >= FREQUENT_NATS * each.wide for each in found)


def _extra(encoding: str, guessed: str | None, prefer: str) -> float:
    by_guess = GUESSED if guessed in (encoding, *WIDER.get(encoding, ())) else 0.0
    by_reader = PREFERRED if any(row[:2] == (prefer, encoding) for row in EAST_ASIAN) else 0.0
    return by_guess + by_reader + USUAL.get(encoding, 0.0)


def _decode(sample: bytes, encoding: str) -> str | None:
    """The text, without a last character that was cut in two; None where it does not decode."""
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(sample)
    except (UnicodeError, ValueError):
        return None


def _sum_nats(words: str, table: Mapping[str, float]) -> float:
    return sum(n * table.get(char, _RARE) for char, n in Counter(words).items() if char > "\x7f")


def _east_asian(sample: bytes) -> Iterator[LikelyText]:
    for language, encoding, forms, leads in EAST_ASIAN:
        words = next((text for form in forms if (text := _decode(sample, form)) is not None), None)
        if words:
            nats = _sum_nats(words, _characters(language, encoding, leads))
            yield LikelyText(encoding, words, nats, is_east_asian=True)


@cache
def _characters(language: str, encoding: str, leads: tuple[tuple[int, int], ...]) -> dict[str, float]:
    """Character → the logarithm of its probability: six in ten are frequent ones, one in ten punctuation."""
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
    """Zipf's law: the probability of a letter falls with its place in the order."""
    weights = {letter: 1 / (rank + 5) for rank, letter in enumerate(dict.fromkeys(letters))}
    whole = sum(weights.values())
    return {letter: math.log(share * weight / whole) for letter, weight in weights.items()}


def _alphabetic(sample: bytes) -> Iterator[LikelyText]:
    decoded = {encoding: _decode(sample, encoding) for language in ALPHABETS for encoding in language.encodings}
    for language in ALPHABETS:
        for encoding in language.encodings:
            if words := decoded[encoding]:
                yield LikelyText(encoding, words, _alphabet_nats(words, language))


def _alphabet_nats(words: str, language: Alphabet) -> float:
    odd = sum(cost * len(pattern.findall(words)) for pattern, cost in _oddities(language))
    return _sum_nats(words, _letters(language)) + odd


@cache
def _letters(language: Alphabet) -> dict[str, float]:
    """Letter → the logarithm of its probability; a capital is twelve times as rare as its small letter."""
    small = _by_rank(language.letters, 0.9)
    capitals = {letter.upper(): nats - math.log(12) for letter, nats in small.items() if len(letter.upper()) == 1}
    return _by_rank(MARKS, 0.1 if language.beside_latin else 0.02) | (capitals if language.cased else {}) | small


@cache
def _oddities(language: Alphabet) -> tuple[tuple[re.Pattern[str], float], ...]:
    """What words of the language hardly ever have, and what each occurrence costs."""
    small = re.escape(language.letters)
    capitals = re.escape("".join(letter.upper() for letter in language.letters if len(letter.upper()) == 1))
    own = f"{small}{capitals}" if language.cased else small
    found = [(re.compile(f"[a-z{small}](?=[{capitals}])"), _CAPITAL_INSIDE)] if language.cased else []
    if language.beside_latin:
        return (*found, (re.compile(f"[{own}](?=[{own}])"), _TWO_ACCENTS))
    return (*found, (re.compile(f"[A-Za-z](?=[{own}])|[{own}](?=[A-Za-z])"), _TWO_ALPHABETS))


# Do a few bytes that could be text in an old encoding read as words? Chance makes letters of any two or three bytes.
#
# Asked only where nobody said what a file is: half of all blobs of four bytes decode in one of the old encodings.

SHORT = 24
"""Bytes of a file that is judged so; in more of them no language shows by chance."""

SCRIPTS = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f",
    "\u0370-\u03ff",
    "\u0400-\u052f",
    "\u0591-\u05ff",
    "\u060c-\u06d3",
    "\u0e01-\u0e5b",
    "\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff66-\uff9f",
)
"""Letters that stand in one word: Latin, Greek, Cyrillic, Hebrew, Arabic, Thai, East Asian."""

_LETTERS = "".join(SCRIPTS)
_BETWEEN = "0-9\\s.,;:!?'\"()/+%\u3000-\u3003\u3008-\u301c\uff01-\uff5e" + re.escape(MARKS + "-")
_WORD = "|".join(f"[{letters}]+" for letters in SCRIPTS)
_WORDS = re.compile(f"(?:[{_BETWEEN}]|(?:{_WORD})(?![{_LETTERS}]))*")
_RUN = re.compile(f"[{_LETTERS}]+")


def reads_as_words(text: str) -> bool:
    """Whether there is nothing but words, numbers and what stands between them: each in one script, with capitals as
    people write them.
    """
    return bool(_WORDS.fullmatch(text)) and all(_is_cased(word) for word in _RUN.findall(text))


def _is_cased(word: str) -> bool:
    return word.upper() == word or word[1:].lower() == word[1:]
