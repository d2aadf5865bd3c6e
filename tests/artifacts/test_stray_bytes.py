"""Text with a few bytes that cannot be decoded, as in concatenated or rotated logs."""

from __future__ import annotations

import pytest

from artifacts.core.detection.encodings import decode_text
from artifacts.core.store import read_slices
from artifacts.sniffer import detector

CHINESE = "".join(f"第{number}行：今天的天气很好，我们去公园散步。\n" for number in range(1000)).encode()
GERMAN = "Die Größe der Tür ist schön, für alle Bürger.\n" * 50
GBK = ("今天的天气很好，我们去公园散步。\n" * 200).encode("gb18030")
ARABIC = "<html><p>" + "مرحبا بكم في موقعنا على الانترنت، هذه صفحة باللغة العربية. " * 4 + "</p></html>"


def detect_encoding(data: bytes, declared: str | None = None, name: str = "a.txt") -> tuple[str | None, bool]:
    detection = detector().detect(data, filename=name, encoding=declared, read_at=read_slices(data), size=len(data))
    return detection.encoding, detection.encoding_certain


@pytest.mark.parametrize("declared", [None, "utf-8", "gb18030"])
@pytest.mark.parametrize("position", [0, len("第0行：今天".encode()), len(CHINESE)], ids=["first", "early", "last"])
def test_one_invalid_byte_does_not_change_the_encoding_of_a_long_text(position: int, declared: str | None) -> None:
    """At the position `last`, the invalid byte is far after the part of the file that is examined first."""
    assert detect_encoding(CHINESE[:position] + b"\xff" + CHINESE[position:], declared) == ("utf-8", False)


@pytest.mark.parametrize(
    "data",
    [
        GERMAN.encode() + ("Schöne Grüße aus Köln\n" * 5).encode("latin-1"),
        "All tests passed ✓ at the caf".encode() + b"\xe9 today, and nothing else happened.\n",
        b"\xef\xbb\xbf" + CHINESE + b"\xfe\n",
        b"plain log line\n" * 9000 + CHINESE + b"\xff",
    ],
    ids=["a tail in Latin-1", "a mark and a letter", "after a byte order mark", "after ASCII"],
)
def test_utf8_is_preferred_if_nearly_all_its_sequences_are_valid(data: bytes) -> None:
    encoding, certain = detect_encoding(data)
    assert (encoding, certain) in {("utf-8", False), ("utf-8-sig", False)}


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("Un café très agréable, où l'été est déjà passé.\n".encode("latin-1") * 5, "cp1252"),
        ("Привет, как дела? Это простой текст.\n".encode("cp866") * 3, "cp866"),
        ("The word is этом here and nothing else".encode("cp866"), "cp866"),
        (GBK, "gb18030"),
        (("안녕하세요, 오늘 날씨가 좋습니다.\n" * 20).encode("euc_kr"), "cp949"),
    ],
)
def test_other_encodings_are_not_detected_as_broken_utf8(data: bytes, encoding: str) -> None:
    assert detect_encoding(data)[0] == encoding


def test_declared_encoding_may_have_few_invalid_bytes() -> None:
    assert detect_encoding(GBK + b"\xff\n", "gb18030") == ("gb18030", False)
    assert detect_encoding(GBK.replace(b"\n", b"\xff\xff\n"), "gb18030") == (None, True)


def test_ascii_does_not_prove_a_declared_encoding() -> None:
    log = b"plain line\n" * 500
    assert detect_encoding(log + "今天".encode("gb18030") + b"\xff\n", "gb18030")[0] != "gb18030"
    assert detect_encoding(log + GBK + b"\xff\n", "gb18030") == ("gb18030", False)


@pytest.mark.parametrize(("chars", "is_accepted"), [(49, False), (50, True)])
def test_declared_encoding_may_have_one_invalid_byte_per_50_characters(chars: int, is_accepted: bool) -> None:
    found, _ = detect_encoding("今".encode("gb18030") * chars + b"\xff\n", "gb18030")
    assert (found == "gb18030") is is_accepted


def test_bytes_with_a_nul_are_not_text() -> None:
    assert detect_encoding(CHINESE + b"\0\xff", name="a") == (None, True)


@pytest.mark.parametrize(
    ("data", "name", "found"),
    [
        (ARABIC.encode("iso8859-6"), "a.html", ("iso8859-6", True)),
        ("ﾃｽﾄ ﾃﾞｰﾀ".encode("shift_jis"), "a.txt", ("iso8859-5", False)),
        ("東京 大阪".encode("shift_jis"), "a.txt", ("shift_jis", True)),
        ("佢哋喺邊度呀？我哋嘅嘢，咁樣嚟。".encode("big5hkscs"), "a.txt", ("big5hkscs", True)),
    ],
    ids=["Arabic", "half-width kana", "two Japanese words", "Cantonese"],
)
def test_rare_encoding_is_detected_or_marked_uncertain(data: bytes, name: str, found: tuple[str, bool]) -> None:
    assert detect_encoding(data, name=name) == found


@pytest.mark.parametrize(
    ("data", "encoding", "text", "strays"),
    [
        (b"caf\xe9 \xe2\x9c\x93 \xff\xfe", "utf-8", "caf\ufffd ✓ \ufffd\ufffd", 3),
        ("a \ufffd".encode(), "utf-8", "a \ufffd", 0),
        (b"\x81 \x9d", "cp1252", "\ufffd \ufffd", 2),
    ],
)
def test_undecodable_bytes_are_counted(data: bytes, encoding: str, text: str, strays: int) -> None:
    """A U+FFFD that the file itself contains does not count as undecodable."""
    decoded = decode_text(lambda: (data,), encoding)
    assert (decoded.text, decoded.invalid_bytes) == (text, strays)
