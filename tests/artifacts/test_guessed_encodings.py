"""An undeclared encoding is guessed from the most plausible language, and uncertainty is recorded."""

from __future__ import annotations

import pytest
from samples import JA, KO, RU, TR, TW, ZH

from artifacts.core.detection.correction import CorrectionError, correct
from artifacts.core.detection.encoding_names import CHOICES, canonical_encoding
from artifacts.core.detection.encodings import Proof, decode_blocks, detect_text
from artifacts.core.detection.evidence import Detection
from artifacts.sniffer import detector, guess_encoding
from capabilities.core.vocabulary import Kind

DETECT = detector()
LATIN_NAME = "Çağrı, İstanbul'da öğretmen olarak çalışıyor.\n"


def read(data: bytes, **options: object) -> str | None:
    text_encoding = detect_text(data, whole=True, guess=guess_encoding, **options)
    return "".join(decode_blocks([data], text_encoding.encoding)) if text_encoding else None


def read_encoding(data: bytes, **options: object) -> str | None:
    text_encoding = detect_text(data, whole=True, **options)
    return text_encoding.encoding if text_encoding else None


@pytest.mark.parametrize("encoding", ["euc_kr", "cp949", "johab"])
@pytest.mark.parametrize("prefer", ["zh", "en", "ja"])
def test_korean_is_detected_for_any_preferred_language(encoding: str, prefer: str) -> None:
    """In GB 2312, the bytes of Hangul (rows B0 to C8) are also Chinese characters, but rare ones."""
    assert read(KO.encode(encoding), prefer=prefer) == KO
    assert read("한글 문서".encode(encoding), prefer=prefer) == "한글 문서"


def test_encoding_guesser_decides_between_two_likely_encodings() -> None:
    """The user's language decides only if the encoding guesser returns nothing."""
    ambiguous = "技情".encode("gbk")
    assert read_encoding(ambiguous, prefer="zh") == "gb18030"
    assert read_encoding(ambiguous, prefer="zh", guess=lambda _: "cp949") == "cp949"
    assert read_encoding(ambiguous, prefer="en", guess=lambda _: "cp949") == "cp949"
    assert read_encoding(ambiguous, prefer="ko") == "cp949"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (JA, "iso2022_jp"),
        (JA, "iso2022_jp_2"),
        ("半角ｶﾅ", "iso2022_jp_ext"),
        (KO, "iso2022_kr"),
        (ZH, "hz"),
    ],
)
def test_escape_sequences_are_tried_before_utf8(text: str, encoding: str) -> None:
    """Text in ISO 2022 and HZ consists of ASCII bytes and would otherwise be detected as UTF-8."""
    data = text.encode(encoding)
    assert data.isascii()
    assert read(data) == text
    assert detect_text(data, whole=True).certain


@pytest.mark.parametrize(
    "text", [b"\x1b[31mred\x1b[0m\n", b"\x1b(B plain\n", b"a = ~{ b, c ~}\n", b"echo ${x:~{ab}~}\n"]
)
def test_escape_sequences_without_east_asian_text_are_ascii(text: bytes) -> None:
    """Terminal colours are escape sequences as well."""
    assert read_encoding(text) == "utf-8"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ('<?xml version="1.0" encoding="iso-8859-2"?><a>ż</a>', "iso8859-2"),
        ("<?xml version='1.0' encoding='KOI8-R'?><a>да</a>", "koi8-r"),
        ('<html><head><meta charset="windows-1256"></head><p>شكرا</p>', "cp1256"),
        (
            '<html><meta http-equiv="Content-Type" content="text/html; charset=windows-1257"><p>ė</p>',
            "cp1257",
        ),
        ("#!/usr/bin/python\n# -*- coding: iso-8859-15 -*-\nprice = '5 €'\n", "iso8859-15"),
        ("# vim: set fileencoding=cp1250 :\nname = 'ň'\n", "cp1250"),
        ("# -*- coding: euc-jp-unix -*-\nx = '日'\n", "euc_jp"),
        ('@charset "windows-1253";\na { content: "ώ" }\n', "cp1253"),
        ('msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=CP1255\\n"\nmsgstr "ש"\n', "cp1255"),
        ("Subject: x\r\nContent-Type: text/plain;\r\n charset=ks_c_5601-1987\r\n\r\n한\r\n", "cp949"),
    ],
)
def test_uploader_encoding_takes_precedence_over_encoding_declared_in_the_text(text: str, encoding: str) -> None:
    """XML, HTML, CSS, source code, gettext catalogues and mail can declare their encoding."""
    data = text.encode(encoding)
    text_encoding = detect_text(data, whole=True, guess=guess_encoding)
    assert text_encoding is not None
    assert (text_encoding.encoding, text_encoding.trial, text_encoding.certain) == (encoding, "itself", True)
    assert detect_text(data, whole=True, declared="cp437").trial == "uploader"


