"""A separate process extracts text, converts images and measures files. For hostile files, it returns nothing."""

from __future__ import annotations

import io
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image
from samples import SAMPLES, TYPES, be32, build_zip, docx, draw_picture, mp3, open_document, pdf, pptx, wav, xlsx

from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.extract import (
    MAX_CHARS,
    READERS,
    Facts,
    can_extract,
    convert_image,
    documents,
    extract_text,
    facts,
    inspect,
    thumbnail,
)
from artifacts.extract.process import ROOT, run
from artifacts.extract.reading import MAX_ENTRY_BYTES, RefusedError
from capabilities.core.message import Converted, ConvertTo, Inspection, Text

DOCX, XLSX, PPTX = (
    f"{OOXML}{name}" for name in ("wordprocessingml.document", "spreadsheetml.sheet", "presentationml.presentation")
)
PAGE = b"<html><head><title>T</title><style>p{}</style></head><body><p>Hi <b>you</b></p><script>x()</script><li>1<li>2"
CELL = '<table:table-cell office:value-type="string"><text:p>a</text:p></table:table-cell>'
CELLS = f"<table:table-row>{CELL}</table:table-row>"


def open_image(converted: Converted | None) -> Image.Image:
    assert converted is not None
    return Image.open(io.BytesIO(b"".join(converted.blob.blocks())))


DOCUMENTS = {
    "pdf": (pdf("Hello", "World"), "application/pdf", "[page 1]\nHello\n\n[page 2]\nWorld"),
    "docx": (docx("你好", "two", table=(("a", "b"), ("c", "d"))), DOCX, "你好\ntwo\na\tb\nc\td"),
    "xlsx": (
        xlsx({"Sums": [["x", "", "n"], ["y", "2"]], "二": [["z"]]}),
        XLSX,
        "[sheet: Sums]\nx\t\tn\ny\t2\n\n[sheet: 二]\nz",
    ),
    "pptx": (pptx("One", "Two"), PPTX, "[slide 1]\nOne\n\n[slide 2]\nTwo"),
    "odt": (
        open_document("text", "<text:h>Head</text:h><text:p>Hi<text:tab/>you</text:p>"),
        f"{ODF}text",
        "# Head\nHi\tyou",
    ),
    "ods": (
        open_document("spreadsheet", f'<table:table table:name="S">{CELLS}</table:table>'),
        f"{ODF}spreadsheet",
        "[sheet: S]\na",
    ),
    "html": (PAGE, "text/html", "T\nHi you\n- 1\n- 2"),
}


@pytest.mark.parametrize("source", DOCUMENTS)
def test_document_text_has_markers_for_pages_sheets_and_slides(write_file, source: str) -> None:
    data, mime, text = DOCUMENTS[source]
    assert extract_text(write_file(data), mime) == Text(text, source, "")


def test_long_text_is_truncated_with_a_note(write_file) -> None:
    extracted = extract_text(write_file(pdf(*["Hello world"] * 9)), "application/pdf", max_chars=30)
    assert extracted == Text(extracted.text, "pdf", "[truncated: pages 1-2 of 9]", 1 / 9)
    assert len(extracted.text) <= 30


@pytest.mark.parametrize("mime", ["image/png", "application/x-7z-compressed", "application/vnd.visio"])
def test_unsupported_type_has_no_text(write_file, mime: str) -> None:
    assert extract_text(write_file(b"x"), mime) is None
    assert not can_extract(mime)


@pytest.mark.parametrize("name", ["TIFF", "BMP", "AVIF", "GIF", "PNG", "JPEG", "WEBP"])
def test_image_is_converted_to_an_accepted_type_and_size(write_file, name: str) -> None:
    converted = convert_image(
        write_file(draw_picture(name, (300, 200))), ConvertTo(("image/png", "image/jpeg"), None, 100)
    )
    image = open_image(converted)
    assert (image.format, image.size) == ({"image/png": "PNG", "image/jpeg": "JPEG"}[converted.mime_type], (100, 67))
    assert (converted.width, converted.height) == image.size


def test_converted_image_respects_its_size_limit(write_file) -> None:
    """The image's quality is reduced first, then its size."""
    path = write_file(draw_picture("BMP", (600, 400)))
    converted = convert_image(path, ConvertTo(("image/jpeg",), 20_000))
    assert converted.blob.size <= 20_000
    assert open_image(converted).format == "JPEG"
    assert convert_image(path, ConvertTo(("image/png",), 50)) is None
    assert convert_image(path, ConvertTo(("image/heic",))) is None


def test_rotated_photograph_is_upright_and_without_metadata(write_file) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "secret place"
    converted = convert_image(write_file(draw_picture("JPEG", (60, 40), exif=exif)), ConvertTo(("image/jpeg",)))
    assert open_image(converted).size == (40, 60)
    assert b"secret" not in b"".join(converted.blob.blocks())


def test_thumbnail_is_a_small_png(write_file) -> None:
    image = Image.open(io.BytesIO(thumbnail(write_file(draw_picture("JPEG", (800, 400)))) or b""))
    assert (image.format, image.size) == ("PNG", (256, 128))
    assert thumbnail(write_file(b"no image")) is None


def test_pages_duration_dimensions_and_encryption_are_measured(write_file) -> None:
    assert facts(write_file(pdf("a", "b")), "application/pdf") == Facts(pages=2, encrypted=False)
    assert facts(write_file(wav(1.5)), "audio/wav") == Facts(seconds=1.5)
    assert facts(write_file(mp3(50)), "audio/mpeg").seconds == pytest.approx(1.306, abs=0.1)
    assert facts(write_file(draw_picture("PNG", (5, 7))), "image/png") == Facts(width=5, height=7)
    assert facts(write_file(b"x"), "application/x-7z-compressed") == Facts()


