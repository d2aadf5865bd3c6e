"""Text, conversions and facts are extracted in a separate process; bombs and damaged files yield nothing."""

from __future__ import annotations

import io
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

import pytest
from PIL import Image
from samples import SAMPLES, TYPES, be32, docx, mp3, open_document, pdf, picture, pptx, wav, xlsx, zip_of

from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.extract import Facts, can_extract, convert_image, extract_text, facts, inspect, thumbnail
from artifacts.extract.process import ROOT, run
from capabilities.core.message import Converted, ConvertTo, Inspection, Text

DOCX, XLSX, PPTX = (
    f"{OOXML}{name}" for name in ("wordprocessingml.document", "spreadsheetml.sheet", "presentationml.presentation")
)
PAGE = b"<html><head><title>T</title><style>p{}</style></head><body><p>Hi <b>you</b></p><script>x()</script><li>1<li>2"
CELL = '<table:table-cell office:value-type="string"><text:p>a</text:p></table:table-cell>'
CELLS = f"<table:table-row>{CELL}</table:table-row>"


def image_of(converted: Converted | None) -> Image.Image:
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
        "Head\nHi\tyou",
    ),
    "ods": (
        open_document("spreadsheet", f'<table:table table:name="S">{CELLS}</table:table>'),
        f"{ODF}spreadsheet",
        "[sheet: S]\na",
    ),
    "html": (PAGE, "text/html", "T\nHi you\n1\n2"),
}


@pytest.mark.parametrize("source", DOCUMENTS)
def test_a_document_becomes_text_with_marks(kept, source: str) -> None:
    """Pages, sheets and slides are marked, cells separated by tabs, scripts and styles omitted."""
    data, mime, text = DOCUMENTS[source]
    assert extract_text(kept(data), mime) == Text(text, source, "")


def test_long_text_is_cut_and_the_note_says_where(kept) -> None:
    """The note `[truncated: pages 1-2 of 9]` gives the part that was read."""
    found = extract_text(kept(pdf(*["Hello world"] * 9)), "application/pdf", max_chars=30)
    assert found == Text(found.text, "pdf", "[truncated: pages 1-2 of 9]", 1 / 9)
    assert len(found.text) <= 30


@pytest.mark.parametrize("mime", ["image/png", "application/x-7z-compressed", "application/vnd.visio"])
def test_a_type_without_a_reader_has_no_text(kept, mime: str) -> None:
    """No process is started."""
    assert extract_text(kept(b"x"), mime) is None
    assert not can_extract(mime)


@pytest.mark.parametrize("name", ["TIFF", "BMP", "AVIF", "GIF", "PNG", "JPEG", "WEBP"])
def test_an_image_is_converted_to_what_a_model_takes(kept, name: str) -> None:
    """The result is PNG or JPEG within the maximum side, with its true size."""
    converted = convert_image(kept(picture(name, (300, 200))), ConvertTo(("image/png", "image/jpeg"), None, 100))
    image = image_of(converted)
    assert (image.format, image.size) == ({"image/png": "PNG", "image/jpeg": "JPEG"}[converted.mime_type], (100, 67))
    assert (converted.width, converted.height) == image.size


def test_a_converted_image_keeps_within_its_bytes(kept) -> None:
    """Quality is reduced first, then the size; if nothing fits, the result is None."""
    path = kept(picture("BMP", (600, 400)))
    converted = convert_image(path, ConvertTo(("image/jpeg",), 20_000))
    assert converted.blob.size <= 20_000
    assert image_of(converted).format == "JPEG"
    assert convert_image(path, ConvertTo(("image/png",), 50)) is None
    assert convert_image(path, ConvertTo(("image/heic",))) is None


def test_a_turned_photograph_is_upright_and_without_metadata(kept) -> None:
    """EXIF orientation 6 is applied, then all metadata are removed."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "secret place"
    converted = convert_image(kept(picture("JPEG", (60, 40), exif=exif)), ConvertTo(("image/jpeg",)))
    assert image_of(converted).size == (40, 60)
    assert b"secret" not in b"".join(converted.blob.blocks())


def test_a_thumbnail_is_a_small_png(kept) -> None:
    """At most 256 pixels per side."""
    image = Image.open(io.BytesIO(thumbnail(kept(picture("JPEG", (800, 400)))) or b""))
    assert (image.format, image.size) == ("PNG", (256, 128))
    assert thumbnail(kept(b"no image")) is None


def test_facts_are_measured(kept) -> None:
    """Pages and encryption of a PDF, seconds of audio, pixels of an image."""
    assert facts(kept(pdf("a", "b")), "application/pdf") == Facts(pages=2, encrypted=False)
    assert facts(kept(wav(1.5)), "audio/wav") == Facts(seconds=1.5)
    assert facts(kept(mp3(50)), "audio/mpeg").seconds == pytest.approx(1.306, abs=0.1)
    assert facts(kept(picture("PNG", (5, 7))), "image/png") == Facts(width=5, height=7)
    assert facts(kept(b"x"), "application/zip") == Facts()


def encrypted_pdf() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(PdfReader(io.BytesIO(pdf("secret"))))
    writer.encrypt("password", algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def test_an_encrypted_document_says_so_and_gives_nothing(kept) -> None:
    """An encrypted PDF has no text; the facts say that it is encrypted."""
    path = kept(encrypted_pdf())
    assert extract_text(path, "application/pdf") is None
    assert facts(path, "application/pdf") == Facts(encrypted=True)
    assert inspect(path, "application/pdf") == Inspection(locked=True)


def test_a_recording_is_measured_and_is_not_locked(kept) -> None:
    """Duration and encryption must be known before a model is called with the file."""
    assert inspect(kept(wav(1.5)), "audio/wav") == Inspection(seconds=1.5)
    assert inspect(kept(b"x"), "video/mp4") == Inspection()


def pixel_bomb() -> bytes:
    """Build a PNG of a few hundred bytes that declares 60,000 pixels per side."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return be32(len(data)) + name + data + be32(zlib.crc32(name + data))

    head = chunk(b"IHDR", be32(60_000) * 2 + b"\x08\x02\0\0\0")
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(9000))) + chunk(b"IEND", b"")