def test_declared_encoding_that_contradicts_the_bytes_is_ignored() -> None:
    """A declared encoding is ignored if the text is valid UTF-8, or if it says UTF-16 in ASCII letters."""
    assert read_encoding('<meta charset="gbk"><p>价格</p>'.encode()) == "utf-8"
    assert read_encoding(f'<?xml version="1.0" encoding="UTF-16"?><a>{ZH}</a>'.encode("gbk")) == "gb18030"
    assert read_encoding(f'<?xml version="1.0" encoding="x-none"?><a>{ZH}</a>'.encode("gbk")) == "gb18030"


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "iso8859-5", "cp866", "cp855", "mac-cyrillic"])
def test_russian_is_recognized_in_all_its_encodings(encoding: str) -> None:
    """Russian has six legacy encodings: two from DOS, one from the Macintosh and three from the internet."""
    text_encoding = detect_text(RU.encode(encoding), whole=True)
    assert text_encoding is not None
    assert (text_encoding.encoding, text_encoding.certain) == (encoding, True)
    assert read(RU.encode(encoding)) == RU


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (TR, "cp1254"),
        (LATIN_NAME, "cp1254"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.\n", "cp1250"),
        ("Zażółć gęślą jaźń.\n", "cp1250"),
        ("Árvíztűrő tükörfúrógép.\n", "cp1250"),
        ("Það er gott að sjá þig, óþægilegt veður í dag.\n", "cp1252"),
        ("Ąžuolų šešėlyje žydėjo gėlės, o paukščiai čiulbėjo.\n", "cp1257"),
        ("Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.\n", "cp1253"),
        ("דג סקרן שט בים מאוכזב ולפתע מצא חברה.\n", "cp1255"),
        ("هذا نص لاختبار الترميز في الملفات.\n", "cp1256"),
        ("ภาษาไทยเป็นภาษาที่ใช้ในการทดสอบ\n", "cp874"),
        ("Ïà îò êè, õî÷ó äîìîé".encode("cp1252").decode("cp1251"), "cp1251"),
    ],
)
def test_language_is_recognized_by_its_letters(text: str, encoding: str) -> None:
    """Letters that are specific to a language outweigh Western European encodings."""
    data = text.encode(encoding)
    assert read(data) == text
    assert "".join(decode_blocks([data], read_encoding(data))) == text


@pytest.mark.parametrize("text", [ZH, KO, RU, "Plain words, Größe\n"])
@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be"])
def test_utf32_without_a_byte_order_mark_is_text(text: str, encoding: str) -> None:
    """In UTF-32, each of the sample's characters has NULs in the same positions."""
    assert (read_encoding(text.encode(encoding)), read(text.encode(encoding))) == (encoding, text)


@pytest.mark.parametrize("step", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("first", [0, 1])
def test_ascii_with_regular_nuls_is_not_utf16(step: int, first: int) -> None:
    """Names separated by NULs, such as the output of `find -print0`, could be decoded as UTF-16."""
    data = b"\0" * first + b"\0".join(b"abcdefgh"[:step] for _ in range(40)) + b"\0"
    assert read_encoding(data) is None
    assert DETECT.detect(data).is_binary


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x-sjis", "cp932"),
        ("windows-31j", "cp932"),
        ("euc_jis_2004", "euc_jis_2004"),
        ("EUC-KR", "cp949"),
        ("ks_c_5601-1987", "cp949"),
        ("IBM855", "cp855"),
        ("ibm866", "cp866"),
        ("x-mac-cyrillic", "mac-cyrillic"),
        ("MacCyrillic", "mac-cyrillic"),
        ("Johab", "johab"),
        ("iso-8859-9", "cp1254"),
        ("windows-874", "cp874"),
        ("gb_2312-80", "gb18030"),
    ],
)
def test_whatwg_encoding_labels_are_recognized(name: str, expected: str) -> None:
    """These labels of the WHATWG Encoding Standard are unknown to Python."""
    assert canonical_encoding(name) == expected


def test_extended_japanese_is_decoded_completely() -> None:
    """Microsoft's circled digits and JIS X 0213 characters may occur far from the beginning."""
    assert read(f"{JA}①②".encode("cp932")) == f"{JA}①②"
    assert read(f"{JA}俱".encode("euc_jis_2004")) == f"{JA}俱"
    late = (JA * 1500 + "①").encode("cp932")
    detection = DETECT.detect(late[:65536], len(late), read_at=lambda offset, length: late[offset : offset + length])
    assert (detection.encoding, detection.is_binary) == ("cp932", False)


