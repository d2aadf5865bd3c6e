"""Type detection: first for all sample files in the table, then rule by rule."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import FR, SAMPLES, SVG, ZH, Sample, build_zip, docx, draw_picture, iso_media, mp3, ogg, pdf, pptx, wav

from artifacts.core.detection.containers import WORKS
from artifacts.core.detection.detector import BinaryDetector
from artifacts.core.detection.evidence import REASONS, Detection
from artifacts.core.detection.extensions import EXTENSIONS_OF_MIME, OOXML
from artifacts.core.detection.kinds import (
    ALIASES,
    UNDECLARED,
    clean_mime,
    filename_mime,
    is_binary_mime,
    is_text_mime,
    mime_kind,
)
from artifacts.core.detection.signatures import SIGNATURES
from artifacts.core.detection.structures import mp3_frame, netpbm
from artifacts.sniffer import detector
from capabilities.core.vocabulary import Kind
from tests.artifacts.compound_files import build_compound_file
from tests.artifacts.faults import collect_errors, expect_no_internal_error
from tests.artifacts.head_samples import package

DETECT = detector()
BARE_DETECTOR = BinaryDetector()


def broken(_: bytes) -> str | None:
    raise RuntimeError("no")


FAILING = BinaryDetector(broken, broken)
PNG = draw_picture("PNG")


def detect(data: bytes, declared: str | None = None, filename: str | None = None) -> Detection:
    return DETECT.detect(data, None, declared, filename)


@pytest.mark.requirement("ABR-1.1", "ABR-1.2", "ABR-1.3")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_sample_is_detected_with_its_type_kind_and_encoding(sample: Sample) -> None:
    detection = detect(sample.data, None, sample.name)
    assert (detection.mime_type, detection.kind, detection.encoding) == (sample.mime, sample.kind, sample.encoding)
    assert detection.is_binary is sample.is_binary
    assert not detection.mismatch


@pytest.mark.requirement("ABR-1.5", "ABR-8.2")
@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.is_binary], ids=lambda sample: sample.name)
def test_binary_sample_is_detected_without_its_filename(sample: Sample) -> None:
    detection = (BARE_DETECTOR if sample.bare else DETECT).detect(sample.data)
    bare = sample.bare or sample.mime
    assert (detection.mime_type, detection.kind) == (bare, mime_kind(bare))


@pytest.mark.requirement("ABR-1.1")
@pytest.mark.parametrize("sample", [s for s in SAMPLES if not s.is_binary], ids=lambda sample: sample.name)
def test_encoding_of_a_text_sample_does_not_depend_on_its_filename(sample: Sample) -> None:
    detection = detect(sample.data)
    assert (detection.kind, detection.is_binary, detection.encoding) == (Kind.TEXT, False, sample.encoding)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_libmagic_changes_the_type_of_no_sample(sample: Sample) -> None:
    """The product's own signature table determines each sample's type."""
    detection = BARE_DETECTOR.detect(sample.data, None, None, sample.name)
    assert (detection.mime_type, detection.kind, detection.is_binary) == (sample.mime, sample.kind, sample.is_binary)


def test_samples_cover_at_least_sixty_types_and_name_their_origin() -> None:
    assert len({sample.mime for sample in SAMPLES}) >= 60
    assert all(sample.made for sample in SAMPLES)


def test_names_and_contents_of_samples_are_unique() -> None:
    assert len({sample.name for sample in SAMPLES}) == len(SAMPLES)
    assert len({sample.data for sample in SAMPLES}) == len(SAMPLES)


@pytest.mark.requirement("ABR-1.4")
@pytest.mark.parametrize(
    "declared", ["image/png", "image/tiff", "audio/mpeg", "video/mp4", "application/pdf", "application/x-own-thing"]
)
def test_declared_type_is_kept_if_the_bytes_have_no_signature(declared: str) -> None:
    detection = detect(bytes(range(256)) * 4, declared, "whatever.bin")
    assert detection.mime_type == declared
    assert detection.is_binary
    assert not detection.mismatch


@pytest.mark.requirement("ABR-1.4")
@pytest.mark.parametrize(
    ("data", "declared", "mime"),
    [
        (pdf("x"), "image/png", "application/pdf"),
        (PNG, "image/jpeg", "image/png"),
        (draw_picture("JPEG"), "application/pdf", "image/jpeg"),
        (mp3(), "image/png", "audio/mpeg"),
        (mp3(tag=True), "video/mp4", "audio/mpeg"),
        (wav(), "audio/mpeg", "audio/wav"),
        (iso_media(b"heic"), "image/png", "image/heic"),
        (docx("x"), "application/pdf", f"{OOXML}wordprocessingml.document"),
        (build_zip({"a": b"b"}), f"{OOXML}wordprocessingml.document", "application/zip"),
        (PNG, "text/plain", "image/png"),
    ],
)
def test_signature_with_a_valid_structure_overrides_the_declared_type(data: bytes, declared: str, mime: str) -> None:
    detection = detect(data, declared)
    assert (detection.mime_type, detection.declared_mime_type, detection.detected_mime_type) == (mime, declared, mime)
    assert detection.mismatch
    assert [item.says for item in detection.evidence if item.step == "declared"] == [declared]
    assert (detection.evidence[-1].says, detection.evidence[-1].reason) == (mime, "overruled")


@pytest.mark.parametrize(
    "stub",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(9),
        b"\xff\xd8\xff",
        b"GIF89a\x01",
        b"PK\x03\x04\xff\xff",
        b"ID3\xff\xff\xff\xff",
    ],
)
def test_signature_without_a_structure_is_used_only_without_a_declared_type(stub: bytes) -> None:
    data = stub + b"\0\xfe\xff\x01" * 9
    assert detect(data, "audio/flac").mime_type == "audio/flac"
    assert BARE_DETECTOR.detect(data).mime_type != "application/octet-stream"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"BM\x80\x81", id="a bitmap's two letters"),
        pytest.param(b"MZ\xff\xff", id="a program's two letters"),
        pytest.param(b"\0\0\x02\0\x06\x04\xff\xff", id="a spreadsheet's first record, which cursors begin like"),
        pytest.param(b"\0\0\x1a\0\xff\xff", id="a later spreadsheet's"),
        pytest.param(b"\0\x01\0\0Unknown Jet DB\0", id="a database, which fonts begin like"),
        pytest.param(b"\x0b\x77\xff\xff", id="a frame of AC-3"),
        pytest.param(b"\x30\x82\1\0", id="a sequence, as certificates begin"),
        pytest.param(b"\x80\4\0", id="a pickle's protocol"),
        pytest.param(b"\x03\x7e\0\0", id="a table's release and year"),
        pytest.param(b"\x60\xea\xff\xff", id="an archive's two bytes"),
        pytest.param(b"\x01\xda\7\7", id="a picture's two bytes"),
        pytest.param(b"P7\x80\x81", id="a pixmap's two letters"),
        pytest.param(b"\0\0\0\1\x67\xff", id="one unit of a stream"),
    ],
)
def test_short_signature_without_a_structure_identifies_no_type(data: bytes) -> None:
    """Two letters or a few NULs may occur by chance."""
    detection = BARE_DETECTOR.detect(data + b"\0\xfe\xff\x01" * 9)
    assert (detection.mime_type, detection.detected_mime_type) == ("application/octet-stream", None)


def test_video_brand_overrides_a_declared_audio_type() -> None:
    """Registries list `.3g2` as audio, but KDDI's brand marks videos recorded by its phones."""
    detection = detect(iso_media(b"KDDI"), "audio/3gpp2", "a.3g2")
    assert (detection.mime_type, detection.mismatch) == ("video/3gpp2", True)


