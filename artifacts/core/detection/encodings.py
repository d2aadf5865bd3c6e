"""Is it text, and in which encoding? (REQUIREMENTS, decision 3; wire-protocols reference §5)

Trials in this order: byte order mark, escape sequences, UTF-8, UTF-32 and UTF-16 without a mark, the uploader's word,
what the text declares itself, the old encodings by how likely their readings are, Chinese in UTF-16, the injected
guesser. A trial holds when every byte decodes (but for a last character cut in two), no NUL comes out and control
characters are rare; on the whole stream, not only its beginning. Works block by block, so memory is flat.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from artifacts.core.detection.encoding_names import canonical as canonical
from artifacts.core.detection.encoding_names import declared_in
from artifacts.core.detection.evidence import Opinion
from artifacts.core.detection.likelihood import FREQUENT_NATS, WIDER, LikelyText, is_clear, readings
from artifacts.core.detection.wide_encodings import all_chinese_utf16, by_escapes, utf16_by_nuls, utf32_by_nuls

MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""Byte order mark → encoding; the decoder takes the mark away."""
MAX_MARK = max(len(mark) for mark, _ in MARKS)

RARE = 200
"""One control character in so many is rare (security reference §2.5: 0.5 %)."""

ENOUGH = 4
"""Characters that make a likely East Asian reading proof."""

GUESSES = frozenset(
    {"big5hkscs", "cp932", "cp949", "euc_jis_2004", "iso2022_jp", "koi8-r", "koi8-u", "cp855", "cp866", "cp874"}
    | {"gb18030", "hz", "big5", "shift_jis", "euc_jp", "johab", "mac-cyrillic"}
    | {f"cp{page}" for page in range(1250, 1259)}
    | {f"iso8859-{part}" for part in range(2, 17)}
)
"""What is believed of a guesser; the rest (EBCDIC, DOS box drawing …) is a misreading of something else."""