@pytest.mark.parametrize(
    ("data", "certain"),
    [
        (ZH.encode(), True),
        (ZH.encode("gbk"), True),
        (TW.encode("big5"), True),
        (ZH.encode("utf-16-le"), True),
        (RU.encode("koi8-r"), True),
        ("中文".encode("gbk"), False),
        ("Müller\n".encode("cp1252"), False),
        ("да".encode("cp1251"), False),
    ],
)
def test_uncertain_encoding_is_reported_as_a_guess(data: bytes, certain: bool) -> None:
    """An encoding is a guess if there are few characters or if another encoding is similarly likely."""
    detection = DETECT.detect(data)
    assert detection.encoding_certain is certain
    assert next(item.reason for item in detection.evidence if item.step == "text") == (
        "text" if certain else "text_guessed"
    )
    assert DETECT.detect(data, encoding="gb18030").encoding_certain or not certain


def test_only_east_asian_text_overrides_a_declared_media_type() -> None:
    """Bytes are not necessarily text just because they can be decoded in some other legacy encoding."""
    assert detect_text(KO.encode("cp949"), whole=True).proof is Proof.STRONG
    assert detect_text(RU.encode("cp1251"), whole=True).proof is Proof.WEAK


GUESSED = DETECT.detect("Müller\n".encode("cp1252"), None, None, "a.csv")


def test_corrected_encoding_is_certain_and_recorded_as_evidence() -> None:
    corrected = correct(GUESSED, encoding="latin2")
    assert (corrected.encoding, corrected.encoding_certain, corrected.mime_type) == ("iso8859-2", True, "text/csv")
    assert [item.reason for item in corrected.evidence[-2:]] == ["corrected", "corrected"]
    assert corrected.evidence[: len(GUESSED.evidence)] == GUESSED.evidence


def test_corrected_type_overrides_metadata_and_bytes() -> None:
    image = correct(GUESSED, mime_type="IMAGE/JPG; q=1")
    assert (image.mime_type, image.kind, image.is_binary, image.encoding) == ("image/jpeg", Kind.IMAGE, True, None)
    noise = Detection(
        mime_type="image/png",
        kind=Kind.IMAGE,
        is_binary=True,
        encoding=None,
        declared_mime_type="text/plain",
        detected_mime_type="image/png",
        mismatch=True,
    )
    text = correct(noise, mime_type="text/plain")
    assert (text.kind, text.encoding, text.encoding_certain, text.mismatch) == (Kind.TEXT, "utf-8", False, False)
    assert correct(noise, encoding="GBK").mime_type == "text/plain"
    assert correct(noise, encoding="GBK").encoding == "gb18030"


@pytest.mark.parametrize(("correction", "field"), [({"encoding": "base64"}, "encoding"), ({"mime_type": "x"}, "type")])
def test_correction_to_an_unknown_value_is_rejected(correction: dict[str, str], field: str) -> None:
    """The error about an invalid correction names the field, so that the form can show it there."""
    with pytest.raises(CorrectionError) as refused:
        correct(GUESSED, **correction)
    assert refused.value.field == field


def test_every_offered_encoding_has_its_canonical_name() -> None:
    assert [name for name in CHOICES if canonical_encoding(name) != name] == []
    assert len(set(CHOICES)) == len(CHOICES)


@pytest.mark.parametrize(
    "blob",
    [
        b"Kf\x8b{",
        b"j\x08\xaa",
        b"\xd7c\xfd\xf4\xe6",
        b"~\x95\x83K\x88\xb9\x8dp",
        b"\x941)R\xac\xbb\xdb\xc3",
        b"Ez\xf8\xc7\xa0A\x93GGH",
    ],
)
def test_few_bytes_that_decode_by_chance_are_not_text(blob: bytes) -> None:
    """Mixed alphabets, capitals inside words or a brace reveal binary bytes.

    With the extension `.txt`, the same bytes count as text.
    """
    assert DETECT.detect(blob).kind is Kind.OTHER
    assert DETECT.detect(blob, None, None, "a.bin").kind is Kind.OTHER
    decoded = detect_text(blob, whole=True, guess=guess_encoding)
    assert DETECT.detect(blob, None, None, "a.txt").kind is (Kind.TEXT if decoded else Kind.OTHER)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("你好", "gb18030"),
        ("价格：10元", "gb18030"),
        ("香蕉", "big5"),
        ("日本語です", "shift_jis"),
        ("한국어", "cp949"),
        ("Привет!", "cp1251"),
        ("цена 10", "koi8-r"),
        ("Grüße, Öl", "cp1252"),
        ("Été à la plage", "cp1252"),
        ("§ 5", "cp1252"),
        ("żółć i gęś", "cp1250"),
        ("שלום", "cp1255"),
        ("ΑΘΗΝΑ", "cp1253"),
    ],
)
def test_few_words_in_a_legacy_encoding_are_text_without_a_filename(text: str, encoding: str) -> None:
    assert DETECT.detect(text.encode(encoding)).kind is Kind.TEXT


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-u"])
def test_ukrainian_is_decoded_as_koi8_u(encoding: str) -> None:
    """Of the KOI8 encodings, only koi8-u has the letters ґ, є, і and ї."""
    text = "Щастя їй дісталося нелегко, але є ще їжа і ґанок.\n"
    assert read(text.encode(encoding)) == text
