"""Extract text from RTF with characters in any supported encoding. Runs only in the extraction process."""

from __future__ import annotations

import re
import struct
from codecs import lookup
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO, ClassVar

from artifacts.extract.office import MAX_TARGET_CHARS, parse_link
from artifacts.extract.reading import Progress, RefusedError, TextCollector

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 10_000
MAX_FONTS = 10_000
MAX_PENDING = 10_000
"""Maximum number of marker characters waiting for the next text. Nested notes without text could add very many."""
TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\([^A-Za-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)"
)

BREAKS = {"par": "\n", "line": "\n", "sect": "\n", "page": "\n", "row": "\n", "tab": "\t", "cell": "\t"}
BREAKS |= {"nestrow": "\n", "nestcell": "\t"}
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
    {"fonttbl", "colortbl", "stylesheet", "info", "pict", "objdata", "themedata", "datastore", "nonshppict", "shprslt"}
    | {"nonesttables", "sp", "atnid", "atnref", "atndate"}
    | {"listtable", "listoverridetable", "rsidtbl", "generator", "xmlnstbl", "filetbl", "revtbl", "template"}
)
"""Destinations without visible text. Destinations that begin with a star do not have visible text, either."""

COLLECTED = frozenset({"fldinst", "atnauthor", "sn", "sv"})
"""Destinations whose text describes other content: a field code, the author of a comment, or the name or value of a
shape property."""

OPENING = {"footnote": "[footnote: ", "annotation": "[comment: ", "header": "[header]\n", "footer": "[footer]\n"}
OPENING |= {f"{margin}{pages}": f"[{margin}]\n" for margin in ("header", "footer") for pages in "lrf"}

CHARSET_PAGES = {77: 10000, 128: 932, 129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258}
CHARSET_PAGES |= {177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250}
"""Maps Windows charset numbers of fonts to code pages."""


@dataclass(slots=True)
class RtfGroup:
    r"""The state of a group in braces.

    It states whether the group's text is shown and with which markers, how many fallback characters follow a `\u`
    escape, and the code page of the font.
    """

    silent: bool = False
    hidden: bool = False
    raised: bool = False
    struck: bool = False
    fonts: bool = False
    fallback_count: int = 1
    page: int = 0
    begins_with: str = ""
    ends_with: str = ""
    collects: str = ""

    @property
    def shows_text(self) -> bool:
        return not self.silent and not self.hidden


