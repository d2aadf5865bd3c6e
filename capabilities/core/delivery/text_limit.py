"""Limit a file's text to a share of the context window that remains after the preceding conversation.

The limit depends on the model and on earlier content, but never on later content, so that the text stays the same in
all later turns. Because tokens are only estimated, part of the window is reserved for estimation errors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from capabilities.core.texts.description import HEAD_CHARS, TAIL_CHARS
from capabilities.core.translatable import Translatable, translatable

ANSWER_SHARE = 0.25
"""Fraction of the context window that is reserved for the answer and never used by files."""

MIN_CHARS = 2_000
"""Number of characters of a file that are sent even if the conversation has filled the context window."""

MAX_CHARS = 100_000_000

_SHARE, _CHARS = re.compile(r"([1-9][0-9]?|100) ?%", re.ASCII), re.compile(r"[1-9][0-9]{2,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TextLimit:
    """Maximum text of one file: `chars` characters if set, else the `share` (0 to 1) of the remaining context window.

    If the model's context window is unknown, `unknown_chars` is the maximum.
    """

    share: float = 0.5
    chars: int | None = None
    unknown_chars: int = HEAD_CHARS + TAIL_CHARS

    def max_chars(self, text: str, window: int | None, used: int) -> int:
        """Return how many characters of the text may be sent if `used` tokens of the window precede the file."""
        if window is None:
            return self.chars or self.unknown_chars
        left = max(int(window * (1 - ANSWER_SHARE)) - used, 0)
        if self.chars is None:
            left = int(left * self.share)
        # Convert tokens to characters at this text's own ratio: about four characters per token in English, one in
        # Chinese.
        fitting = max(left * len(text) // max(estimate_tokens(text), 1), MIN_CHARS)
        return fitting if self.chars is None else min(self.chars, fitting)


def read_text_limit(word: str) -> TextLimit:
    """Parse an administrator's limit: characters (`200000`), or a share of the remaining context window (`30%`).

    Raise ValueError if it is invalid.
    """
    if match := _SHARE.fullmatch(word.strip()):
        return TextLimit(share=int(match[1]) / 100)
    if _CHARS.fullmatch(word.strip()) and int(word) <= MAX_CHARS:
        return TextLimit(chars=int(word))
    raise ValueError(word)


def find_problem(word: str) -> Translatable | None:
    try:
        read_text_limit(word)
    except ValueError:
        return translatable(
            "Write characters, from 100 to 100,000,000, such as 200000, or a share of the window that is left, such as "
            "%(share)s.",
            share="30%",
        )
    return None


def estimate_tokens(text: str) -> int:
    """Estimate a text's token count from its UTF-8 size: 0.25 per ASCII character, 1 per Chinese character."""
    more = len(text.encode("utf-8", "replace")) - len(text)
    return (2 * len(text) + 3 * more + 7) // 8