def zip_bomb() -> bytes:
    """Build a docx whose document unpacks to 200 MB of spaces."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package, package.open("word/document.xml", "w") as entry:
        entry.write(b"<w:document xmlns:w='w'><w:body>")
        for _ in range(200):
            entry.write(b" " * (1 << 20))
    return buffer.getvalue()


LAUGHS = b'<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><d><p><t>&b;</t></p></d>'
EXTERNAL = b'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><d><p><t>&x;</t></p></d>'


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (zip_bomb(), DOCX),
        (zip_of({"[Content_Types].xml": TYPES, "word/document.xml": LAUGHS}), DOCX),
        (zip_of({"[Content_Types].xml": TYPES, "word/document.xml": EXTERNAL}), DOCX),
        (docx("x")[:200], DOCX),
        (pdf("x")[:100], "application/pdf"),
        (b"", "application/pdf"),
        (zip_of({"content.xml": b"<" * 5000}), f"{ODF}text"),
        (zip_of({f"{n}": b"" for n in range(6000)}), XLSX),
    ],
    ids=["zip bomb", "billion laughs", "external entity", "cut docx", "cut pdf", "empty", "broken xml", "many entries"],
)
def test_a_bomb_or_damage_gives_nothing_soon(kept, data: bytes, mime: str) -> None:
    """The result is None within seconds, without an exception."""
    began = time.monotonic()
    assert extract_text(kept(data), mime) is None
    assert time.monotonic() - began < 20


def test_a_pixel_bomb_is_not_unpacked(kept) -> None:
    """An image that declares 3.6 gigapixels is neither converted nor given a thumbnail."""
    assert convert_image(kept(pixel_bomb()), ConvertTo(("image/png",))) is None
    assert thumbnail(kept(pixel_bomb())) is None


def test_a_process_that_takes_too_long_is_stopped(kept) -> None:
    result = run(kept(pdf("x")), "text", {"reader": "pdf", "max_chars": 9}, max_output=99, timeout=0.01)
    assert (result.reason, result.payload) == ("timeout", b"")


def test_an_answer_over_the_cap_is_not_taken(kept) -> None:
    """The parent process reads no more than the limit."""
    result = run(kept(docx("x" * 5000)), "text", {"reader": "docx", "max_chars": 9000}, max_output=100)
    assert (result.reason, result.payload) == ("too_large", b"")


def test_a_file_that_is_not_there_or_an_unknown_operation_is_an_answer(tmp_path: Path, kept) -> None:
    """No exception is raised."""
    assert run(tmp_path / "none", "text", {}, max_output=100).reason == "failed"
    assert run(kept(b"x"), "dance", {}, max_output=100).reason == "failed"
    assert facts(tmp_path / "none", "application/pdf").reason == "failed"


CONFINED = """
import sys; sys.path.insert(0, {root!r})
from artifacts.extract.confine import confine
import socket, subprocess
confine()
import os
for act in (lambda: open("written", "w"), lambda: socket.socket(), lambda: subprocess.run(["true"]), os.fork):
    try:
        act()
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


def test_the_process_cannot_write_connect_start_programs_or_take_all_memory(tmp_path: Path) -> None:
    """Each limit is tested in a process that has applied it."""
    code = CONFINED.format(root=str(ROOT))
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    # macOS has no limit on the address space.
    expected = ["refused"] * 5 if sys.platform == "linux" else ["refused"] * 4
    assert answer.stdout.split()[: len(expected)] == expected
    assert not (tmp_path / "written").exists()


def test_every_office_sample_is_answered(kept) -> None:
    for sample in SAMPLES:
        if can_extract(sample.mime):
            found = extract_text(kept(sample.data), sample.mime)
            assert found is None or found.text.strip()
