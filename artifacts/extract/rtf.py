"""Extract text from RTF, with characters in any of its encodings. Runs only in the child process."""

from __future__ import annotations

import re
import struct
from codecs import lookup
from dataclasses import dataclass, replace
from typing import BinaryIO

from artifacts.extract.words import Progress, RefusedError, TextCollector

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 10_000
MAX_FONTS = 10_000
TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\([^A-Za-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)"
)

BREAKS = {"par": "\n", "line": "\n", "sect": "\n", "page": "\n", "row": "\n", "tab": "\t", "cell": "\t"}
LETTERS = {
    "emdash": "—",
    "endash": "–",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "bullet": "•",
}
SYMBOLS = {"~": "\u00a0", "_": "-", "\\": "\\", "{": "{", "}": "}", "\n": "\n", "\r": "\n"}
NO_TEXT = frozenset(
    {"fonttbl", "colortbl", "stylesheet", "info", "pict", "fldinst", "objdata", "themedata", "datastore", "nonshppict"}
    | {"listtable", "listoverridetable", "rsidtbl", "generator", "xmlnstbl", "filetbl", "revtbl", "template"}
)
"""Destinations without visible text. Every destination that begins with a star has none either."""

CHARSET_PAGES = {77: 10000, 128: 932, 129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258}
CHARSET_PAGES |= {177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250}
"""Windows charset number of a font → its code page."""


@dataclass(slots=True)
class RtfGroup:
    r"""State inside braces: hidden text, fallback characters after a `\u`, the font's code page, a mark at the end."""

    silent: bool = False
    fonts: bool = False
    stand_ins: int = 1
    page: int = 0
    ends_with: str = ""


class RtfReader:
    """Parses the tokens in one pass.

    Bytes are collected until the encoding may change, because a character can span several tokens.
    """

    def __init__(self, output: TextCollector) -> None:
        self._words, self._stack, self._group = output, list[RtfGroup](), RtfGroup()
        self._page, self._font_pages, self._font = 1252, dict[int, int](), 0
        self._bytes, self._skip, self._high = bytearray(), 0, ""
        self._in_table = False

    def read(self, data: bytes) -> None:
        """Parse all of the data; raise `RefusedError` if braces are nested too deeply."""
        at = 0
        while match := TOKEN.match(data, at):
            at = match.end()
            word, number, letter, symbol, brace, raw = match.groups()
            if word == b"bin":
                at += max(int(number or 0), 0)
            elif letter or raw:
                self._take_bytes(bytes.fromhex(letter.decode()) if letter else raw)
            elif word:
                self._control(word.decode(), int(number) if number else None)
            elif brace:
                self._brace(brace)
            elif symbol:
                self._symbol(symbol.decode("latin-1"))
        self._flush()

    def _take_bytes(self, letters: bytes) -> None:
        # Skip the fallback characters after a `\u` that was read.
        skipped = min(self._skip, len(letters))
        self._skip -= skipped
        if not self._group.silent:
            self._bytes += letters[skipped:]

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._skip = 0
        if brace == b"}":
            if self._group.ends_with:
                self._words.mark(self._group.ends_with)
            self._group = self._stack.pop() if self._stack else RtfGroup()
        elif len(self._stack) >= MAX_DEPTH:
            raise RefusedError("failed")
        else:
            self._stack.append(self._group)
            self._group = replace(self._group, ends_with="")

    def _symbol(self, symbol: str) -> None:
        self._flush()
        if symbol == "*":
            self._group.silent = True
        elif not self._group.silent:
            self._words.add(SYMBOLS.get(symbol, ""))

    def _control(self, word: str, number: int | None) -> None:
        self._flush()
        if word in NO_TEXT:
            self._group.silent, self._group.fonts = True, self._group.fonts or word == "fonttbl"
        elif word == "upr":
            # The first group repeats in ANSI what the second one, `ud`, has in Unicode.
            self._group.silent = True
        elif word == "ud" and self._stack:
            self._group.silent = len(self._stack) > 1 and self._stack[-2].silent
        elif word == "footnote" and not (self._stack and self._stack[-1].silent):
            # Some programs put a star before it, though it has visible text.
            self._group.silent, self._group.ends_with = False, "]"
            self._words.mark("[footnote: ")
        elif word in ("trowd", "intbl", "pard"):
            self._in_table = word == "intbl" or (word == "trowd" and self._in_table)
        elif word == "par" and self._in_table and not self._group.silent:
            self._words.add(" ")
        elif word == "u" and number is not None:
            self._unicode(number % 0x10000)
        elif word == "uc":
            self._group.stand_ins = max(number or 0, 0)
        elif word in ("ansicpg", "fcharset", "f"):
            self._choose_page(word, number or 0)
        elif not self._group.silent:
            self._words.add(BREAKS.get(word) or LETTERS.get(word) or "")

    def _unicode(self, code: int) -> None:
        # A character beyond U+FFFF is written as two consecutive surrogates.
        self._skip = self._group.stand_ins
        if self._group.silent:
            return
        if 0xD800 <= code < 0xDC00:
            self._high = chr(code)
            return
        pair = (self._high + chr(code)).encode("utf-16-le", "surrogatepass")
        self._high = ""
        self._words.add(pair.decode("utf-16-le", "replace"))

    def _choose_page(self, word: str, number: int) -> None:
        if word == "ansicpg":
            self._page = number or 1252
        elif word == "f" and self._group.fonts:
            self._font = number
        elif word == "f":
            self._group.page = self._font_pages.get(number, 0)
        elif len(self._font_pages) < MAX_FONTS:
            self._font_pages[self._font] = CHARSET_PAGES.get(number, 0)

    def _flush(self) -> None:
        if self._bytes:
            self._words.add(self._bytes.decode(_codec(self._group.page or self._page), "replace"))
            self._bytes.clear()


