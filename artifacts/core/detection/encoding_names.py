"""Names of text encodings: Python's names, their aliases, and the names that text files declare."""

from __future__ import annotations

import codecs
import re

NAMES = {
    "utf8": "utf-8", "utf-8-sig": "utf-8-sig", "ascii": "utf-8", "us-ascii": "utf-8", "unicode-1-1-utf-8": "utf-8",
    "utf-8-mac": "utf-8",
    "unicode": "utf-16", "csunicode": "utf-16-le", "iso-10646-ucs-2": "utf-16-le", "ucs-2": "utf-16-le",
    "unicodefeff": "utf-16-le", "unicodefffe": "utf-16-be", "ucs-4": "utf-32",
    "gbk": "gb18030", "gb2312": "gb18030", "cp936": "gb18030", "gb-18030": "gb18030", "gb-2312": "gb18030",
    "gb-2312-80": "gb18030", "x-gbk": "gb18030", "csgb2312": "gb18030", "hz": "hz",
    "big5-hkscs": "big5hkscs", "cp950": "big5", "cn-big5": "big5", "x-x-big5": "big5",
    "sjis": "shift_jis", "cp932": "cp932", "x-sjis": "cp932", "windows-31j": "cp932", "x-ms-cp932": "cp932",
    "x-euc-jp": "euc_jp", "cseucpkdfmtjapanese": "euc_jp",
    "euc-kr": "cp949", "windows-949": "cp949", "x-windows-949": "cp949", "cseuckr": "cp949",
    "csksc56011987": "cp949", "ks-c-5601-1989": "cp949", "iso-ir-149": "cp949", "x-johab": "johab",
    "iso-8859-1": "cp1252", "latin-1": "cp1252", "latin1": "cp1252", "iso8859-1": "cp1252", "ansi": "cp1252",
    "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874", "windows-874": "cp874", "dos-874": "cp874",
    "iso-8859-8-i": "iso8859-8", "iso-8859-8-e": "iso8859-8", "iso-8859-6-i": "iso8859-6",
    "iso-8859-6-e": "iso8859-6", "logical": "iso8859-8", "visual": "iso8859-8",
    "koi": "koi8-r", "koi8": "koi8-r", "koi8-ru": "koi8-u", "x-mac-roman": "mac-roman", "csmacintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic", "x-mac-ukrainian": "mac-cyrillic", "x-mac-ce": "mac-latin2",
    **{f"x-cp{page}": f"cp{page}" for page in range(1250, 1259)},
}  # fmt: skip
"""Maps each encoding to a superset that decodes the same bytes to the same characters (WHATWG Encoding Standard)."""

NOTATIONS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7", "mbcs", "oem"})
"""Python codecs that are not text encodings, or whose meaning depends on the machine."""

CHOICES = (
    *("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "gb18030", "big5", "big5hkscs", "hz"),
    *("shift_jis", "cp932", "euc_jp", "euc_jis_2004", "iso2022_jp", "cp949", "johab", "iso2022_kr"),
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("iso8859-2", "iso8859-5", "iso8859-7", "iso8859-15", "koi8-r", "koi8-u", "cp866", "cp855", "mac-cyrillic"),
    *("cp437", "cp850", "cp852", "mac-roman"),
)
"""Encodings, under Python's names, that users may choose if the detected encoding was a guess."""


def canonical_encoding(name: str | None) -> str | None:
    """Return our name for a text encoding (`gb18030` for `GBK`), or None if Python does not support the encoding."""
    if not name:
        return None
    key = name.strip().lower().replace("_", "-")
    try:
        info = codecs.lookup(NAMES.get(key, key))
    except (LookupError, ValueError):
        return None
    if not info._is_text_encoding or info.name in NOTATIONS:
        return None
    return NAMES.get(info.name.replace("_", "-"), info.name)


# The code below finds encoding declarations in text, in formats that allow them.

DECLARATION_BYTES = 4096
"""Number of bytes that are searched for a declaration. Browsers also search the first 1024 bytes."""

_NAME = rb"[\"']?[ \t]*+([A-Za-z0-9][A-Za-z0-9._:-]{0,39})"
DECLARATIONS = (
    re.compile(rb"\A\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*+" + _NAME),
    re.compile(rb"<meta\s[^>]{0,400}?charset\s*+=\s*+" + _NAME, re.I),
    re.compile(rb"\A@charset " + _NAME),
    re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*(?:#|//|/\*|;|%|--|\"|\.\.|<!--)[^\n]{0,200}?coding[:=][ \t]*+" + _NAME),
    re.compile(rb"^\"?Content-Type:[^\n]{0,200}?(?:\n[ \t][^\n]{0,200}?)?charset=" + _NAME, re.I | re.M),
)
"""Patterns of declarations: XML 1.0 §4.3.3, HTML's `meta`, CSS's `@charset`, a comment in the first two lines (PEP 263
for Python, also used by Emacs and Vim), and the headers of e-mails and gettext catalogues."""

_LINE_ENDS = re.compile(r"-(?:unix|dos|mac)$")


def declared_encoding(head: bytes) -> str | None:
    """Return our name for the encoding that an ASCII-compatible text declares in its first bytes, or None."""
    for pattern in DECLARATIONS:
        if match := pattern.search(head[:DECLARATION_BYTES]):
            name = canonical_encoding(_LINE_ENDS.sub("", match[1].decode("ascii").lower()))
            # Since the declaration was readable as ASCII, the text is not UTF-16 or UTF-32, whatever it declares.
            if name and not name.startswith(("utf-16", "utf-32")):
                return name
    return None
