"""Text as PostgreSQL can keep it: it has no NUL and no half of a surrogate pair, which become U+FFFD."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"
LOST = re.compile("[\x00\ud800-\udfff]")
ESCAPES = re.compile(
    r"\\\\|\\u0000|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
"""What begins with a backslash in JSON and is no escape like others: itself, NUL, a whole pair, half of one."""


def storable_text(text: str) -> str:
    """The text with everything that can be kept."""
    return text if text.isascii() and "\x00" not in text else LOST.sub(REPLACEMENT, text)


def storable_json(text: str) -> str:
    """The same for what JSON writes as escapes."""
    return ESCAPES.sub(_keep_or_replace, text) if "\\u" in text else text


def _keep_or_replace(match: re.Match[str]) -> str:
    escape = match[0]
    return escape if len(escape) in (2, 12) else "\\ufffd"