def test_audio_after_an_id3_tag_overrides_the_declared_type() -> None:
    """An ID3 tag may precede not only MP3 data but also AAC and FLAC, so the data after the tag determines the type."""
    aac = next(sample.data for sample in SAMPLES if sample.name == "tagged.aac")
    assert (detect(aac, "audio/flac").mime_type, detect(aac, "audio/flac").mismatch) == ("audio/aac", True)
    assert detect(mp3(tag=True), "audio/aac").mime_type == "audio/mpeg"
    assert detect(b"ID3\x03\0\0\0\0\x7f\x7f" + bytes(50), "audio/flac").mime_type == "audio/flac"


@pytest.mark.parametrize(
    "text",
    [
        b"!<arch>\nis how an archive begins\n",
        b"\n\n\x05\x01words",
        b"P6 is a format of pixmaps\n",
        b"P1 was the best of the runs\n" * 50,
        b"P1 1 2 3\nP2 4 5 6\n",
        b"P2\n2 2\n15\n1 2 3\n",
        b"P2\n2 2\n15\n1 2 3 16\n",
        b"P3\n10 20\n255\npixels follow in this order\n",
        b"P3\n1 1\n255\n" + b"1" * 9000 + b" 2 3\n",
        b"P4\n10 20\nlines of words follow here\n" * 50,
        b"P5\n1200 2500\n30\nare the pages to read\n" + b"in every copy\n" * 200,
        b"P7\nWIDTH 4\nHEIGHT 4\nare two of the lines\n",
        b"Image type: photo\nImage size (x*y): 4*2\n" + b"words of a catalogue\n" * 50,
        b"LinS and DanM begin pictures\n" * 9,
        b"!BDN begins a file of Outlook\n" * 9,
        b"<MIFFile is the first element of such a file>\n",
    ],
)
def test_text_that_begins_like_a_format_is_text(text: bytes) -> None:
    """For example, text about archives may begin with the letters that are also an archive format's signature."""
    assert detect(text).kind in (Kind.TEXT, Kind.OTHER)
    assert detect(text).mime_type in ("text/plain", "application/octet-stream")


