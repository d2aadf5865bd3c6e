"""Decide whether bytes are text, and in which encoding.

The encodings are tried in this order: byte order mark, escape sequences, UTF-8, then UTF-32 and UTF-16 without a byte
order mark. Next are UTF-8 with a few invalid bytes, the encodings that the uploader and the text declare, legacy
encodings by likelihood, Chinese text in UTF-16, and finally a third-party library's guess.

A trial succeeds if all bytes decode (except for an incomplete last character), no character is NUL, and control
characters are rare. The stream is decoded in blocks, so memory use is constant. Only UTF-8 and declared encodings may
have invalid bytes, which occur in rotated logs. NUL bytes indicate UTF-16 and UTF-32 without a byte order mark, and
escape sequences in plain ASCII indicate ISO 2022 and HZ.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from artifacts.core.detection.encoding_names import canonical_encoding as canonical_encoding
from artifacts.core.detection.encoding_names import declared_encoding
from artifacts.core.detection.evidence import Opinion
from artifacts.core.detection.likelihood import (
    FREQUENT_NATS,
    WIDER,
    LikelyText,
    is_clear,
    is_east_asian_text,
    rank_readings,
)
from capabilities.core.message import Text

BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""Maps byte order marks to encodings whose decoder removes the mark."""
MAX_MARK = max(len(mark) for mark, _ in BYTE_ORDER_MARKS)

CHARS_PER_CONTROL = 200
"""In clean text, at most one in 200 characters (0.5 %) is a control character."""

MIN_PROOF_CHARS = 4
"""Text that is likely East Asian counts as proof only if its non-ASCII characters, at two bytes each, have at least
this many bytes."""

GUESSES = frozenset(
    {"big5hkscs", "cp932", "cp949", "euc_jis_2004", "iso2022_jp", "koi8-r", "koi8-u", "cp855", "cp866", "cp874"}
    | {"gb18030", "hz", "big5", "shift_jis", "euc_jp", "johab", "mac-cyrillic"}
    | {f"cp{page}" for page in range(1250, 1259)}
    | {f"iso8859-{part}" for part in range(2, 17)}
)
"""Encodings that are accepted from the encoding-guessing library. Its other guesses (EBCDIC, DOS box drawing …) are
wrong."""