_CONTROLS = bytes([*range(1, 8), 11, *range(14, 27), *range(28, 32), 127])
_CONTROL_CHARS = re.compile("[\x01-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_LEADS = bytes(range(0xC2, 0xF5))
_C1 = re.compile("[\x80-\x84\x86-\x9f\ufffe\uffff]")
_WESTERN = re.compile(
    rb"[\xc0-\xff\x80\x82\x84\x8a-\x8c\x8e\x91-\x97\x99-\x9b\x9c\x9e\x9f\x85\xa0\xa3\xa7\xa9\xab\xae\xb0\xb4\xb7\xbb]+"
)
_LETTERS = re.compile(rb"[A-Za-z '\".,;:!?()\r\n-]*")


class Proof(StrEnum):
    """How sure it is text: `strong` overrules a declared type of media, `weak` only fills a gap."""

    STRONG = "strong"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class TextFound:
    """The bytes are text: the encoding's name as Python knows it, how sure that is, and by which trial.

    `certain` is about the encoding: false where other readings of the same bytes are nearly as likely.
    """

    encoding: str
    proof: Proof
    trial: str
    certain: bool = True


def decode_blocks(blocks: Iterable[bytes], encoding: str | None) -> Iterator[str]:
    """The text of a stream, block by block; what does not decode becomes U+FFFD, so this never raises.

    UTF-16 and UTF-32 without the mark that says which way round they are count as little-endian, as in browsers.
    """
    name = canonical(encoding) or "utf-8"
    if name in ("utf-16", "utf-32"):
        blocks, name = _settle_order(iter(blocks), name)
    decoder = codecs.getincrementaldecoder(name)("replace")
    for block in blocks:
        if words := decoder.decode(block):
            yield words
    if words := decoder.decode(b"", True):
        yield words


def _settle_order(blocks: Iterator[bytes], name: str) -> tuple[Iterator[bytes], str]:
    """The same stream, and the encoding that decodes it: little-endian where no mark stands at its beginning."""
    begun = b""
    for block in blocks:
        begun += block
        if len(begun) >= MAX_MARK:
            break
    return chain((begun,), blocks), name if is_marked(begun, name) else f"{name}-le"


def is_marked(head: bytes, name: str) -> bool:
    """Whether a file begins with a byte order mark of that encoding."""
    return any(head.startswith(mark) for mark, encoding in MARKS if encoding == name)


def is_clean(blocks: Iterable[bytes], encoding: str, *, whole: bool = True) -> bool:
    """Whether the stream decodes without loss, without NUL and with control characters rare.

    `whole` False means that the stream was cut off, so that an unfinished character at its end is no fault.
    """
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    single = not encoding.startswith(("utf-16", "utf-32", "iso2022"))
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


def widen(text: TextFound) -> Iterator[TextFound]:
    """The same text in encodings with more characters, for a file that has some of them far behind its head."""
    for encoding in WIDER.get(text.encoding, ()):
        yield replace(text, encoding=encoding)


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
    if escaped := by_escapes(head):
        yield TextFound(escaped, Proof.STRONG, "escapes")
    yield TextFound("utf-8", Proof.STRONG, "utf-8")
    if four := utf32_by_nuls(head):
        yield TextFound(four, Proof.STRONG, "utf-32")
    if two := utf16_by_nuls(head):
        yield _judge_utf16(head, two)
    if b"\0" in head:
        return
    if declared:
        yield TextFound(declared, Proof.STRONG, "uploader")
    if own := declared_in(head):
        yield TextFound(own, Proof.STRONG, "itself")
    yield from _old_encodings(head, prefer, canonical(guess(head)) if guess else None)


def _old_encodings(head: bytes, prefer: str, guessed: str | None) -> Iterator[TextFound]:
    """What nothing in the bytes declares, by what they read like."""
    found = readings(head, guessed, prefer)
    certain = bool(found) and is_clear(found)
    for place, reading in enumerate(found):
        likely = TextFound(reading.encoding, _proof_of(reading), "looks", certain and not place)
        yield from (likely, *widen(likely))
    if not _latin_word(head) and (chinese := all_chinese_utf16(head)):
        yield _judge_utf16(head, chinese)
    if _latin_letters(head):
        yield TextFound("cp1252", Proof.WEAK, "latin", certain=False)
    if guessed in GUESSES:
        yield TextFound(guessed, Proof.WEAK, "guess", certain=False)
    if _mostly_ascii(head):
        yield TextFound("cp1252", Proof.WEAK, "latin", certain=False)


def _judge_utf16(head: bytes, encoding: str) -> TextFound:
    """A few bytes are no proof."""
    enough = len(head) >= 16
    return TextFound(encoding, Proof.STRONG if enough else Proof.WEAK, "utf-16", enough)


def _proof_of(reading: LikelyText) -> Proof:
    """Four or more East Asian characters, frequent ones, are proof; one letter a byte can be chance."""
    is_proof = (
        reading.is_east_asian and reading.wide * 2 >= ENOUGH and reading.beyond_ascii >= FREQUENT_NATS * reading.wide
    )
    return Proof.STRONG if is_proof else Proof.WEAK


def _latin_letters(head: bytes) -> bool:
    """Whether everything beyond ASCII is a Western letter or mark in Windows-1252: short words mislead a guesser."""
    return _mostly_ascii(head, 4) and bool(_WESTERN.fullmatch(head.translate(None, bytes(range(0x80)))))


def _latin_word(head: bytes) -> bool:
    """Whether it reads as one Latin word: pairs of ASCII letters are Chinese characters in UTF-16."""
    return _latin_letters(head) and bool(_LETTERS.fullmatch(head.translate(None, bytes(range(0x80, 0x100)))))


def _mostly_ascii(head: bytes, tenths: int = 3) -> bool:
    """Whether at most so many bytes in ten are beyond ASCII: Latin text has accents, not only accents."""
    return (len(head) - len(head.translate(None, bytes(range(0x80, 0x100))))) * 10 <= len(head) * tenths
