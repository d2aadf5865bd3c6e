"""Texts without a byte order mark whose encoding shows in the bytes: UTF-16 and UTF-32 by their NULs, ISO 2022 and HZ
by their escape sequences, which are ASCII throughout.
"""

from __future__ import annotations

import codecs
import re

from artifacts.core.detection.likelihood import reads_as_east_asian

COMMON_WIDE = 0.8
"""So many of ten characters are ones that people write."""

_COMMON_WIDE = re.compile(
    "[\t\n\r -~\u00a0-\u024f\u0370-\u052f\u0590-\u06ff\u0e00-\u0e5b\u2010-\u2026"
    "\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]"
)
_PLAIN = re.compile("[\t\n\r -~]")
_EAST_ASIAN = re.compile("[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef]*")
_ASCII_WORDS = bytes([0, 9, 10, 13, *range(32, 127)])

ESCAPES = re.compile(rb"\x1b\$[@AB]|\x1b\$\([A-DO-Q]|\x1b\$\)[AC]|\x1b\([IJ]|\x1b\.A")
"""Sequences of ISO 2022 that choose a set of characters for Japanese, Korean or Chinese (RFC 1468, 1554, 1557)."""

ESCAPED = ("iso2022_jp", "iso2022_kr", "iso2022_jp_2", "iso2022_jp_ext", "iso2022_jp_2004")
_HZ = re.compile(rb"~\{(?:[\x21-\x77][\x21-\x7e]){2,}~\}")


def utf16_by_nuls(head: bytes) -> str | None:
    """UTF-16 without a mark: each ASCII character, blank and line end in it brings a NUL; None for anything else."""
    if len(head) < 2 or b"\0" not in head:
        return None
    shares = {name: _common_wide(head, name) for name in ("utf-16-le", "utf-16-be")}
    best = max(shares, key=lambda name: shares[name])
    common, plain = shares[best]
    if common >= COMMON_WIDE and (plain or is_east_asian(head, best)) and not _ascii_with_nuls(head, best):
        return best
    return None


def utf32_by_nuls(head: bytes) -> str | None:
    """UTF-32 without a mark: the first of four bytes is always NUL, the second 16 at most (Unicode, chapter 3.10)."""
    whole = head[: len(head) & ~3]
    if len(whole) < 8 or not any(head.startswith(nul, at) for nul, at in ((b"\0\0", 2), (b"\0\0", 0))):
        return None
    for name, high in (("utf-32-le", whole[3::4]), ("utf-32-be", whole[::4])):
        if not high.strip(b"\0"):
            words = _decode(whole, name)
            if words and len(_COMMON_WIDE.findall(words)) >= COMMON_WIDE * len(words):
                return name
    return None


def all_chinese_utf16(head: bytes) -> str | None:
    """UTF-16 without a mark and without a single ASCII character: four or more characters, all Chinese."""
    if len(head) % 2:
        return None
    return next((name for name in ("utf-16-le", "utf-16-be") if is_east_asian(head, name)), None)


def is_east_asian(head: bytes, encoding: str) -> bool:
    """Four or more characters, all Chinese; U+4E00, which is the number one, brings a NUL of its own."""
    return len(head) >= 8 and bool(_EAST_ASIAN.fullmatch(head.decode(encoding, "replace")))


def by_escapes(head: bytes) -> str | None:
    """The encoding in which escape sequences, or HZ's braces, turn ASCII into East Asian words."""
    if ESCAPES.search(head):
        found = ((name, _decode(head, name)) for name in ESCAPED)
        return next((name for name, words in found if words and not words.isascii()), None)
    pairs = b"".join(_HZ.findall(head[: 64 * 1024]))
    if len(pairs) >= 12:
        words = _decode(pairs, "hz")
        return "hz" if words and reads_as_east_asian(words) else None
    return None


def _decode(data: bytes, encoding: str) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(data)
    except (UnicodeError, ValueError):
        return None


def _common_wide(head: bytes, encoding: str) -> tuple[float, float]:
    """The shares of characters that people write (letters, Chinese, punctuation) and of ASCII among them, 0 to 1."""
    words = head[: len(head) & ~1].decode(encoding, "replace")[:8192]
    if not words:
        return 0.0, 0.0
    return len(_COMMON_WIDE.findall(words)) / len(words), len(_PLAIN.findall(words)) / len(words)


def _ascii_with_nuls(head: bytes, encoding: str) -> bool:
    """Whether it is ASCII with NULs between its fields: then pairs of letters look like Chinese characters.

    Few real ones consist of two such bytes, and those few are no rarer than the others.
    """
    if head.translate(None, _ASCII_WORDS):
        return False
    words = _PLAIN.sub("", head[: len(head) & ~1].decode(encoding, "replace"))
    return bool(words) and not reads_as_east_asian(words)