_CONTROLS = bytes([*range(1, 8), 11, *range(14, 27), *range(28, 32), 127])
_CONTROL_CHARS = re.compile("[\x01-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_LEAD_BYTES = bytes(range(0xC2, 0xF5))
_C1 = re.compile("[\x80-\x84\x86-\x9f\ufffe\uffff]")
_WESTERN = re.compile(
    rb"[\xc0-\xff\x80\x82\x84\x8a-\x8c\x8e\x91-\x97\x99-\x9b\x9c\x9e\x9f\x85\xa0\xa3\xa7\xa9\xab\xae\xb0\xb4\xb7\xbb]+"
)
_LETTERS = re.compile(rb"[A-Za-z '\".,;:!?()\r\n-]*")


TAILS_PER_INVALID_BYTE, TAILS_PER_INVALID_BYTE_IN_ASCII = 10, 2
"""Minimum number of valid UTF-8 continuation bytes per invalid byte. The second, lower number is for text that is
mostly ASCII, because text in other encodings hardly ever forms valid UTF-8 sequences between ASCII characters."""
CHARS_PER_INVALID_BYTE = 50
"""Minimum number of non-ASCII characters per invalid byte in a declared encoding."""

MAX_KANA_WORDS = 32
"""Up to this many non-ASCII bytes that look like half-width kana could also be letters in a single-byte encoding."""

_HALF_WIDTH_KANA = bytes(range(0xA1, 0xE0))
_INVALID_BYTES = re.compile("[\udc80-\udcff]")
_UNCOMMON = re.compile(
    "[^\\0-\u06ff\u0900-\u0e5b\u1e00-\u27bf\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\udc80-\udcff\uff00-\uffee"
    "\U0001f000-\U0001faff]"
)


class Proof(StrEnum):
    """How strong the evidence is that bytes are text.

    `strong` evidence overrides any declared type. `weak` evidence counts only if the declared type is text or missing.
    """

    STRONG = "strong"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class DetectedText:
    """The result for bytes that are text: Python's encoding name, the strength of proof, and the check that succeeded.

    `certain` is False if another encoding is almost as likely, or if some bytes do not decode.
    """

    encoding: str
    proof: Proof
    trial: str
    certain: bool = True


def decode_blocks(blocks: Iterable[bytes], encoding: str | None) -> Iterator[str]:
    """Decode a stream block by block. Invalid bytes become U+FFFD, so decoding never fails.

    Without a byte order mark, UTF-16 and UTF-32 are read as little-endian, as in browsers.
    """
    name = canonical_encoding(encoding) or "utf-8"
    if name in ("utf-16", "utf-32"):
        blocks, name = _settle_order(iter(blocks), name)
    decoder = codecs.getincrementaldecoder(name)("replace")
    for block in blocks:
        if text := decoder.decode(block):
            yield text
    if text := decoder.decode(b"", True):
        yield text


def _settle_order(blocks: Iterator[bytes], name: str) -> tuple[Iterator[bytes], str]:
    beginning = b""
    for block in blocks:
        beginning += block
        if len(beginning) >= MAX_MARK:
            break
    return chain((beginning,), blocks), name if is_marked(beginning, name) else f"{name}-le"


def is_marked(head: bytes, name: str) -> bool:
    """Return whether the file begins with this encoding's byte order mark."""
    return any(head.startswith(mark) for mark, encoding in BYTE_ORDER_MARKS if encoding == name)


def is_clean(blocks: Iterable[bytes], encoding: str, *, whole: bool = True) -> bool:
    """Return whether the stream decodes without errors to text that has no NUL and few control characters.

    If `whole` is False, the stream is cut off, and an incomplete last character is accepted.
    """
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    single = not encoding.startswith(("utf-16", "utf-32", "iso2022"))
    length = controls = 0
    try:
        for block in blocks:
            text = decoder.decode(block)
            if "\0" in text:
                return False
            length += len(text)
            controls += _controls(block, text, single)
        text = decoder.decode(b"", whole)
    except (UnicodeError, ValueError):
        return False
    return "\0" not in text and controls * CHARS_PER_CONTROL <= length + len(text)


def _controls(block: bytes, text: str, single: bool) -> int:
    # Counting bytes is faster than counting characters, but works only if the encoding uses ASCII bytes for nothing but
    # ASCII characters.
    if not single:
        return len(_CONTROL_CHARS.findall(text))
    ascii_controls = len(block) - len(block.translate(None, _CONTROLS))
    return ascii_controls + (0 if text.isascii() else len(_C1.findall(text)))


def decode_text(read: Callable[[], Iterable[bytes]], encoding: str) -> Text:
    """Decode a stream of text.

    `read` opens the stream. It is called a second time if invalid bytes may have to be counted.
    """
    text = "".join(decode_blocks(read(), encoding))
    return Text(text, encoding, invalid_bytes=count_invalid_bytes(read(), encoding) if "\ufffd" in text else 0)


def count_invalid_bytes(blocks: Iterable[bytes], encoding: str) -> int:
    return _survey(blocks, canonical_encoding(encoding) or "utf-8", whole=True).invalid_bytes


@dataclass(frozen=True, slots=True)
class _Survey:
    """Counts for a stream: bytes, ASCII bytes, characters, invalid bytes, and characters in uncommon scripts.

    `is_clean` is False if there is a NUL or too many control characters.
    """

    size: int
    ascii: int
    chars: int
    invalid_bytes: int
    uncommon: int
    is_clean: bool

    @property
    def non_ascii_chars(self) -> int:
        return self.chars - self.ascii - self.invalid_bytes

    @property
    def is_utf8(self) -> bool:
        """Return whether almost all multi-byte sequences are valid UTF-8."""
        tails = self.size - self.chars  # The number of continuation bytes in valid characters.
        least = TAILS_PER_INVALID_BYTE_IN_ASCII if self.ascii * 10 >= self.size * 9 else TAILS_PER_INVALID_BYTE
        return self.is_clean and tails >= least * (self.invalid_bytes + 3 * self.uncommon)

    @property
    def is_as_declared(self) -> bool:
        """Return whether so few bytes are invalid that the declared encoding is the most likely one."""
        return self.is_clean and self.non_ascii_chars >= CHARS_PER_INVALID_BYTE * self.invalid_bytes


def _survey(blocks: Iterable[bytes], encoding: str, *, whole: bool) -> _Survey:
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
    single = not encoding.startswith(("utf-16", "utf-32", "iso2022"))
    size = plain = chars = invalid_bytes = uncommon = controls = 0
    has_nul = False
    try:
        for block in chain(blocks, (b"",)):
            text = decoder.decode(block, whole and not block)
            size, chars = size + len(block), chars + len(text)
            plain += len(text.encode("ascii", "ignore"))
            if not text.isascii():
                invalid_bytes += len(_INVALID_BYTES.findall(text))
                uncommon += len(_UNCOMMON.findall(text))
            has_nul = has_nul or "\0" in text
            controls += _controls(block, text, single)
    except (UnicodeError, ValueError):  # The error handler `surrogateescape` cannot represent invalid bytes below 0x80.
        return _Survey(size, plain, chars, max(chars, 1), uncommon, is_clean=False)
    return _Survey(size, plain, chars, invalid_bytes, uncommon, not has_nul and controls * CHARS_PER_CONTROL <= chars)


def accept_invalid_bytes(text: DetectedText, blocks: Iterable[bytes], *, whole: bool = True) -> DetectedText | None:
    """Return the text if only a few bytes of the stream do not decode, else None. The result is never `certain`."""
    survey = _survey(blocks, text.encoding, whole=whole)
    if text.encoding in ("utf-8", "utf-8-sig"):
        proof = (
            Proof.STRONG if survey.size - survey.chars >= TAILS_PER_INVALID_BYTE * survey.invalid_bytes else Proof.WEAK
        )
        return DetectedText(text.encoding, proof, "strays", certain=False) if survey.is_utf8 else None
    is_declared = text.trial in ("uploader", "itself")
    return replace(text, certain=False) if is_declared and survey.is_as_declared else None


MAY_HAVE_INVALID_BYTES = ("mark", "strays", "uploader", "itself")
"""Names of the checks that succeed even if a few bytes do not decode."""


def detect_text(
    head: bytes, *, whole: bool, declared: str | None = None, prefer: str = "zh", guess: Opinion | None = None
) -> DetectedText | None:
    """Detect the encoding of text from the file's first bytes. Return None if the bytes are not text.

    `whole` means that `head` is the whole file. `declared` is the encoding that the uploader declared. `prefer` is the
    language whose encoding is chosen if several encodings fit.
    """
    for candidate in _list_candidates(head, canonical_encoding(declared), prefer, guess):
        if is_clean((head,), candidate.encoding, whole=whole):
            return candidate
        if candidate.trial == "utf-8" and is_cut_off((head,)):
            return DetectedText("utf-8", Proof.STRONG, "cut")
        if candidate.trial in MAY_HAVE_INVALID_BYTES and (
            found := accept_invalid_bytes(candidate, (head,), whole=whole)
        ):
            return found
    return None


def widen(text: DetectedText) -> Iterator[DetectedText]:
    """Yield the result again with each superset of the detected encoding.

    The rest of the file may contain characters that only a superset has.
    """
    for encoding in WIDER.get(text.encoding, ()):
        yield replace(text, encoding=encoding)


def is_cut_off(blocks: Iterable[bytes]) -> bool:
    """Return whether a stream is UTF-8 text with an incomplete last character, such as the output of `head -c`."""
    lead_bytes = 0

    def count_lead_bytes() -> Iterator[bytes]:
        nonlocal lead_bytes
        for block in blocks:
            lead_bytes += len(block) - len(block.translate(None, _LEAD_BYTES))
            yield block

    # A single non-ASCII byte after ASCII text indicates another encoding, so require four complete characters before
    # it.
    return is_clean(count_lead_bytes(), "utf-8", whole=False) and lead_bytes > 4


def _list_candidates(head: bytes, declared: str | None, prefer: str, guess: Opinion | None) -> Iterator[DetectedText]:
    # The caller confirms each candidate by decoding all bytes.
    for mark, encoding in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            yield DetectedText(encoding, Proof.STRONG, "mark")
    if escaped := guess_by_escapes(head):
        yield DetectedText(escaped, Proof.STRONG, "escapes")
    yield DetectedText("utf-8", Proof.STRONG, "utf-8")
    if utf32 := guess_utf32(head):
        yield DetectedText(utf32, Proof.STRONG, "utf-32")
    if utf16 := guess_utf16(head):
        yield _judge_utf16(head, utf16)
    if b"\0" in head:
        return
    yield DetectedText("utf-8", Proof.STRONG, "strays")
    if declared:
        yield DetectedText(declared, Proof.STRONG, "uploader")
    if declared_inside := declared_encoding(head):
        yield DetectedText(declared_inside, Proof.STRONG, "itself")
    yield from _legacy_encodings(head, prefer, canonical_encoding(guess(head)) if guess else None)


def _legacy_encodings(head: bytes, prefer: str, guessed: str | None) -> Iterator[DetectedText]:
    candidates = rank_readings(head, guessed, prefer)
    certain = bool(candidates) and is_clear(candidates) and not _could_be_half_width_kana(head)
    for index, reading in enumerate(candidates):
        text_found = DetectedText(reading.encoding, _judge_proof(reading), "looks", certain and not index)
        yield from (text_found, *widen(text_found))
    if not _latin_word(head) and (chinese := guess_chinese_utf16(head)):
        yield _judge_utf16(head, chinese)
    if _latin_letters(head):
        yield DetectedText("cp1252", Proof.WEAK, "latin", certain=False)
    if guessed in GUESSES:
        yield DetectedText(guessed, Proof.WEAK, "guess", certain=False)
    if _mostly_ascii(head):
        yield DetectedText("cp1252", Proof.WEAK, "latin", certain=False)


def _could_be_half_width_kana(head: bytes) -> bool:
    # In just a few words, half-width kana cannot be distinguished from letters in other single-byte encodings.
    beyond_ascii = head.translate(None, bytes(range(0x80)))
    return 4 <= len(beyond_ascii) <= MAX_KANA_WORDS and not beyond_ascii.strip(_HALF_WIDTH_KANA)


def _judge_utf16(head: bytes, encoding: str) -> DetectedText:
    # If there are very few bytes, they could look like UTF-16 by accident.
    is_long_enough = len(head) >= 16
    return DetectedText(encoding, Proof.STRONG if is_long_enough else Proof.WEAK, "utf-16", is_long_enough)


def _judge_proof(reading: LikelyText) -> Proof:
    # Two or more frequent East Asian characters count as proof. Text in a single-byte encoding never counts as proof:
    # almost every byte is a letter, so any bytes could match by accident.
    is_proof = (
        reading.is_east_asian
        and reading.non_ascii_chars * 2 >= MIN_PROOF_CHARS
        and reading.non_ascii_nats >= FREQUENT_NATS * reading.non_ascii_chars
    )
    return Proof.STRONG if is_proof else Proof.WEAK


def _latin_letters(head: bytes) -> bool:
    # The encoding-guessing library is unreliable for short text, so every non-ASCII byte must be a Western letter or
    # mark in Windows-1252.
    return _mostly_ascii(head, 4) and bool(_WESTERN.fullmatch(head.translate(None, bytes(range(0x80)))))


def _latin_word(head: bytes) -> bool:
    # Two consecutive ASCII letters would be one Chinese character in UTF-16.
    return _latin_letters(head) and bool(_LETTERS.fullmatch(head.translate(None, bytes(range(0x80, 0x100)))))


def _mostly_ascii(head: bytes, tenths: int = 3) -> bool:
    # In Latin text, most letters have no accent.
    return (len(head) - len(head.translate(None, bytes(range(0x80, 0x100))))) * 10 <= len(head) * tenths


COMMON_WIDE = 0.8
"""UTF-16 or UTF-32 without a byte order mark is accepted only if at least this fraction of the characters is in
commonly used Unicode ranges."""

_COMMON_WIDE = re.compile(
    "[\t\n\r -~\u00a0-\u024f\u0370-\u052f\u0590-\u06ff\u0e00-\u0e5b\u2010-\u2026"
    "\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]"
)
_PLAIN = re.compile("[\t\n\r -~]")
_EAST_ASIAN = re.compile("[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef]*")
_ASCII_WORDS = bytes([0, 9, 10, 13, *range(32, 127)])

ESCAPES = re.compile(rb"\x1b\$[@AB]|\x1b\$\([A-DO-Q]|\x1b\$\)[AC]|\x1b\([IJ]|\x1b\.A")
"""ISO 2022 escape sequences that select a Japanese, Korean or Chinese character set (RFC 1468, 1554, 1557)."""

ESCAPED = ("iso2022_jp", "iso2022_kr", "iso2022_jp_2", "iso2022_jp_ext", "iso2022_jp_2004")
_HZ = re.compile(rb"~\{(?:[\x21-\x77][\x21-\x7e]){2,}~\}")


def guess_utf16(head: bytes) -> str | None:
    """Return the encoding if the bytes are UTF-16 text with ASCII characters, whose high bytes are NUL, else None."""
    if len(head) < 2 or b"\0" not in head:
        return None
    shares = {name: _common_wide(head, name) for name in ("utf-16-le", "utf-16-be")}
    best = max(shares, key=lambda name: shares[name])
    common, plain_share = shares[best]
    if common >= COMMON_WIDE and (plain_share or is_east_asian(head, best)) and not _ascii_with_nuls(head, best):
        return best
    return None


def guess_utf32(head: bytes) -> str | None:
    """Return the encoding if the bytes are UTF-32 without a byte order mark, else None."""
    whole = head[: len(head) & ~3]
    if len(whole) < 8 or not any(head.startswith(nul, at) for nul, at in ((b"\0\0", 2), (b"\0\0", 0))):
        return None
    # The highest byte is always NUL, because Unicode ends at U+10FFFF.
    for name, high in (("utf-32-le", whole[3::4]), ("utf-32-be", whole[::4])):
        if not high.strip(b"\0"):
            text = _decode(whole, name)
            if text and len(_COMMON_WIDE.findall(text)) >= COMMON_WIDE * len(text):
                return name
    return None


def guess_chinese_utf16(head: bytes) -> str | None:
    """Return the encoding if the bytes are UTF-16 text with Chinese characters and no ASCII, else None."""
    if len(head) % 2:
        return None
    return next((name for name in ("utf-16-le", "utf-16-be") if is_east_asian(head, name)), None)


def is_east_asian(head: bytes, encoding: str) -> bool:
    """Return whether the bytes decode to at least four characters, all of them Chinese."""
    return len(head) >= 8 and bool(_EAST_ASIAN.fullmatch(head.decode(encoding, "replace")))


def guess_by_escapes(head: bytes) -> str | None:
    """Return the encoding if escape sequences in ASCII (or the braces of HZ) indicate East Asian text, else None."""
    if ESCAPES.search(head):
        decodings = ((name, _decode(head, name)) for name in ESCAPED)
        return next((name for name, text in decodings if text and not text.isascii()), None)
    # Source code also has braces around letters, so require six characters that read as Chinese.
    pairs = b"".join(_HZ.findall(head[: 64 * 1024]))
    if len(pairs) >= 12:
        text = _decode(pairs, "hz")
        return "hz" if text and is_east_asian_text(text) else None
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
    # ASCII with NULs between fields can look like Chinese characters in UTF-16. Few real characters consist of two such
    # bytes, and real text would also contain frequent characters.
    if head.translate(None, _ASCII_WORDS):
        return False
    text = _PLAIN.sub("", head[: len(head) & ~1].decode(encoding, "replace"))
    return bool(text) and not is_east_asian_text(text)