class RtfReader:
    """Parses RTF tokens in a single pass.

    Bytes are collected until the encoding may change, because a character can consist of several tokens.
    """

    def __init__(self, output: TextCollector) -> None:
        self._output, self._stack, self._group = output, list[RtfGroup](), RtfGroup()
        self._page, self._font_pages, self._font = 1252, dict[int, int](), 0
        self._bytes, self._skip, self._high = bytearray(), 0, ""
        self._in_table = self._was_raised = self._was_struck = False
        # The heading level whose marker has not been written yet, and the heading level of the current paragraph.
        self._level = self._outline = 0
        # Markers to write before the next text.
        self._pending = ""
        self._collected = dict[str, str]()

    def read(self, data: bytes) -> None:
        """Parse all data. Raise `RefusedError` if groups are nested too deeply."""
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
        # Skip the fallback characters after a `\u` escape, whose Unicode character has been read.
        skipped = min(self._skip, len(letters))
        self._skip -= skipped
        if self._group.shows_text or self._group.collects:
            self._bytes += letters[skipped:]

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._skip = 0
        if brace == b"}":
            self._end_group()
            self._group = self._stack.pop() if self._stack else RtfGroup()
            self._add_property()
        elif len(self._stack) >= MAX_DEPTH:
            raise RefusedError("failed")
        else:
            self._stack.append(self._group)
            self._group = replace(self._group, begins_with="", ends_with="")

    def _symbol(self, symbol: str) -> None:
        self._flush()
        if symbol == "*":
            self._group.silent = True
        else:
            self._add(SYMBOLS.get(symbol, ""))

    def _control(self, word: str, number: int | None) -> None:
        self._flush()
        if handler := self.CONTROLS.get(word):
            handler(self, word, number)
        elif word in NO_TEXT:
            self._group.silent, self._group.fonts = True, self._group.fonts or word == "fonttbl"
        else:
            self._add(BREAKS.get(word) or LETTERS.get(word) or "")

    def _collect(self, word: str, _: int | None) -> None:
        self._group.silent, self._group.collects = True, word
        self._collected[word] = ""
        if word == "sn":
            self._collected.pop("sv", None)

    def _repeat_in_unicode(self, word: str, _: int | None) -> None:
        # In an `upr` group, the first group repeats in ANSI what the second group, `ud`, contains in Unicode.
        self._group.silent = word == "upr" or (len(self._stack) > 1 and self._stack[-2].silent)

    def _start_shape(self, _: str, __: int | None) -> None:
        # A shape's text is visible, although its destination begins with a star.
        self._group.silent = bool(self._stack) and self._stack[-1].silent

    def _start_note(self, word: str, _: int | None) -> None:
        # A note's text is visible, although some programs write a star before its destination.
        if self._stack and not self._stack[-1].shows_text:
            return
        author = self._collected.pop("atnauthor", "").strip() if word == "annotation" else ""
        self._group.silent, self._group.raised = False, False
        self._surround(
            OPENING[word] + (f"{author}: " if author else ""), "\n" if word[:6] in ("header", "footer") else "]"
        )

    def _start_result(self, _: str, __: int | None) -> None:
        target = parse_link(self._collected.pop("fldinst", ""))
        if target and self._group.shows_text:
            self._surround("[", f"]({target})")

    def _surround(self, before: str, after: str) -> None:
        if len(self._pending) < MAX_PENDING:
            self._group.begins_with, self._group.ends_with = before, after
            self._pending += before

    def _end_group(self) -> None:
        before = self._group.begins_with
        if before and self._pending.endswith(before):
            # The group ends without text, so remove its opening marker.
            self._pending = self._pending.removesuffix(before)
        elif before:
            self._output.add_marker(self._group.ends_with)

    def _add_property(self) -> None:
        if "sv" in self._collected and self._collected.get("sn", "").strip() == "wzDescription":
            text = " ".join(self._collected["sv"].split())
            self._collected.clear()
            self._output.add(f"[image: {text}] " if text else "")

    def _format_paragraph(self, word: str, number: int | None) -> None:
        if word == "outlinelevel":
            self._level = self._outline = number + 1 if number is not None and 0 <= number < 6 else 0
            return
        if word == "pard":
            self._level = self._outline = 0
        self._in_table = word == "intbl" or (word == "trowd" and self._in_table)

    def _end_paragraph(self, _: str, __: int | None) -> None:
        if self._was_struck:
            self._add_mark("~~")
            self._was_struck = False
        self._add(" " if self._in_table else "\n")
        self._level = self._outline

    def _format_text(self, word: str, number: int | None) -> None:
        if word in ("v", "deleted"):
            self._group.hidden = number != 0
        elif word in ("strike", "striked"):
            self._group.struck = number != 0
        elif word == "plain":
            self._group.hidden = self._group.raised = self._group.struck = False
        else:
            self._group.raised = word == "super" and number != 0

    def _add(self, text: str) -> None:
        if self._group.collects:
            so_far = self._collected.get(self._group.collects, "")
            self._collected[self._group.collects] = so_far + text[: MAX_TARGET_CHARS - len(so_far)]
        elif text and self._group.shows_text:
            self._output.add(text)

    def _add_mark(self, text: str) -> None:
        if self._group.shows_text:
            self._output.add_marker(text)

    def _set_fallback_count(self, _: str, number: int | None) -> None:
        self._group.fallback_count = max(number or 0, 0)

    def _take_unicode(self, _: str, number: int | None) -> None:
        if number is None:
            return
        code = number % 0x10000
        # A character above U+FFFF is written as a surrogate pair.
        self._skip = self._group.fallback_count
        if not self._group.shows_text and not self._group.collects:
            return
        if 0xD800 <= code < 0xDC00:
            self._high = chr(code)
            return
        pair = (self._high + chr(code)).encode("utf-16-le", "surrogatepass")
        self._high = ""
        self._add_text(pair.decode("utf-16-le", "replace"))

    def _choose_page(self, word: str, number: int | None) -> None:
        number = number or 0
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
            self._add_text(self._bytes.decode(_codec(self._group.page or self._page), "replace"))
            self._bytes.clear()

    def _add_text(self, text: str) -> None:
        # The marker for a heading or superscript is written once, before the first piece of text in it.
        if self._level and not self._in_table and text.strip():
            self._add_mark("#" * self._level + " ")
            self._level = 0
        if self._pending and self._group.shows_text and text.strip():
            self._output.add_marker(self._pending)
            self._pending = ""
        if self._group.shows_text and self._group.struck != self._was_struck:
            self._output.add_marker("~~")
            self._was_struck = self._group.struck
        if self._group.raised and not self._was_raised:
            self._add_mark("^")
        self._was_raised = self._group.raised
        self._add(text)

    CONTROLS: ClassVar[Mapping[str, Callable[[RtfReader, str, int | None], None]]] = {
        **dict.fromkeys(COLLECTED, _collect),
        **dict.fromkeys(("upr", "ud"), _repeat_in_unicode),
        "shpinst": _start_shape,
        **dict.fromkeys(OPENING, _start_note),
        "fldrslt": _start_result,
        **dict.fromkeys(("trowd", "intbl", "pard", "outlinelevel"), _format_paragraph),
        "par": _end_paragraph,
        **dict.fromkeys(("v", "deleted", "plain", "strike", "striked", "super", "sub", "nosupersub"), _format_text),
        "u": _take_unicode,
        "uc": _set_fallback_count,
        **dict.fromkeys(("ansicpg", "fcharset", "f"), _choose_page),
    }


def _codec(page: int) -> str:
    name = {10000: "mac_roman", 1361: "johab", 65001: "utf-8", 936: "gb18030"}.get(page, f"cp{page}")
    try:
        return lookup(name).name
    except LookupError:
        return "cp1252"


def rtf(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """Write the text of an RTF document to `output`. Raise `RefusedError` for other files."""
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
    """Return the decompressed RTF of an Outlook message, or b"" for other data."""
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
