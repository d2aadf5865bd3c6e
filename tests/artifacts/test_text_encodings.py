"""Text in any common encoding is detected and decoded without loss."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from samples import JA, TW, ZH

from artifacts.core.detection.encodings import Proof, canonical_encoding, decode_blocks, detect_text, is_clean
from artifacts.sniffer import detector, guess_encoding

pytestmark = pytest.mark.smoke

DETECT = detector()
COMMON_ZH = (
    "的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后"
    "小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长"
    "知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最"
    "间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市"
)
ZH_WORDS = st.text(st.sampled_from(COMMON_ZH), min_size=8, max_size=60)
UNICODE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn", "Co")), min_size=1, max_size=200)


def read(data: bytes, **options: object) -> str | None:
    text_encoding = detect_text(data, whole=True, guess=guess_encoding, **options)
    return "".join(decode_blocks([data], text_encoding.encoding)) if text_encoding else None


@pytest.mark.requirement("ABR-5.3", "ABR-1.1")
@given(UNICODE)
def test_any_text_in_utf8_is_decoded(text: str) -> None:
    """Text that begins with U+FEFF is excluded, since this counts as a BOM."""
    assume(not text.startswith("\ufeff"))
    assert read(text.encode()) == text


@given(UNICODE, st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]))
def test_any_text_with_a_byte_order_mark_is_decoded(text: str, encoding: str) -> None:
    assume(not text.startswith("\ufeff"))
    assert read(text.encode(encoding)) == text


@given(ZH_WORDS, st.sampled_from(["gb18030", "gbk", "gb2312"]))
def test_chinese_text_in_a_national_encoding_is_decoded(text: str, encoding: str) -> None:
    """Text whose bytes are also valid UTF-8 is excluded. For example, the bytes of 一 are the letter һ in UTF-8."""
    data = f"{text}\nabc, 1\n{text}".encode(encoding)
    assume(not is_clean([data], "utf-8"))
    assert read(data) == f"{text}\nabc, 1\n{text}"


@given(ZH_WORDS, st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_chinese_text_in_utf16_without_a_byte_order_mark_is_decoded(text: str, encoding: str) -> None:
    """UTF-16 is recognized by the NULs in line breaks and digits."""
    assert read(f"{text}\n1. {text}\n".encode(encoding)) == f"{text}\n1. {text}\n"


@given(
    st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), min_size=8),
    st.sampled_from(["utf-16-le", "utf-16-be"]),
)
def test_ascii_text_in_utf16_without_a_byte_order_mark_is_decoded(text: str, encoding: str) -> None:
    assert read(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (TW, "big5"),
        (TW, "utf-16-be"),
        (JA, "shift_jis"),
        (JA, "euc_jp"),
        (ZH, "gb18030"),
        ("中文", "gbk"),
        ("编号,名称\n1,苹果\n", "gbk"),
        ("Été, garçon, Größe", "latin-1"),
        ("„Ça va“ – naïve…", "cp1252"),
        ("Привет, мир. Это проверка кодировки.", "cp1251"),
    ],
)
def test_text_in_a_legacy_encoding_is_decoded(text: str, encoding: str) -> None:
    """Traditional Chinese, Japanese, Western European and Russian text is decoded, even if it is short."""
    assert read(text.encode(encoding)) == text


@given(st.binary(max_size=300))
def test_detected_text_decodes_and_has_no_nul(data: bytes) -> None:
    text_encoding = detect_text(data, whole=True, guess=guess_encoding)
    if text_encoding:
        text = data.decode(text_encoding.encoding, "replace" if text_encoding.trial == "cut" else "strict")
        assert "\0" not in text
        assert sum(1 for char in text if char < " " and char not in "\t\n\r\f\b\x1b") * 200 <= len(text)


@given(st.binary(max_size=2000), st.lists(st.integers(1, 50), min_size=1, max_size=60))
def test_decoding_never_raises_and_does_not_depend_on_block_boundaries(data: bytes, cuts: list[int]) -> None:
    """In any encoding, decoding block by block gives the same text as decoding all bytes at once."""
    blocks, remaining = [], data
    for cut in cuts:
        blocks.append(remaining[:cut])
        remaining = remaining[cut:]
    names = ("utf-8", "gb18030", "big5", "shift_jis", "utf-16", "utf-16-le", "utf-32", "cp1252", "no such", None)
    for encoding in names:
        assert "".join(decode_blocks([*blocks, remaining], encoding)) == "".join(decode_blocks([data], encoding))


@given(ZH_WORDS, st.integers(1, 40), st.sampled_from(["utf-8", "gb18030", "big5", "utf-16-le"]))
def test_character_split_between_blocks_is_valid(text: str, size: int, encoding: str) -> None:
    data = text.encode(encoding, "ignore")
    assume(len(data) > 2)
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    assert is_clean(blocks, encoding)
    assert not is_clean([*blocks, b"\0\0\0"], encoding)
    assert not is_clean([data[:-1]], encoding)
    assert is_clean([data[:-1]], encoding, whole=False)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_chinese_without_ascii_is_text_despite_a_nul_byte(encoding: str) -> None:
    """In UTF-16, one byte of the character U+4E00 is a NUL."""
    text = "这是一个测试文件，共有一万条记录。"
    text_encoding = detect_text(text.encode(encoding), whole=True)
    assert text_encoding is not None
    assert (text_encoding.encoding, text_encoding.proof) == (encoding, Proof.STRONG)


@pytest.mark.parametrize("word", ["“quoted”", "Müllerin", "«Élodie»"])
def test_latin_word_is_not_decoded_as_chinese_in_utf16(word: str) -> None:
    """If the word were UTF-16, each pair of its bytes would be a Chinese character."""
    text_encoding = detect_text(word.encode("cp1252"), whole=True)
    assert text_encoding is not None
    assert word.encode("cp1252").decode(text_encoding.encoding) == word


@pytest.mark.parametrize("data", [b"\0", b"a\0b", bytes(range(256)), b"\x01\x02\x03words", b"\xff" * 40 + b"\0"])
def test_bytes_with_nul_or_many_control_characters_are_not_text(data: bytes) -> None:
    assert read(data) is None


def test_log_with_colours_is_text() -> None:
    """Logs and terminal output contain the control characters escape, tab, form feed and carriage return."""
    assert read(b"\x1b[31mred\x1b[0m\tand\r\n\x0c") == "\x1b[31mred\x1b[0m\tand\r\n\x0c"


def test_head_that_ends_inside_a_character_is_text() -> None:
    """Only the beginning of a long file is examined at first, and it may end inside a character."""
    assert detect_text(ZH.encode()[:-2], whole=False).encoding == "utf-8"


def test_file_cut_inside_its_last_character_is_text() -> None:
    """A file with nothing but an incomplete character does not count as UTF-8."""
    cut = ZH.rstrip().encode()[:-1]
    assert read(cut) == ZH.rstrip()[:-1] + "\ufffd"
    long = ZH.rstrip().encode() * 3000
    detection = DETECT.detect(long[:65536], len(long) - 1, read_at=lambda o, n: long[: len(long) - 1][o : o + n])
    assert (detection.encoding, detection.is_binary) == ("utf-8", False)
    assert detect_text("caf\u00e9".encode("latin-1"), whole=True).encoding == "cp1252"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GBK", "gb18030"),
        ("latin-1", "cp1252"),
        ("UTF8", "utf-8"),
        ("Shift_JIS", "shift_jis"),
        ("base64", None),
        ("unicode_escape", None),
        ("undefined", None),
        ("idna", None),
        ("x", None),
        ("", None),
    ],
)
def test_encoding_name_is_normalized(name: str, expected: str | None) -> None:
    """`canonical_encoding` returns a superset of the named encoding, or None for codecs that are not text encodings."""
    assert canonical_encoding(name) == expected


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("step", [1, 2, 3, 5, 1000])
def test_wide_encodings_without_a_byte_order_mark_are_little_endian(encoding: str, step: int) -> None:
    """Browsers also assume little-endian. Half a character at the end is dropped or becomes U+FFFD."""
    data = ("Grüße, 季度报告 🙂" * 9).encode(f"{encoding}-le")
    blocks = [data[start : start + step] for start in range(0, len(data), step)]
    assert "".join(decode_blocks(blocks, encoding)) == "Grüße, 季度报告 🙂" * 9
    assert "".join(decode_blocks([data[:1]], encoding)) in ("", "\ufffd")