@pytest.mark.parametrize("word", ["FORM", "MAC ", "ORC", "LinS", "!BDN", "8BPS"])
def test_legacy_text_that_begins_with_a_signature_is_text(word: str) -> None:
    """A signature alone does not outweigh a text's name and encoding."""
    detection = detect(f"{word} und größere Wörter für Äpfel und Öl.\n".encode("cp1252") * 9, None, "notes.txt")
    assert (detection.mime_type, detection.encoding, detection.mismatch) == ("text/plain", "cp1252", False)


@given(st.integers(1, 6), st.text("P0123456789 \n#\t\0\xffabc", max_size=80))
def test_numbers_after_a_pixmap_signature_never_cause_an_error(kind: int, rest: str) -> None:
    assert netpbm(f"P{kind}\n{rest}".encode("latin-1")) in (True, False)


def test_framemaker_file_is_text_of_its_own_type_unless_its_extension_differs() -> None:
    text = b"<MIFFile 9.00> # made here\n<Para <ParaLine <String `Hello'>>>\n"
    assert (detect(text).mime_type, detect(text).kind) == ("application/vnd.mif", Kind.TEXT)
    assert detect(text, None, "about mif.md").mime_type == "text/markdown"


@pytest.mark.parametrize("contents", [b"words", b"CHNK", b"", b"CHNKWKX" + bytes(5000)])
def test_contents_stream_alone_does_not_identify_a_works_document(contents: bytes) -> None:
    """Works is not the only program that writes a stream named `CONTENTS`."""
    assert BARE_DETECTOR.detect(build_compound_file({"CONTENTS": contents})).mime_type == "application/x-ole-storage"


@given(st.binary(max_size=64), st.integers(0, 2000))
def test_damaged_works_file_causes_no_detection_error(garbage: bytes, position: int) -> None:
    whole = build_compound_file({"A": bytes(700), "CONTENTS": b"CHNKWKS \4\0\10\0"})
    damaged = whole[:position] + garbage + whole[position + len(garbage) :]
    with expect_no_internal_error():
        BARE_DETECTOR.detect(damaged[: len(whole) - position])
        BARE_DETECTOR.detect(damaged)


def test_shared_extension_is_not_a_mismatch_but_a_wrong_declared_type_is() -> None:
    """Both Kingsoft Office and Works write `.wps`, and both Windows patches and Paint images use `.msp`."""
    works = next(sample.data for sample in SAMPLES if sample.name == "letter 4.wps")
    assert (detect(works, None, "a.wps").mime_type, detect(works, None, "a.wps").mismatch) == (WORKS, False)
    assert detect(works, "application/msword", "a.wps").mismatch
    assert not detect(build_compound_file({"Patch": b"p"}), None, "update.msp").mismatch


def test_xml_document_is_detected_by_its_root_element() -> None:
    """The elements `head` and `body` prove nothing. Comments and doctypes before the root element are skipped."""
    start = b"<?xml version='1.0'?><!DOCTYPE a><!-- <html> -->\n"
    assert detect(start + b"<a><head/><body/></a>").mime_type == "application/xml"
    assert detect(start + b"<html><body/></html>").mime_type == "text/html"
    assert detect(start + b"<x:svg xmlns:x='http://www.w3.org/2000/svg'/>").mime_type == "image/svg+xml"
    assert detect(b"<!--" + b"-->" * 20_000).kind is Kind.TEXT


