"""Do a few bytes that could be text in an old encoding read as words? Chance makes letters of any two or three bytes.

Asked only where nobody said what a file is: half of all blobs of four bytes decode in one of the old encodings.
"""

from __future__ import annotations

import re

from artifacts.core.detection.languages import MARKS

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
