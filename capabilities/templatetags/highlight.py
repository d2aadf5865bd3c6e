"""JSON with its parts marked, on the server: no script colours anything in the browser."""

from __future__ import annotations

import json
import re
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

PARTS = re.compile(
    r"""(?P<k>"(?:[^"\\]|\\.)*")(?=\s*:)     # a key
      |(?P<e>"[^"\\]*<\d[\d,]*\ bytes>[^"\\]*")  # bytes left out of a payload
      |(?P<s>"(?:[^"\\]|\\.)*")              # a string
    """,
    re.VERBOSE,
)


def json_text(value: Any) -> str:
    """The value as indented JSON, Chinese unescaped; a string stands as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def highlight_json(text: str) -> SafeString:
    """The text, escaped, with keys in `.k`, strings in `.s` and left-out bytes in `.e`."""
    pieces: list[tuple[str, str, str]] = []
    position = 0
    for match in PARTS.finditer(text):
        pieces.append((text[position : match.start()], match.lastgroup or "s", match.group()))
        position = match.end()
    return format_html("{}{}", format_html_join("", '{}<span class="{}">{}</span>', pieces), text[position:])