@pytest.mark.parametrize(
    "declared", ["image/png", "audio/mpeg", "application/zip", "application/pdf", "application/msword"]
)
@pytest.mark.parametrize("text", [b"just words\n", ZH.encode(), ZH.encode("gbk"), ZH.encode("utf-16-le")])
def test_valid_text_overrides_a_declared_media_archive_or_office_type(declared: str, text: bytes) -> None:
    """Media, archives and Office files are never valid text."""
    detection = detect(text, declared)
    assert (detection.mime_type, detection.kind, detection.mismatch) == ("text/plain", Kind.TEXT, True)


@pytest.mark.parametrize(
    ("name", "mime_type"),
    [
        ("page.html.j2", "text/x-jinja"),
        ("page.htm.erb", "text/x-template"),
        ("page.vue", "text/x-vue"),
        ("page.html", "text/html"),
        ("notes.md", "text/html"),
        ("index.php", "text/html"),
    ],
)
def test_template_declared_as_html_has_the_type_of_its_extension(name: str, mime_type: str) -> None:
    """Uploaders declare `text/html` for any markup, so the file name takes precedence."""
    page = b"<!doctype html><html><body><p>{{ name }}</p></body></html>"
    detection = detect(page, "text/html", name)
    assert (detection.mime_type, detection.declared_mime_type, detection.mismatch) == (mime_type, "text/html", False)


def test_text_of_an_unknown_declared_type_keeps_that_type() -> None:
    """An unknown type may be a text format, so the type is kept and the file counts as text."""
    detection = detect(b"1 2 3\n", "application/x-own-thing")
    assert (detection.mime_type, detection.kind, detection.mismatch) == ("application/x-own-thing", Kind.TEXT, False)


@pytest.mark.parametrize("declared", ["text/plain", "application/json", "text/csv", "image/svg+xml"])
def test_undecodable_bytes_declared_as_text_are_binary(declared: str) -> None:
    detection = detect(bytes(range(256)) * 4, declared)
    assert (detection.mime_type, detection.is_binary, detection.mismatch) == ("application/octet-stream", True, True)


@pytest.mark.parametrize(
    "declared", [None, "", "octet", "application/octet-stream", "Application/Octet-Stream; x=y", "a/b/c"]
)
def test_meaningless_declared_type_counts_as_not_declared(declared: str | None) -> None:
    """Without a meaningful declared type, the type depends on the file extension, or else on the bytes."""
    unknown = b"\x00\xfe\xff\x01" * 9
    assert detect(unknown, declared, "a.mp3").mime_type == "audio/mpeg"
    assert detect(PNG, declared, "noname").mime_type == "image/png"
    assert detect(unknown, declared).declared_mime_type is None


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ('"IMAGE/JPG"; q=1', "image/jpeg"),
        (" text/Plain;charset=gbk", "text/plain"),
        ("audio/x-wav", "audio/wav"),
        ("audio/x-m4a", "audio/mp4"),
        ("image/png, text/html", "image/png"),
        ("image/", None),
        ("../etc/passwd", None),
        ("image/png\r\nX-Evil: 1", None),
        ("a" * 300 + "/b", None),
        (7, None),
    ],
)
def test_declared_type_is_normalized_to_the_name_that_providers_use(raw: object, clean: str | None) -> None:
    assert clean_mime(raw) == clean


@given(st.one_of(st.text(), st.binary(), st.none()))
def test_normalizing_a_type_is_idempotent(raw: object) -> None:
    cleaned = clean_mime(raw)
    assert cleaned is None or clean_mime(cleaned) == cleaned


def test_every_type_in_the_tables_is_normalized_and_has_one_kind() -> None:
    names = [*ALIASES.values(), *EXTENSIONS_OF_MIME, *(row.mime for row in SIGNATURES)]
    assert [name for name in names if clean_mime(name) != name] == []
    assert not UNDECLARED & set(ALIASES)
    assert [name for name in names if is_text_mime(name) and is_binary_mime(name)] == []
    assert [
        mime for mime, extensions in EXTENSIONS_OF_MIME.items() if filename_mime(f"a.{extensions.split()[0]}") != mime
    ] == []


