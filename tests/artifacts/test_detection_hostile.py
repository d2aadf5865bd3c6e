"""Misleading and hostile files: detection returns quickly and never raises."""

from __future__ import annotations

import time
from encodings.aliases import aliases

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import SAMPLES, ZH, build_zip, docx, draw_picture, iso_media, ole2, pdf

from artifacts.core.detection.containers import INSPECT
from artifacts.core.detection.detector import BinaryDetector
from artifacts.core.detection.image_size import image_size
from artifacts.core.detection.kinds import clean_mime, mime_kind
from artifacts.core.detection.media_containers import ogg_type
from artifacts.sniffer import describe_sniffer, detector, sniff
from capabilities.core.vocabulary import Kind
from tests.artifacts.faults import collect_errors, expect_no_internal_error

DETECT = detector()
# All Python codecs are included, even those that are not text encodings, since an upload may declare any of them.
ENCODINGS = sorted({*aliases, *aliases.values()})
PNG = draw_picture("PNG")
BUDGET_SECONDS = 2.0


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("png with a zip behind it", PNG + build_zip({"a.exe": b"MZ"}), Kind.IMAGE),
        ("gif header before a pdf", b"GIF89a" + pdf("x"), Kind.OTHER),
        ("png with a script inside", PNG[:40] + b"<script>alert(1)</script>" + PNG[40:], Kind.IMAGE),
        ("pdf with html inside", pdf("<html>"), Kind.DOCUMENT),
        ("html that says it is a gif", b"GIF89a=1;<html><script>1</script></html>", Kind.TEXT),
        ("words that begin like a bitmap", b"BM is short for something\n", Kind.TEXT),
        ("words that begin like a program", b"MZ and PE are headers\n", Kind.TEXT),
        ("words that begin like a tag", b"ID3 tags are explained here\n", Kind.TEXT),
        ("words that begin like flash", b"CWS 1 and FWS 2\n", Kind.TEXT),
        ("truncated png", PNG[:20], Kind.IMAGE),
        ("truncated docx", docx("x")[:100], Kind.OTHER),
        ("newlines", b"\n" * 65536, Kind.TEXT),
    ],
)
def test_polyglot_has_the_type_of_the_structure_at_its_beginning(name: str, data: bytes, kind: Kind) -> None:
    detection = DETECT.detect(data)
    if name == "gif header before a pdf":
        assert not any(item.reason == "signature" for item in detection.evidence)
    else:
        assert detection.kind is kind


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("newlines that are no utf-8", b"\n" * 65000 + b"\xff\xfe\0"),
        ("a zip of 20,000 names", build_zip({f"{n}": b"" for n in range(20_000)})),
        ("a directory that points at itself", ole2("x")[:512] + b"\x00\0\0\0" * 128 + ole2("x")[1024:]),
        ("boxes of no length", iso_media(b"isom", b"vide")[:20] + b"\0\0\0\x08moov" * 9000),
        ("track entries without end", b"\x1a\x45\xdf\xa3\x87\x42\x82\x84webm\x16\x54\xae\x6b\xff" + b"\xae" * 60_000),
        ("ends of central directories", b"PK\x03\x04\x14\0\0\0\0\0" + bytes(16) + b"\1\0\0\0a" + b"PK\x05\x06" * 9000),
        ("one long line of brackets", b"[" * 65536),
        ("digits of a bitmap without end", b"P1\n2000 2000\n" + b"0" * 65536),
        ("comments before a pixmap's size", b"P3\n" + b"#\n" * 33_000),
        ("streamed parts that never end", build_zip({"a": b""})[:6] + b"\x08\0" + b"PK\x03\x04" * 16_000),
        ("every mark of utf-16", b"\xff\xfe" * 30_000),
        ("invalid chinese", b"\xb0" * 65536),
    ],
)
def test_hostile_bytes_take_bounded_time(name: str, data: bytes) -> None:
    """The time depends on how many bytes are read, not on the sizes that they declare."""
    started = time.perf_counter()
    detection = DETECT.detect(data[:65536], len(data), read_at=lambda offset, length: data[offset : offset + length])
    assert time.perf_counter() - started < BUDGET_SECONDS
    assert detection.kind in Kind


