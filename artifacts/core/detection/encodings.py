"""Is it text, and in which encoding? (REQUIREMENTS, decision 3; wire-protocols reference §5)

Trials in this order: byte order mark, UTF-8, UTF-16 without a mark, the uploader's word, then what looks like the
preferred language (GB18030 for zh), the injected guesser, and the legacy encodings by the share of common characters.
A trial holds when every byte decodes (but for a last character cut in two), no NUL comes out and control characters
are rare; on the whole stream, not only its beginning. Works block by block, so memory is flat.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from artifacts.core.detection.opinions import Opinion

MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""Byte order mark → encoding; the decoder takes the mark away."""

RARE = 200
"""One control character in so many is rare (security reference §2.5: 0.5 %)."""

COMMON_SHARE = 0.75
COMMON_WIDE = 0.8
NAMES = {
    "utf8": "utf-8", "utf-8-sig": "utf-8-sig", "ascii": "utf-8", "us-ascii": "utf-8", "gbk": "gb18030",
    "gb2312": "gb18030",
    "cp936": "gb18030", "hz": "hz", "big5-hkscs": "big5hkscs", "cp950": "big5", "sjis": "shift_jis", "cp932": "cp932",
    "iso-8859-1": "cp1252", "latin-1": "cp1252", "latin1": "cp1252", "iso8859-1": "cp1252",
}  # fmt: skip
"""Names of an encoding → the wider one that decodes everything the narrow one does (WHATWG Encoding Standard)."""

NOTATIONS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7", "mbcs", "oem"})
"""What Python calls text encodings and are ways to write other things, or differ from machine to machine."""