def test_text_formats_outside_of_text_types_are_text() -> None:
    """Their MIME types neither begin with `text/` nor end like one of JSON, XML or YAML."""
    for mime in ("application/yaml", "application/sql", "application/toml", "application/x-ndjson", "message/rfc822"):
        assert is_text_mime(mime), mime
    for mime in ("application/rtf", "application/pdf", "application/octet-stream"):
        assert not is_text_mime(mime), mime


def test_svg_is_text_and_rtf_is_a_document() -> None:
    """Models can read SVG as text, but not RTF's markup."""
    assert (detect(SVG, "image/svg+xml").kind, detect(SVG).mime_type) == (Kind.TEXT, "image/svg+xml")
    assert detect(b"{\\rtf1 x}", "text/plain").kind is Kind.DOCUMENT
    assert mime_kind("application/vnd.ms-excel") is Kind.DOCUMENT


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"{\\rtf1\\ansi x}", Kind.DOCUMENT),
        (b"{\\rtf\\ansi x}", Kind.DOCUMENT),
        (b"{\\rtf}", Kind.DOCUMENT),
        (b"{\\rtf is how such a file begins", Kind.TEXT),
        (b"{\\rtf", Kind.TEXT),
    ],
)
def test_rtf_signature_must_be_followed_by_a_version_control_word_or_brace(data: bytes, kind: Kind) -> None:
    assert detect(data).kind is kind


@pytest.mark.parametrize(
    ("layer", "sizes"), [(b"\xff", (312, 316)), (b"\xfd", (522, 523)), (b"\xfb", (417, 418))], ids=["I", "II", "III"]
)
def test_mp3_frame_with_padding_is_longer(layer: bytes, sizes: tuple[int, int]) -> None:
    """Padding adds four bytes in layer I and one byte in the other layers (ISO 11172-3, 2.4.3.1)."""
    assert (mp3_frame(b"\xff" + layer + b"\x90\0"), mp3_frame(b"\xff" + layer + b"\x92\0")) == sizes