@given(
    st.one_of(st.binary(max_size=2000), st.sampled_from([s.data for s in SAMPLES]).flatmap(lambda d: st.just(d))),
    st.one_of(st.none(), st.text(max_size=20), st.sampled_from([s.mime for s in SAMPLES])),
    st.one_of(st.none(), st.text(max_size=20), st.sampled_from([s.name for s in SAMPLES])),
    st.one_of(st.none(), st.text(max_size=20), st.sampled_from(ENCODINGS)),
)
@pytest.mark.requirement("ABR-8.3")
def test_detection_of_any_bytes_returns_a_consistent_result(
    data: bytes, declared: str | None, name: str | None, encoding: str | None
) -> None:
    """The test also fails for an internal error that detection logs instead of raising."""
    with expect_no_internal_error():
        detection = DETECT.detect(data, None, declared, name, encoding=encoding)
    assert clean_mime(detection.mime_type) == detection.mime_type or detection.mime_type == "application/octet-stream"
    assert detection.is_binary == (detection.kind is not Kind.TEXT)
    assert (detection.encoding is None) == detection.is_binary
    assert detection.kind is Kind.TEXT or detection.kind is mime_kind(detection.mime_type)
    if detection.encoding:
        assert "\0" not in data.decode(detection.encoding, "replace")
    assert detection.evidence[-1].step == "verdict"
    assert detection.evidence[-1].says == detection.mime_type


@given(st.sampled_from([s for s in SAMPLES if s.is_binary]), st.integers(0, 600), st.integers(0, 255))
def test_damaged_or_truncated_sample_is_still_detected(sample, position: int, byte: int) -> None:
    damaged = sample.data[:position] + bytes([byte]) + sample.data[position + 1 :]
    for data in (damaged, sample.data[:position]):
        with expect_no_internal_error():
            DETECT.detect(data, None, None, sample.name)
        for inspect in INSPECT.values():
            inspect(lambda offset, length, data=data: data[max(offset, 0) : max(offset, 0) + length], len(data))
        image_size(data, sample.mime)


@given(st.binary(min_size=20, max_size=400), st.sampled_from(["image/png", "image/jpeg", "image/gif", "image/webp"]))
@pytest.mark.requirement("ABR-P3")
def test_binary_without_a_signature_keeps_its_declared_image_type(data: bytes, declared: str) -> None:
    alone = DETECT.detect(data)
    if alone.kind is Kind.TEXT or any(item.reason == "signature" for item in alone.evidence):
        return
    assert DETECT.detect(data, None, declared).mime_type == declared


def test_failing_reader_does_not_fail_the_upload() -> None:
    def broken(offset: int, length: int) -> bytes:
        raise OSError("disk")

    with expect_no_internal_error():
        detection = BinaryDetector().detect(docx("x")[:64], 5000, "application/msword", read_at=broken)
    assert (detection.mime_type, detection.kind) == ("application/msword", Kind.DOCUMENT)
    assert "failed" in [item.reason for item in detection.evidence]


def test_internal_detection_error_is_logged_and_does_not_fail_the_upload() -> None:
    """The declared type is kept. Other tests use `expect_no_internal_error` to fail on such an error."""

    def raise_type_error(offset: int, length: int) -> bytes:
        raise TypeError("a bytes-like object is required, not 'str'")

    with collect_errors() as records:
        detection = BinaryDetector().detect(docx("x")[:64], 5000, "application/msword", read_at=raise_type_error)
    assert (detection.mime_type, detection.kind) == ("application/msword", Kind.DOCUMENT)
    assert [record.exc_info[0] for record in records if record.exc_info] == [TypeError]
    with pytest.raises(AssertionError, match="detection"), expect_no_internal_error():
        BinaryDetector().detect(docx("x")[:64], 5000, "application/msword", read_at=raise_type_error)


def test_libmagic_is_used_only_for_unknown_binary_data() -> None:
    assert describe_sniffer().startswith(("libmagic", "pylibmagic", "none"))
    heads: list[bytes] = []
    counting = BinaryDetector(lambda head: heads.append(head))
    counting.detect(ZH.encode() * 100)
    counting.detect(PNG)
    assert heads == []
    counting.detect(b"\0\xff" * 50_000)
    assert [len(head) for head in heads] == [65536]
    assert sniff(b"") is None


@pytest.mark.parametrize("end", [4, 5, 6, 26, 27])
def test_ogg_file_truncated_within_a_page_header_is_detected(end: int) -> None:
    page = b"OggS\0\2" + bytes(20) + b"\1\x13\x01vorbis" + bytes(12)
    data = page + page[:end]
    assert ogg_type(lambda at, size: data[at : at + size], len(data)) == "audio/ogg"
