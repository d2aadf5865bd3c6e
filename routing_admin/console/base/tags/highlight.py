"""Highlight JSON on the server, so that browsers need no script for it."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from django.utils.safestring import SafeString

# The final quote is optional, so that a string that is cut off at the end of the text is also highlighted.
PARTS = re.compile(
    r"""(?P<k>"(?:[^"\\]|\\.)*+"?)(?=\s*:)     # a key
      |(?P<e>"[^"\\]*<\d[\d,]*\ bytes>[^"\\]*")  # bytes left out of a payload
      |(?P<s>"(?:[^"\\]|\\.)*+"?)              # a string
    """,
    re.VERBOSE,
)


def json_text(value: Any) -> str:
    """Return a value as indented JSON with Chinese characters unescaped. A string is returned unchanged."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def highlight_json(text: str) -> SafeString:
    """Highlight escaped JSON with HTML classes: `k` for keys, `s` for strings and `e` for omitted bytes."""
    pieces: list[str] = []
    position = 0
    for match in PARTS.finditer(text):
        before, part = escape(text[position : match.start()]), escape(match[0])
        pieces.append(f'{before}<span class="{match.lastgroup}">{part}</span>')
        position = match.end()
    return SafeString("".join(pieces) + escape(text[position:]))
