"""The encoding that a text declares itself, where its format has a place for it."""

from __future__ import annotations

import re

from artifacts.core.detection.encoding_names import canonical

FAR = 4096
"""Bytes in which a declaration stands; browsers look through the first 1024."""

_NAME = rb"[\"']?[ \t]*+([A-Za-z0-9][A-Za-z0-9._:-]{0,39})"
DECLARATIONS = (
    re.compile(rb"\A\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*+" + _NAME),
    re.compile(rb"<meta\s[^>]{0,400}?charset\s*+=\s*+" + _NAME, re.I),
    re.compile(rb"\A@charset " + _NAME),
    re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*(?:#|//|/\*|;|%|--|\"|\.\.|<!--)[^\n]{0,200}?coding[:=][ \t]*+" + _NAME),
    re.compile(rb"^\"?Content-Type:[^\n]{0,200}?(?:\n[ \t][^\n]{0,200}?)?charset=" + _NAME, re.I | re.M),
)
"""XML 1.0 §4.3.3, the HTML standard's `meta`, CSS's `@charset`, a comment in the first two lines (PEP 263 for Python,
the same of Emacs and Vim), and the header of a mail or of a gettext catalogue."""

_LINE_ENDS = re.compile(r"-(?:unix|dos|mac)$")


def declared_in(head: bytes) -> str | None:
    """The encoding, by our name, that a head in any superset of ASCII declares; None where it declares none.

    What could be read without it is written in no UTF-16 or UTF-32, whatever it says.
    """
    for pattern in DECLARATIONS:
        if found := pattern.search(head[:FAR]):
            name = canonical(_LINE_ENDS.sub("", found[1].decode("ascii").lower()))
            if name and not name.startswith(("utf-16", "utf-32")):
                return name
    return None