@pytest.mark.parametrize("before", [b"\n\n", b"\xef\xbb\xbf", b"\r\n \t"])
@pytest.mark.parametrize("declared", ["application/pdf", "text/plain", None])
def test_pdf_may_begin_with_blank_lines_or_a_bom(before: bytes, declared: str | None) -> None:
    """PDF readers search the first 1024 bytes for the header."""
    detection = detector().detect(before + b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n", None, declared)
    assert (detection.mime_type, detection.kind) == ("application/pdf", Kind.DOCUMENT)


def test_truncated_container_keeps_its_declared_type() -> None:
    """A truncated Office file has no directory that could prove its type."""
    cut = docx("x" * 50)[:60]
    kind = f"{OOXML}wordprocessingml.document"
    assert (detect(cut, kind).mime_type, detect(cut, kind).mismatch) == (kind, False)


JAR = build_zip({"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n", "a/B.class": b"\xca\xfe\xba\xbe" * 99})


def zip_streamed(entries: dict[str, bytes]) -> bytes:
    """Build a zip archive as it is written to a pipe, with each part's length after the part."""
    written = bytearray()

    class Pipe(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: bytes) -> int:
            written.extend(data)
            return len(data)

    with zipfile.ZipFile(Pipe(), "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return bytes(written)


def zip_uncompressed(entries: dict[str, bytes]) -> bytes:
    return package(**entries)


@pytest.mark.parametrize("write", [build_zip, zip_uncompressed, zip_streamed])
def test_zip_that_contains_a_jar_is_a_zip(write: Callable[[dict[str, bytes]], bytes]) -> None:
    """A zip truncated anywhere must not be detected as a jar, although it contains the nested jar's entry names."""
    whole = write({"readme.txt": b"words", "lib/tool.jar": JAR, "notes.txt": b"more words"})
    assert {BARE_DETECTOR.detect(whole[:end]).mime_type for end in range(40, len(whole) + 1)} == {"application/zip"}


@pytest.mark.parametrize("write", [zip_uncompressed, zip_streamed])
def test_truncated_jar_is_detected_by_the_names_of_its_entries(write: Callable[[dict[str, bytes]], bytes]) -> None:
    whole = write({"a/B.class": JAR, "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n", "c": b"c"})
    assert BARE_DETECTOR.detect(whole[: whole.rindex(b"PK\1\2")]).mime_type == "application/java-archive"


@pytest.mark.parametrize("data", [b"<page/>", b"<sl:document/>", b"<x:document xmlns:x='urn:x'>", b"\0\xff" * 50, b""])
def test_zip_with_an_unrelated_index_xml_is_a_zip(data: bytes) -> None:
    """A zip is an Apple document only if the root element of `index.xml` is in one of Apple's XML namespaces."""
    assert BARE_DETECTOR.detect(build_zip({"index.xml": data})).mime_type == "application/zip"


def test_damaged_part_of_an_apple_document_causes_no_error() -> None:
    """If the document's XML is damaged, only the part names determine the type."""
    whole = next(sample.data for sample in SAMPLES if sample.name == "sums 09.numbers")
    start = whole.index(b"index.xml") + 9
    damaged = whole[:start] + b"\xff" * 20 + whole[start + 20 :]
    with expect_no_internal_error():
        assert BARE_DETECTOR.detect(damaged).mime_type == "application/zip"


@pytest.mark.parametrize("subtype", ["presentationml.slideshow", "presentationml.template"])
def test_template_and_slide_show_keep_their_declared_types(subtype: str) -> None:
    """Templates and slide shows have the same parts as a presentation, so the declared type is no mismatch."""
    detection = detect(pptx("x"), f"{OOXML}{subtype}", "a.ppsx")
    assert (detection.mime_type, detection.mismatch) == (f"{OOXML}{subtype}", False)
    assert detect(docx("x"), f"{OOXML}{subtype}").mismatch


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("letter.docx", "application/vnd.ms-word.document.macroenabled.12"),
        ("letter.docx", "application/vnd.ms-word.template.macroenabled.12"),
        ("sums.xlsx", "application/vnd.ms-excel.sheet.macroenabled.12"),
        ("macro.pptm", "application/vnd.ms-powerpoint.slideshow.macroenabled.12"),
    ],
)
def test_macro_enabled_type_without_macros_is_not_a_mismatch(name: str, declared: str) -> None:
    data = next(sample.data for sample in SAMPLES if sample.name == name)
    assert (detect(data, declared).mime_type, detect(data, declared).mismatch) == (declared, False)


def test_unexpected_macros_are_a_mismatch() -> None:
    """Macros that the declared type forbids are a mismatch, and so is a binary workbook declared as XML."""
    macros = next(sample.data for sample in SAMPLES if sample.name == "macro.docm")
    assert detect(macros, f"{OOXML}wordprocessingml.document").mismatch
    binary = next(sample.data for sample in SAMPLES if sample.name == "sums.xlsb")
    assert detect(binary, f"{OOXML}spreadsheetml.sheet").mismatch


@pytest.mark.parametrize(
    "first", [b"\x01vorbis" + bytes(23), b"fishead\0" + bytes(56), b"OpusHead\x01\x01" + bytes(200)]
)
def test_ogg_file_with_a_video_stream_is_a_video(first: bytes) -> None:
    video = ogg(b"\x80theora\x03\x02\x01" + bytes(32))
    assert detect(ogg(first) + video).mime_type == "video/ogg"
    assert detect(ogg(first) * 2).mime_type == "audio/ogg"


@pytest.mark.parametrize("end", [b"", b"\xff", b"\x00\xdb", b"\xff\x10"])
def test_jpeg_without_a_marker_after_the_first_segment_is_not_detected(end: bytes) -> None:
    start = b"\xff\xd8\xff\xe0\x00\x04ab"
    assert detect(start + b"\xff\xdb").mime_type == "image/jpeg"
    assert detect(start + end).mime_type != "image/jpeg"


def test_jpeg_ls_is_not_detected_as_jpeg() -> None:
    """JPEG-LS starts like JPEG, but its frame header differs, and JPEG decoders cannot read it."""
    data = next(sample.data for sample in SAMPLES if sample.name == "photo.jls")
    assert detect(data).mime_type == "image/jls"
    assert detect(data, "image/jpeg").mismatch
    assert detect(draw_picture("JPEG")).mime_type == "image/jpeg"


