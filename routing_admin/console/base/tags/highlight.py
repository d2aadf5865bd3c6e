"""JSON with its parts marked, on the server: no script colours anything in the browser."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from django.utils.safestring import SafeString

PARTS = re.compile(
    r"""(?P<k>"(?:[^"\\]|\\.)*+"?)(?=\s*:)     # a key
      |(?P<e>"[^"\\]*<\d[\d,]*\ bytes>[^"\\]*")  # bytes left out of a payload
      |(?P<s>"(?:[^"\\]|\\.)*+"?)              # a string
    """,
    re.VERBOSE,
)


def json_text(value: Any) -> str:
    """The value as indented JSON, Chinese unescaped; a string stands as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def highlight_json(text: str) -> SafeString:
    """The text, escaped, with keys in `.k`, strings in `.s` and left-out bytes in `.e`."""
    pieces: list[str] = []
    position = 0
    for match in PARTS.finditer(text):
        before, part = escape(text[position : match.start()]), escape(match[0])
        pieces.append(f'{before}<span class="{match.lastgroup}">{part}</span>')
        position = match.end()
    return SafeString("".join(pieces) + escape(text[position:]))