def encrypted_pdf() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(PdfReader(io.BytesIO(pdf("secret"))))
    writer.encrypt("password", algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def test_encrypted_document_has_no_text_and_is_reported(write_file) -> None:
    path = write_file(encrypted_pdf())
    assert extract_text(path, "application/pdf") is None
    assert facts(path, "application/pdf") == Facts(encrypted=True)
    assert inspect(path, "application/pdf") == Inspection(locked=True)


def test_duration_and_encryption_of_a_recording_are_measured(write_file) -> None:
    """A recording's duration and encryption must be known before a model is called with it."""
    assert inspect(write_file(wav(1.5)), "audio/wav") == Inspection(seconds=1.5)
    assert inspect(write_file(b"x"), "video/mp4") == Inspection()


def pixel_bomb() -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return be32(len(data)) + name + data + be32(zlib.crc32(name + data))

    head = chunk(b"IHDR", be32(60_000) * 2 + b"\x08\x02\0\0\0")
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(9000))) + chunk(b"IEND", b"")


def zip_bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package, package.open("word/document.xml", "w") as entry:
        entry.write(b"<w:document xmlns:w='w'><w:body>")
        for _ in range(MAX_ENTRY_BYTES >> 20):
            entry.write(b" " * (1 << 20))
    return buffer.getvalue()


BILLION_LAUGHS = b'<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><d><p><t>&b;</t></p></d>'
EXTERNAL = b'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><d><p><t>&x;</t></p></d>'


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        # This file is built in the test instead of on import, since compressing it takes a while.
        (zip_bomb, DOCX),
        (build_zip({"[Content_Types].xml": TYPES, "word/document.xml": BILLION_LAUGHS}), DOCX),
        (build_zip({"[Content_Types].xml": TYPES, "word/document.xml": EXTERNAL}), DOCX),
        (docx("x")[:200], DOCX),
        (pdf("x")[:100], "application/pdf"),
        (b"", "application/pdf"),
        (build_zip({"content.xml": b"<" * 5000}), f"{ODF}text"),
        (build_zip({f"{n}": b"" for n in range(6000)}), XLSX),
    ],
    ids=["zip bomb", "billion laughs", "external entity", "cut docx", "cut pdf", "empty", "broken xml", "many entries"],
)
def test_bomb_or_damaged_file_yields_none_within_seconds(
    write_file, data: bytes | Callable[[], bytes], mime: str
) -> None:
    file = write_file(data if isinstance(data, bytes) else data())
    started = time.monotonic()
    assert extract_text(file, mime) is None
    assert time.monotonic() - started < 20


def test_gigapixel_image_has_no_conversion_and_no_thumbnail(write_file) -> None:
    assert convert_image(write_file(pixel_bomb()), ConvertTo(("image/png",))) is None
    assert thumbnail(write_file(pixel_bomb())) is None


def test_extraction_process_is_stopped_at_its_timeout(write_file) -> None:
    result = run(write_file(pdf("x")), "text", {"reader": "pdf", "max_chars": 9}, max_output=99, timeout=0.01)
    assert (result.reason, result.payload) == ("timeout", b"")


def test_extraction_output_over_the_limit_is_rejected(write_file) -> None:
    """The parent process reads no more output than the limit allows."""
    result = run(write_file(docx("x" * 5000)), "text", {"reader": "docx", "max_chars": 9000}, max_output=100)
    assert (result.reason, result.payload) == ("too_large", b"")


def test_missing_file_or_unknown_operation_is_reported_as_failed(tmp_path: Path, write_file) -> None:
    assert run(tmp_path / "none", "text", {}, max_output=100).reason == "failed"
    assert run(write_file(b"x"), "dance", {}, max_output=100).reason == "failed"
    assert facts(tmp_path / "none", "application/pdf").reason == "failed"


CONFINED = """
import sys; sys.path.insert(0, {root!r})
from artifacts.extract.confine import confine
import socket, subprocess
confine()
import os
for attempt in (lambda: open("written", "w"), lambda: socket.socket(), lambda: subprocess.run(["true"]), os.fork):
    try:
        attempt()
        print("done")
    except PermissionError:
        print("refused")
try:
    bytearray(2 << 30)
    print("done")
except MemoryError:
    print("refused")
assert "django" not in sys.modules
"""


def test_sandboxed_process_cannot_write_connect_start_programs_or_use_all_memory(tmp_path: Path) -> None:
    """The test runs in a process that has applied these restrictions to itself."""
    code = CONFINED.format(root=str(ROOT))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    # macOS has no limit on the address space.
    expected = ["refused"] * 5 if sys.platform == "linux" else ["refused"] * 4
    assert result.stdout.split()[: len(expected)] == expected
    assert not (tmp_path / "written").exists()


def test_every_office_sample_yields_text_or_none(write_file) -> None:
    samples = [sample for sample in SAMPLES if can_extract(sample.mime)]
    for sample in samples:
        with suppress(RefusedError):
            _, text = documents.answer(
                io.BytesIO(sample.data), {"reader": READERS[sample.mime], "max_chars": MAX_CHARS}
            )
            assert text.strip(), sample.name
    # Starting processes takes most of the time, so only one sample for each reader without a document in `DOCUMENTS`
    # gets its own process.
    for sample in {
        READERS[sample.mime]: sample for sample in samples if READERS[sample.mime] not in DOCUMENTS
    }.values():
        extracted = extract_text(write_file(sample.data), sample.mime)
        assert extracted is None or extracted.text.strip()
