"""Detect encodings that can be recognised by the bytes of text without a byte order mark.

UTF-16 and UTF-32 are recognised by their NULs, ISO 2022 and HZ by their escape sequences, which are plain ASCII.
"""

from __future__ import annotations

import codecs
import re

from artifacts.core.detection.likelihood import reads_as_east_asian

COMMON_WIDE = 0.8
"""The least fraction of characters that must be from commonly used ranges."""

_COMMON_WIDE = re.compile(
    "[\t\n\r -~\u00a0-\u024f\u0370-\u052f\u0590-\u06ff\u0e00-\u0e5b\u2010-\u2026"
    "\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]"
)
_PLAIN = re.compile("[\t\n\r -~]")
_EAST_ASIAN = re.compile("[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef]*")
_ASCII_WORDS = bytes([0, 9, 10, 13, *range(32, 127)])

ESCAPES = re.compile(rb"\x1b\$[@AB]|\x1b\$\([A-DO-Q]|\x1b\$\)[AC]|\x1b\([IJ]|\x1b\.A")
"""ISO 2022 sequences that select a Japanese, Korean or Chinese character set (RFC 1468, 1554, 1557)."""

ESCAPED = ("iso2022_jp", "iso2022_kr", "iso2022_jp_2", "iso2022_jp_ext", "iso2022_jp_2004")
_HZ = re.compile(rb"~\{(?:[\x21-\x77][\x21-\x7e]){2,}~\}")


def utf16_by_nuls(head: bytes) -> str | None:
    """Return the encoding if this is UTF-16 with ASCII characters, which contain NULs, else None."""
    if len(head) < 2 or b"\0" not in head:
        return None
    shares = {name: _common_wide(head, name) for name in ("utf-16-le", "utf-16-be")}
    best = max(shares, key=lambda name: shares[name])
    common, plain_share = shares[best]
    if common >= COMMON_WIDE and (plain_share or is_east_asian(head, best)) and not _ascii_with_nuls(head, best):
        return best
    return None


def utf32_by_nuls(head: bytes) -> str | None:
    """Return the encoding if this is UTF-32 without a mark, else None."""
    whole = head[: len(head) & ~3]
    if len(whole) < 8 or not any(head.startswith(nul, at) for nul, at in ((b"\0\0", 2), (b"\0\0", 0))):
        return None
    # The highest byte is always NUL, as Unicode ends at U+10FFFF.
    for name, high in (("utf-32-le", whole[3::4]), ("utf-32-be", whole[::4])):
        if not high.strip(b"\0"):
            text = _decode(whole, name)
            if text and len(_COMMON_WIDE.findall(text)) >= COMMON_WIDE * len(text):
                return name
    return None


def all_chinese_utf16(head: bytes) -> str | None:
    """Return the encoding if this is UTF-16 that is all Chinese, without any ASCII, else None."""
    if len(head) % 2:
        return None
    return next((name for name in ("utf-16-le", "utf-16-be") if is_east_asian(head, name)), None)


def is_east_asian(head: bytes, encoding: str) -> bool:
    """Return whether the bytes are four or more characters, all Chinese."""
    return len(head) >= 8 and bool(_EAST_ASIAN.fullmatch(head.decode(encoding, "replace")))


def by_escapes(head: bytes) -> str | None:
    """Return the encoding that writes East Asian text in ASCII with escape sequences, or braces for HZ, else None."""
    if ESCAPES.search(head):
        decodings = ((name, _decode(head, name)) for name in ESCAPED)
        return next((name for name, text in decodings if text and not text.isascii()), None)
    # Braces with letters between them also occur in source code, so require six characters that read as Chinese.
    pairs = b"".join(_HZ.findall(head[: 64 * 1024]))
    if len(pairs) >= 12:
        text = _decode(pairs, "hz")
        return "hz" if text and reads_as_east_asian(text) else None
    return None


def _decode(data: bytes, encoding: str) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(data)
    except (UnicodeError, ValueError):
        return None


def _common_wide(head: bytes, encoding: str) -> tuple[float, float]:
    text = head[: len(head) & ~1].decode(encoding, "replace")[:8192]
    if not text:
        return 0.0, 0.0
    return len(_COMMON_WIDE.findall(text)) / len(text), len(_PLAIN.findall(text)) / len(text)


def _ascii_with_nuls(head: bytes, encoding: str) -> bool:
    # In ASCII with NULs between fields, pairs of letters look like Chinese characters. Few real ones have two such
    # bytes, and a real text would contain frequent ones.
    if head.translate(None, _ASCII_WORDS):
        return False
    text = _PLAIN.sub("", head[: len(head) & ~1].decode(encoding, "replace"))
    return bool(text) and not reads_as_east_asian(text)