def _codec(page: int) -> str:
    name = {10000: "mac_roman", 1361: "johab", 65001: "utf-8", 936: "gb18030"}.get(page, f"cp{page}")
    try:
        return lookup(name).name
    except LookupError:
        return "cp1252"


def rtf(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Add the text of an RTF document; raise `RefusedError` for anything else."""
    data = source.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise RefusedError("too_large")
    if not data.lstrip().startswith(b"{\\rtf"):
        raise RefusedError("unsupported")
    add_rtf(data, output)


def add_rtf(data: bytes, output: TextCollector) -> None:
    RtfReader(output).read(data)


DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor "
    b"MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20"
    b"\\b\\i\\u\\tab\\tx"
)
"""The initial dictionary of compressed RTF (MS-OXRTFCP)."""


def decompress_rtf(data: bytes) -> bytes:
    """Return decompressed RTF from Outlook, or b"" for anything else."""
    if len(data) < 16:
        return b""
    _, size, kind = struct.unpack_from("<II4s", data)
    if kind == b"MELA":
        return data[16 : 16 + size]
    if kind != b"LZFu" or size > MAX_BYTES:
        return b""
    window, write, at, out = bytearray(DICTIONARY.ljust(4096, b"\0")), len(DICTIONARY), 16, bytearray()
    while at < len(data) and len(out) < size:
        flags, at = data[at], at + 1
        for bit in range(8):
            if not flags >> bit & 1:
                piece, at = data[at : at + 1], at + 1
            elif at + 1 < len(data):
                token, at = data[at] << 8 | data[at + 1], at + 2
                if token >> 4 == write % 4096:
                    return bytes(out[:size])
                piece = None
                for step in range((token & 15) + 2):
                    letter = window[((token >> 4) + step) % 4096]
                    window[write % 4096] = letter
                    write += 1
                    out.append(letter)
            else:
                return bytes(out[:size])
            if piece:
                window[write % 4096] = piece[0]
                write += 1
                out += piece
    return bytes(out[:size])