def test_audio_in_a_file_named_as_video_is_not_a_mismatch() -> None:
    """Audio in a video container is a mismatch only if it is declared as video."""
    sound = iso_media(b"isom", b"soun")
    assert (detect(sound, None, "a.mp4").mime_type, detect(sound, None, "a.mp4").mismatch) == ("audio/mp4", False)
    assert detect(sound, "video/mp4").mismatch


def test_declared_encoding_is_used_if_it_decodes() -> None:
    """A declared encoding that cannot decode the bytes is ignored."""
    data = "Grüße, Öl, Ärger, Straße".encode("cp1252")
    assert DETECT.detect(data, encoding="cp1250").encoding == "cp1250"
    assert DETECT.detect(ZH.encode(), encoding="ascii").encoding == "utf-8"
    assert DETECT.detect(ZH.encode(), encoding="no-such").encoding == "utf-8"


def test_preferred_language_decides_between_two_valid_encodings() -> None:
    """The test's four bytes are valid in both GB18030 and Big5."""
    ambiguous = "中文".encode("gbk")
    assert BinaryDetector(prefer="zh").detect(ambiguous).encoding == "gb18030"


def test_text_detection_examines_the_whole_file() -> None:
    """The whole text is examined.

    Even far from the beginning, NULs or invalid bytes make a file binary, and Chinese text determines the encoding.
    """
    plain = b"line of words\n" * 10_000

    def detect_whole(data: bytes) -> Detection:
        return DETECT.detect(data[:65536], len(data), "text/plain", read_at=lambda o, n: data[o : o + n])

    assert detect_whole(plain).encoding == "utf-8"
    assert detect_whole(plain + b"\0").is_binary
    assert detect_whole(plain + ZH.encode("gbk")).encoding == "gb18030"
    assert detect_whole(plain + FR.encode("latin-1")).encoding == "cp1252"
    assert detect_whole(plain + bytes(range(128, 256))).is_binary
    assert detect_whole(plain + ZH.encode()).encoding == "utf-8"


def test_encoding_is_detected_if_the_head_ends_inside_a_character() -> None:
    """Only the head of the file is passed to the detector."""
    data = ("x" + ZH * 3).encode("gbk")
    for length in (100, 101, 102, 103):
        assert DETECT.detect(data[:length], len(data)).encoding == "gb18030"


@pytest.mark.parametrize("declared", [None, "text/plain"])
def test_empty_file_is_text(declared: str | None) -> None:
    """An empty file is text, unless another type is declared."""
    assert (detect(b"", declared).kind, detect(b"", declared).mime_type) == (Kind.TEXT, "text/plain")
    assert detect(b"", "image/png").kind is Kind.IMAGE


def test_evidence_is_json_with_an_explanation_per_step() -> None:
    rows = json.loads(json.dumps(detect(pdf("x"), "image/png", "a.png").evidence_json()))
    assert [(row["step"], row["says"]) for row in rows] == [
        ("declared", "image/png"),
        ("extension", "image/png"),
        ("signature", "application/pdf"),
        ("verdict", "application/pdf"),
    ]
    assert all(row["because"] == REASONS[row["reason"]] for row in rows)


@pytest.mark.requirement("ABR-8.3")
def test_failing_sniffer_and_guesser_yield_unknown_binary() -> None:
    """If the sniffer (libmagic) and the encoding guesser fail, a declared type is kept (ABR-8.2, ABR-8.3).

    Bytes without a declared type are then unknown binary data.
    """
    with collect_errors() as faults:
        detection = FAILING.detect(b"\xff\x00\x81")
    assert (detection.mime_type, detection.kind, detection.is_binary) == ("application/octet-stream", Kind.OTHER, True)
    assert FAILING.detect(b"\xff\x00\x81", None, "image/png").kind is Kind.IMAGE
    assert {record.exc_info[0] for record in faults if record.exc_info} == {RuntimeError}


def test_text_is_decoded_if_the_encoding_guesser_fails() -> None:
    detection = FAILING.detect(ZH.encode("gb18030"))
    assert (detection.kind, detection.encoding) == (Kind.TEXT, "gb18030")
    assert "failed" not in [item.reason for item in detection.evidence]


@pytest.mark.requirement("ABR-1.2")
def test_detected_binary_types_are_the_five_non_text_kinds() -> None:
    kinds = {DETECT.detect_binary_type(sample.data, None, sample.name) for sample in SAMPLES}
    assert kinds == set(Kind) - {Kind.TEXT}