_CONTROLS = bytes([*range(1, 8), 11, *range(14, 27), *range(28, 32), 127])
_CONTROL_CHARS = re.compile("[\x01-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_LEADS = bytes(range(0xC2, 0xF5))
_C1 = re.compile("[\x80-\x84\x86-\x9f\ufffe\uffff]")
_WESTERN = re.compile(
    rb"[\xc0-\xff\x80\x82\x84\x8a-\x8c\x8e\x91-\x97\x99-\x9b\x9c\x9e\x9f\x85\xa0\xa3\xa7\xa9\xab\xae\xb0\xb4\xb7\xbb]+"
)
_LETTERS = re.compile(rb"[A-Za-z '\".,;:!?()\r\n-]*")
_COMMON_WIDE = re.compile("[\t\n\r -~\u00c0-\u024f\u0400-\u045f\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]")
_PLAIN = re.compile("[\t\n\r -~]")
_EAST_ASIAN = re.compile("[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef]*")


PREFERRED = {"zh": "gb18030", "zh-Hant": "big5", "ja": "shift_jis"}
"""Preferred language → the encoding that wins where bytes look like several."""

GUESSES = frozenset(
    {"big5hkscs", "cp932", "cp949", "euc_kr", "iso2022_jp", "koi8-r", "koi8-u", "cp866", "tis-620", "cp874", "gb18030"}
    | {"hz", "big5", "shift_jis", "euc_jp"}
    | {f"cp{page}" for page in range(1250, 1259)}
    | {f"iso8859-{part}" for part in range(2, 17)}
)
"""What is believed of a guesser; the rest (EBCDIC, DOS box drawing …) is a misreading of something else."""


class Proof(StrEnum):
    """How sure the encoding is: `strong` overrules a declared type of media, `weak` only fills a gap."""

    STRONG = "strong"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class TextFound:
    """The bytes are text: the encoding's name as Python knows it, how sure, and by which trial."""

    encoding: str
    proof: Proof
    trial: str


def canonical(name: str | None) -> str | None:
    """Our name of a text encoding that Python knows, else None; `GBK` is `gb18030`, `latin-1` is `cp1252`."""
    if not name:
        return None
    key = name.strip().lower().replace("_", "-")
    try:
        info = codecs.lookup(NAMES.get(key, key))
    except (LookupError, ValueError):
        return None
    return NAMES.get(info.name, info.name) if info._is_text_encoding and info.name not in NOTATIONS else None


def decode_blocks(blocks: Iterable[bytes], encoding: str | None) -> Iterator[str]:
    """The text of a stream, block by block; what does not decode becomes U+FFFD, so this never raises."""
    decoder = codecs.getincrementaldecoder(canonical(encoding) or "utf-8")("replace")
    for block in blocks:
        if words := decoder.decode(block):
            yield words
    if words := decoder.decode(b"", True):
        yield words


def is_clean(blocks: Iterable[bytes], encoding: str, *, whole: bool = True) -> bool:
    """Whether the stream decodes without loss, without NUL and with control characters rare.

    `whole` False means that the stream was cut off, so that an unfinished character at its end is no fault.
    """
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    single = not encoding.startswith("utf-16") and not encoding.startswith("utf-32")
    length = controls = 0
    try:
        for block in blocks:
            words = decoder.decode(block)
            if "\0" in words:
                return False
            length += len(words)
            controls += _controls(block, words, single)
        words = decoder.decode(b"", whole)
    except (UnicodeError, ValueError):
        return False
    return "\0" not in words and controls * RARE <= length + len(words)


def _controls(block: bytes, words: str, single: bool) -> int:
    """Control characters in a block: counted in the bytes where an ASCII byte is always itself, which is faster."""
    if not single:
        return len(_CONTROL_CHARS.findall(words))
    ascii_controls = len(block) - len(block.translate(None, _CONTROLS))
    return ascii_controls + (0 if words.isascii() else len(_C1.findall(words)))


def find_text(
    head: bytes, *, whole: bool, declared: str | None = None, prefer: str = "zh", guess: Opinion | None = None
) -> TextFound | None:
    """Whether a head is text and in which encoding; None when it is none.

    `whole` says that the head is the whole file, `declared` is the uploader's word for the encoding, `prefer` the
    language that wins where bytes fit several encodings.
    """
    for found in _trials(head, canonical(declared), prefer, guess):
        if is_clean((head,), found.encoding, whole=whole):
            return found
        if found.trial == "utf-8" and is_cut_off((head,)):
            return TextFound("utf-8", Proof.STRONG, "cut")
    return None


def is_cut_off(blocks: Iterable[bytes]) -> bool:
    """Whether a stream is UTF-8 whose last character was cut in two, as `head -c` does; that one becomes U+FFFD.

    Four whole characters beyond ASCII come before it: a lone byte at the end of plain words is some other encoding.
    """
    wide = 0

    def counted() -> Iterator[bytes]:
        nonlocal wide
        for block in blocks:
            wide += len(block) - len(block.translate(None, _LEADS))
            yield block

    return is_clean(counted(), "utf-8", whole=False) and wide > 4


def _trials(head: bytes, declared: str | None, prefer: str, guess: Opinion | None) -> Iterator[TextFound]:
    """The trials in their order, each an encoding to be proved by decoding."""
    for mark, encoding in MARKS:
        if head.startswith(mark):
            yield TextFound(encoding, Proof.STRONG, "mark")
    yield TextFound("utf-8", Proof.STRONG, "utf-8")
    yield from _wide(head)
    if b"\0" in head:
        return
    if declared:
        yield TextFound(declared, Proof.STRONG, "uploader")
    guessed = canonical(guess(head)) if guess else None
    for name in _guess_by_looks(head, prefer, guessed):
        yield _judge_looks(head, name)
    if not _latin_word(head):
        yield from _nothing_but_chinese(head)
    if _latin_letters(head):
        yield TextFound("cp1252", Proof.WEAK, "latin")
    if guessed in GUESSES:
        yield TextFound(guessed, Proof.WEAK, "guess")
    if _mostly_ascii(head):
        yield TextFound("cp1252", Proof.WEAK, "latin")


def _guess_by_looks(head: bytes, prefer: str, guessed: str | None) -> list[str]:
    """The East Asian encodings the head looks like: the preferred language's, then the guessed, then the likeliest."""
    shares = {name: common_share(head, name) for name in COMMON}
    first = PREFERRED.get(prefer)
    names = sorted((name for name in shares if shares[name] >= COMMON_SHARE), key=lambda name: -shares[name])
    return sorted(names, key=lambda name: (name != first, name != guessed))


def _judge_looks(head: bytes, encoding: str) -> TextFound:
    """Four or more characters beyond ASCII that are all common ones are proof, fewer are not."""
    wide = len(head) - len(head.translate(None, bytes(range(0x80, 0x100))))
    return TextFound(encoding, Proof.STRONG if wide >= 8 else Proof.WEAK, "looks")


def _wide(head: bytes) -> Iterator[TextFound]:
    """UTF-16 without a mark (a few bytes are no proof): each ASCII character, blank and line end in it brings a NUL."""
    if len(head) < 2:
        return
    if b"\0" not in head:
        return
    shares = {name: _common_wide(head, name) for name in ("utf-16-le", "utf-16-be")}
    best = max(shares, key=lambda name: shares[name])
    common, plain = shares[best]
    if common >= COMMON_WIDE and (plain or _is_east_asian(head, best)):
        yield TextFound(best, Proof.STRONG if len(head) >= 16 else Proof.WEAK, "utf-16")


def _nothing_but_chinese(head: bytes) -> Iterator[TextFound]:
    """UTF-16 without a mark and without a single ASCII character: four or more characters, all Chinese."""
    if len(head) < 8 or len(head) % 2:
        return
    for encoding in ("utf-16-le", "utf-16-be"):
        if _is_east_asian(head, encoding):
            yield TextFound(encoding, Proof.STRONG if len(head) >= 16 else Proof.WEAK, "utf-16")


def _is_east_asian(head: bytes, encoding: str) -> bool:
    """Four or more characters, all Chinese; U+4E00, which is the number one, brings a NUL of its own."""
    return len(head) >= 8 and bool(_EAST_ASIAN.fullmatch(head.decode(encoding, "replace")))


def _common_wide(head: bytes, encoding: str) -> tuple[float, float]:
    """The shares of characters that people write (letters, Chinese, punctuation) and of ASCII among them, 0 to 1."""
    words = head[: len(head) & ~1].decode(encoding, "replace")[:8192]
    if not words:
        return 0.0, 0.0
    return len(_COMMON_WIDE.findall(words)) / len(words), len(_PLAIN.findall(words)) / len(words)


def _latin_letters(head: bytes) -> bool:
    """Whether everything beyond ASCII is a Western letter or mark in Windows-1252: short words mislead a guesser."""
    return _mostly_ascii(head, 4) and bool(_WESTERN.fullmatch(head.translate(None, bytes(range(0x80)))))


def _latin_word(head: bytes) -> bool:
    """Whether it reads as one Latin word: pairs of ASCII letters are Chinese characters in UTF-16."""
    return _latin_letters(head) and bool(_LETTERS.fullmatch(head.translate(None, bytes(range(0x80, 0x100)))))


def _mostly_ascii(head: bytes, tenths: int = 3) -> bool:
    """Whether at most so many bytes in ten are beyond ASCII: Latin text has accents, not only accents."""
    return (len(head) - len(head.translate(None, bytes(range(0x80, 0x100))))) * 10 <= len(head) * tenths


COMMON = {
    "gb18030": re.compile(rb"[\xb0-\xd7\xa1-\xa3][\xa1-\xfe]"),
    "big5": re.compile(rb"[\xa1-\xa3\xa4-\xc6][\x40-\x7e\xa1-\xfe]"),
    "shift_jis": re.compile(rb"\x81[\x40-\x9f]|\x82[\x4f-\xf1]|\x83[\x40-\x96]|[\x88-\x97][\x40-\x7e\x80-\xfc]"),
    "euc_jp": re.compile(rb"[\xa1\xa4\xa5][\xa1-\xfe]|[\xb0-\xcf][\xa1-\xfe]"),
}
"""Encoding → its common two-byte characters: first-level ideographs, kana, punctuation (GB 2312, Big5, JIS X 0208)."""

ANY = {
    "gb18030": re.compile(rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39])|[\x80-\xff]"),
    "big5": re.compile(rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]|[\x80-\xff]"),
    "shift_jis": re.compile(rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\x80-\xff]"),
    "euc_jp": re.compile(rb"\x8e[\xa1-\xdf]|[\xa1-\xfe][\xa1-\xfe]|[\x80-\xff]"),
}
"""Encoding → every character beyond ASCII, or one stray byte."""


def common_share(head: bytes, encoding: str) -> float:
    """How many of the characters beyond ASCII are common ones in that encoding, 0 to 1; 0 when there are none.

    GB18030, Big5 and Shift-JIS accept each other's bytes; read in the wrong one, most characters are rare.
    """
    sample = head[:16384]
    found: list[bytes] = ANY[encoding].findall(sample)
    common = sum(1 for char in found if COMMON[encoding].fullmatch(char))
    return common / len(found) if found else 0.0
