"""Small sample files in many formats.

All are generated, by the programs that `made_samples` names or by this package, which uses the standard library, Pillow
or the format's published structure. A synthetic header contains the part of a file that detection reads. Nothing was
copied, so no licence applies.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import struct
import tarfile
import wave
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image

from artifacts.core.detection.extensions import ODF, OOXML
from capabilities.core.vocabulary import Kind
from tests.artifacts import made_samples, text_samples
from tests.artifacts.compound_files import doc, msg, ppt, xls, xlsb_parts
from tests.artifacts.head_samples import EXTRA_TEXT_SAMPLES, HEADS, extra_text_samples
from tests.artifacts.rare_samples import BARE_TYPES, RARE


@dataclass(frozen=True)
class Sample:
    """A file, and the type, kind and encoding that are detected without a declared type.

    `made` says how the file was made. `bare` is the type detected without the name, if the name makes the type more
    specific.
    """

    name: str
    data: bytes
    mime: str
    kind: Kind
    encoding: str | None = None
    made: str = "by hand"
    bare: str | None = None

    @property
    def is_binary(self) -> bool:
        return self.kind is not Kind.TEXT


def be16(n: int) -> bytes:
    return struct.pack(">H", n)


def be32(n: int) -> bytes:
    return struct.pack(">I", n)


def le16(n: int) -> bytes:
    return struct.pack("<H", n)


def le32(n: int) -> bytes:
    return struct.pack("<I", n)


def draw_picture(name: str, size: tuple[int, int] = (12, 8), mode: str = "RGB", **options: object) -> bytes:
    image = Image.effect_noise(size, 60).convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


def build_zip(entries: dict[str, bytes], stored_first: bool = False) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        for index, (name, data) in enumerate(entries.items()):
            package.writestr(
                zipfile.ZipInfo(name),
                data,
                compress_type=zipfile.ZIP_STORED if stored_first and index == 0 else zipfile.ZIP_DEFLATED,
            )
    return buffer.getvalue()


TYPES = b'<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(*paragraphs: str, table: tuple[tuple[str, ...], ...] = ()) -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    rows = "".join(
        "<w:tr>" + "".join(f"<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>" for cell in row) + "</w:tr>"
        for row in table
    )
    xml = f'<w:document xmlns:w="{W}"><w:body>{body}<w:tbl>{rows}</w:tbl></w:body></w:document>'
    return build_zip({"[Content_Types].xml": TYPES, "_rels/.rels": TYPES, "word/document.xml": xml.encode()})


RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def relations_xml(targets: dict[str, tuple[str, str]]) -> bytes:
    listed = "".join(
        f'<Relationship Id="{key}" Type="{RELATIONS}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{package}">{listed}</Relationships>'.encode()


def sheet_xml(rows: str) -> bytes:
    return f"<worksheet><sheetData>{rows}</sheetData></worksheet>".encode()


def xlsx_from_rows(rows: str) -> bytes:
    """Build a workbook with the sheet `S`. Styles 1, 2 and 3 are a date, a date with time, and a duration."""
    with zipfile.ZipFile(io.BytesIO(xlsx({"S": []}))) as package:
        entries = {name: package.read(name) for name in package.namelist()}
    return build_zip({**entries, "xl/worksheets/sheet1.xml": sheet_xml(rows)})


def xlsb(text: str) -> bytes:
    first = {"rId1": ("officeDocument", "xl/workbook.bin")}
    sheets = {"rId1": ("worksheet", "worksheets/sheet1.bin")}
    parts = {"_rels/.rels": relations_xml(first), "xl/_rels/workbook.bin.rels": relations_xml(sheets)}
    return build_zip({"[Content_Types].xml": TYPES, **parts, **xlsb_parts(text)})


def xlsx(sheets: dict[str, list[list[str]]], hidden: str = "") -> bytes:
    shared = [cell for rows in sheets.values() for row in rows for cell in row if not cell.isdigit()]
    entries = {
        "[Content_Types].xml": TYPES,
        "_rels/.rels": relations_xml({"rId1": ("officeDocument", "xl/workbook.xml")}),
    }
    listed, relations = "", {}
    for number, (title, rows) in enumerate(sheets.items(), 1):
        state = 'state="hidden" ' if title == hidden else ""
        listed += f'<sheet name="{title}" {state}sheetId="{number}" r:id="rId{number}"/>'
        relations[f"rId{number}"] = ("worksheet", f"worksheets/sheet{number}.xml")
        lines = ""
        for y, row in enumerate(rows, 1):
            cells = "".join(
                f'<c r="{chr(65 + x)}{y}"><v>{cell}</v></c>'
                if cell.isdigit()
                else f'<c r="{chr(65 + x)}{y}" t="s"><v>{shared.index(cell)}</v></c>'
                for x, cell in enumerate(row)
                if cell
            )
            lines += f'<row r="{y}">{cells}</row>'
        entries[f"xl/worksheets/sheet{number}.xml"] = sheet_xml(lines)
    relations["rIdS"] = ("sharedStrings", "sharedStrings.xml")
    relations["rIdY"] = ("styles", "styles.xml")
    entries["xl/workbook.xml"] = f'<workbook xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>'.encode()
    entries["xl/_rels/workbook.xml.rels"] = relations_xml(relations)
    strings = "".join(f"<si><t>{text}</t></si>" for text in shared)
    entries["xl/sharedStrings.xml"] = f"<sst>{strings}</sst>".encode()
    entries["xl/styles.xml"] = (
        b'<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="46"/></cellXfs>'
        b"</styleSheet>"
    )
    return build_zip(entries)


def pptx(*slides: str) -> bytes:
    entries = {"[Content_Types].xml": TYPES, "ppt/presentation.xml": b"<p/>"}
    for number, text in enumerate(slides, 1):
        entries[f"ppt/slides/slide{number}.xml"] = (
            f'<p:sld xmlns:p="urn:p" xmlns:a="urn:a"><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>'.encode()
        )
    return build_zip(entries)


def notebook() -> bytes:
    printed = [
        {"output_type": "stream", "text": ["\x1b[31m1\x1b[0m\n"]},
        {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}},
        {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero"},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": "print(1)\n1/0", "outputs": printed},
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def open_document(kind: str, content: str = "<text:p>Hello</text:p>") -> bytes:
    names = "urn:oasis:names:tc:opendocument:xmlns:"
    prefixes = " ".join(f'xmlns:{name}="{names}{name}:1.0"' for name in ("office", "text", "table"))
    body = f"<office:body><office:{kind}>{content}</office:{kind}></office:body>"
    xml = f'<office:document-content {prefixes} xmlns:draw="{names}drawing:1.0">{body}</office:document-content>'
    manifest = f'<manifest:manifest xmlns:manifest="{names}manifest:1.0"/>'.encode()
    entries = {"mimetype": f"{ODF}{kind}".encode(), "content.xml": xml.encode(), "META-INF/manifest.xml": manifest}
    return build_zip(entries, stored_first=True)


def pdf(*pages: str) -> bytes:
    count = len(pages)
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(count))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {count}>>".encode()]
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for index, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % (5 + 2 * index)
        )
        objects.append(b"<</Length %d>>\nstream\n" % len(stream) + stream + b"\nendstream")
    out, offsets = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table
    return out + end + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))


def wav(seconds: float = 0.1) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(int(8000 * seconds) * 2))
    return buffer.getvalue()


def mp3(frames: int = 4, tag: bool = False) -> bytes:
    sound = (b"\xff\xfb\x90\x00" + bytes(413)) * frames
    return (b"ID3\x03\0\0\0\0\0\x0a" + bytes(10) if tag else b"") + sound


def box(name: bytes, *content: bytes) -> bytes:
    inner = b"".join(content)
    return be32(8 + len(inner)) + name + inner


def iso_media(brand: bytes, *tracks: bytes, compatible: bytes = b"") -> bytes:
    # In `hdlr`, the version, flags and pre_defined fields (8 bytes) precede the handler type.
    traks = [box(b"trak", box(b"mdia", box(b"hdlr", bytes(8), track, bytes(12), b"\0"))) for track in tracks]
    head = box(b"ftyp", brand, be32(0), brand + compatible)
    return head + (box(b"moov", box(b"mvhd", bytes(100)), *traks) if tracks else b"") + box(b"mdat", bytes(range(256)))


def ebml(doctype: bytes, *kinds: int) -> bytes:
    inner = b"\x42\x82" + bytes([0x80 | len(doctype)]) + doctype
    head = b"\x1a\x45\xdf\xa3" + bytes([0x80 | len(inner)]) + inner
    entries = b"".join(b"\xae\x86" + b"\xd7\x81\x01" + b"\x83\x81" + bytes([kind]) for kind in kinds)
    tracks = b"\x16\x54\xae\x6b" + bytes([0x80 | len(entries)]) + entries
    return head + b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff" + tracks + bytes(64)


def ogg(packet: bytes) -> bytes:
    return b"OggS\0\x02" + bytes(8) + be32(1) + bytes(8) + b"\x01" + bytes([len(packet)]) + packet


def riff(brand: bytes, *chunks: bytes) -> bytes:
    body = brand + b"".join(chunks)
    return b"RIFF" + le32(len(body)) + body


def flac() -> bytes:
    info = be16(4096) + be16(4096) + bytes(6) + struct.pack(">Q", 44100 << 44 | 15 << 36 | 44100) + bytes(16)
    return b"fLaC\x80\0\0\x22" + info + b"\xff\xf8\xc9\x18" + bytes(60)


def asf(stream: str) -> bytes:
    head = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
    return head + struct.pack("<QI", 80, 1) + b"\x01\x02" + bytes(24) + bytes.fromhex(stream) + bytes(60)


def ole2(*streams: str) -> bytes:
    """Build a compound file with a header, one allocation sector and directory sectors, as defined in MS-CFB."""
    names = ("Root Entry", *streams)
    sectors = -(-len(names) // 4)
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + le16(0x3E) + le16(3) + b"\xfe\xff" + le16(9) + le16(6)
    header += bytes(10) + le32(1) + le32(1) + le32(0) + le32(4096) + le32(0xFFFFFFFE) + le32(0) + le32(0xFFFFFFFE)
    header += le32(0) + le32(0) + b"\xff\xff\xff\xff" * 108
    chain = [0xFFFFFFFD, *range(2, sectors + 1), 0xFFFFFFFE]
    table = b"".join(map(le32, chain)).ljust(512, b"\xff")
    directory = b""
    for index, name in enumerate(names):
        raw = name.encode("utf-16-le") + b"\0\0"
        directory += raw.ljust(64, b"\0") + le16(len(raw)) + bytes([2 if index else 5]) + bytes(61)
    return header + table + directory.ljust(512 * sectors, b"\0") + bytes(512)


def build_tar(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def sqlite() -> bytes:
    database = sqlite3.connect(":memory:")
    database.execute("create table t (a)")
    return database.serialize()


def elf() -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + le16(2) + le16(62) + le32(1) + bytes(40)


def executable() -> bytes:
    return b"MZ" + bytes(58) + le32(64) + b"PE\0\0\x64\x86" + bytes(200)


def font(magic: bytes) -> bytes:
    return magic + be16(4) + be16(64) + be16(2) + be16(0) + b"cmap" + bytes(60)


def psd() -> bytes:
    return b"8BPS\0\x01" + bytes(6) + be16(3) + be32(20) + be32(30) + be16(8) + be16(3) + bytes(16)


ZH = "这是一个用来检测编码的文件。\n第二行：苹果、香蕉和梨，价格十元。\n"
TW = "這是一個用來偵測編碼的檔案。\n第二行：蘋果、香蕉和梨，價格十元。\n"
JA = "これは文字コードを調べるためのファイルです。\n二行目も日本語で書かれています。\n"
KO = "이것은 문자 인코딩을 확인하기 위한 파일입니다.\n두 번째 줄도 한국어로 쓰여 있습니다.\n"
RU = "Это файл для проверки кодировки.\nВторая строка: яблоки, бананы и груши, цена десять рублей.\n"
TR = "Bu dosya karakter kodlamasını denetlemek için yazıldı.\nİkinci satır: elma, üzüm ve şeftali, ağaç.\n"
CS = "Příliš žluťoučký kůň úpěl ďábelské ódy.\n"
EL = "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.\n"
HE = "דג סקרן שט בים מאוכזב ולפתע מצא חברה.\n"
AR = "هذا نص لاختبار الترميز في الملفات.\n"
LT = "Ąžuolų šešėlyje žydėjo gėlės, o paukščiai čiulbėjo.\n"
TH = "ภาษาไทยเป็นภาษาที่ใช้ในการทดสอบ\n"
FR = "Été à la plage : garçon, naïve, forêt.\n"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="4" height="4"/></svg>\n'
IMAGE, AUDIO, VIDEO, DOCUMENT, OTHER = Kind.IMAGE, Kind.AUDIO, Kind.VIDEO, Kind.DOCUMENT, Kind.OTHER
PIL, STD = "Pillow", "standard library"

MHT = (
    b"Subject: A page\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/related; type="text/html"; boundary="b"\r\n\r\n'
    b"--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    b"<p>Caf=C3=A9</p>\r\n--b\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n"
    b"Content-Location: https://example.com/a.png\r\n\r\niVBORw0KGgo=\r\n--b--\r\n"
)

SAMPLE_MAKERS: tuple[tuple[str, Callable[[], bytes], str, Kind, str], ...] = (
    ("photo.png", lambda: draw_picture("PNG"), "image/png", IMAGE, PIL),
    ("photo.jpg", lambda: draw_picture("JPEG"), "image/jpeg", IMAGE, PIL),
    ("photo.gif", lambda: draw_picture("GIF", mode="P"), "image/gif", IMAGE, PIL),
    ("photo.webp", lambda: draw_picture("WEBP"), "image/webp", IMAGE, PIL),
    ("lossless.webp", lambda: draw_picture("WEBP", lossless=True), "image/webp", IMAGE, PIL),
    ("photo.bmp", lambda: draw_picture("BMP"), "image/bmp", IMAGE, PIL),
    ("photo.tiff", lambda: draw_picture("TIFF"), "image/tiff", IMAGE, PIL),
    ("photo.avif", lambda: draw_picture("AVIF", (16, 16)), "image/avif", IMAGE, PIL),
    ("icon.ico", lambda: draw_picture("ICO", (16, 16)), "image/x-icon", IMAGE, PIL),
    ("photo.jp2", lambda: draw_picture("JPEG2000", (16, 16)), "image/jp2", IMAGE, PIL),
    ("photo.heic", lambda: iso_media(b"heic", compatible=b"mif1"), "image/heic", IMAGE, "by hand"),
    ("photo.heif", lambda: iso_media(b"mif1", compatible=b"heic"), "image/heic", IMAGE, "by hand"),
    ("layers.psd", psd, "image/vnd.adobe.photoshop", IMAGE, "by hand"),
    ("photo.jxl", lambda: b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(16), "image/jxl", IMAGE, "by hand"),
    (
        "pixel.qoi",
        lambda: b"qoif" + be32(1) + be32(1) + b"\x03\0\xfe\1\2\3" + bytes(7) + b"\1",
        "image/qoi",
        IMAGE,
        "by hand",
    ),
    ("scan.djvu", lambda: b"AT&TFORM\0\0\0\x10DJVUINFO" + bytes(12), "image/vnd.djvu", DOCUMENT, "by hand"),
    ("voice.wav", wav, "audio/wav", AUDIO, STD),
    ("song.mp3", mp3, "audio/mpeg", AUDIO, "by hand"),
    ("tagged.mp3", lambda: mp3(tag=True), "audio/mpeg", AUDIO, "by hand"),
    ("song.flac", flac, "audio/flac", AUDIO, "by hand"),
    ("song.ogg", lambda: ogg(b"\x01vorbis" + bytes(23)), "audio/ogg", AUDIO, "by hand"),
    ("voice.opus", lambda: ogg(b"OpusHead\x01\x01" + bytes(9)), "audio/ogg", AUDIO, "by hand"),
    ("song.m4a", lambda: iso_media(b"M4A ", b"soun"), "audio/mp4", AUDIO, "by hand"),
    ("sound only.mp4", lambda: iso_media(b"isom", b"soun"), "audio/mp4", AUDIO, "by hand"),
    ("song.aac", lambda: (b"\xff\xf1\x50\x80\x02\x1f\xfc" + bytes(9)) * 4, "audio/aac", AUDIO, "by hand"),
    ("song.aiff", lambda: b"FORM\0\0\0\x2eAIFFCOMM\0\0\0\x12" + bytes(30), "audio/aiff", AUDIO, "by hand"),
    ("voice.amr", lambda: b"#!AMR\n" + (b"\x3c" + bytes(31)) * 3, "audio/amr", AUDIO, "by hand"),
    ("tune.mid", lambda: b"MThd\0\0\0\x06\0\0\0\1\0\x60MTrk\0\0\0\4\0\xff\x2f\0", "audio/midi", AUDIO, "by hand"),
    ("song.wma", lambda: asf("409e69f84d5bcf11a8fd00805f5c442b"), "audio/x-ms-wma", AUDIO, "by hand"),
    (
        "sound.au",
        lambda: b".snd" + be32(24) + be32(8) + be32(3) + be32(8000) + be32(1) + bytes(8),
        "audio/basic",
        AUDIO,
        "by hand",
    ),
    ("sound only.webm", lambda: ebml(b"webm", 2), "audio/webm", AUDIO, "by hand"),
    ("clip.mp4", lambda: iso_media(b"isom", b"vide", b"soun"), "video/mp4", VIDEO, "by hand"),
    ("clip.mov", lambda: iso_media(b"qt  ", b"vide"), "video/quicktime", VIDEO, "by hand"),
    ("clip.3gp", lambda: iso_media(b"3gp5", b"vide"), "video/3gpp", VIDEO, "by hand"),
    ("clip.webm", lambda: ebml(b"webm", 1, 2), "video/webm", VIDEO, "by hand"),
    ("clip.mkv", lambda: ebml(b"matroska", 1), "video/x-matroska", VIDEO, "by hand"),
    ("clip.avi", lambda: riff(b"AVI ", b"LIST", le32(4), b"hdrl"), "video/x-msvideo", VIDEO, "by hand"),
    ("clip.flv", lambda: b"FLV\x01\x05\0\0\0\x09\0\0\0\0" + bytes(16), "video/x-flv", VIDEO, "by hand"),
    ("clip.wmv", lambda: asf("c0ef19bc4d5bcf11a8fd00805f5c442b"), "video/x-ms-wmv", VIDEO, "by hand"),
    ("clip.mpg", lambda: b"\0\0\x01\xba\x44\0\x04\0\x04\x01\0\0\x03\xf8" + bytes(20), "video/mpeg", VIDEO, "by hand"),
    ("stream.ts", lambda: (b"\x47\x40\0\x10" + bytes(184)) * 6, "video/mp2t", VIDEO, "by hand"),
    ("clip.ogv", lambda: ogg(b"\x80theora\x03\x02\x01" + bytes(32)), "video/ogg", VIDEO, "by hand"),
    ("report.pdf", lambda: pdf("Hello"), "application/pdf", DOCUMENT, "by hand"),
    ("letter.docx", lambda: docx("Hello"), f"{OOXML}wordprocessingml.document", DOCUMENT, STD),
    ("sums.xlsx", lambda: xlsx({"S": [["a", "1"]]}), f"{OOXML}spreadsheetml.sheet", DOCUMENT, STD),
    ("talk.pptx", lambda: pptx("Hello"), f"{OOXML}presentationml.presentation", DOCUMENT, STD),
    ("letter.odt", lambda: open_document("text"), f"{ODF}text", DOCUMENT, STD),
    ("sums.ods", lambda: open_document("spreadsheet"), f"{ODF}spreadsheet", DOCUMENT, STD),
    ("talk.odp", lambda: open_document("presentation"), f"{ODF}presentation", DOCUMENT, STD),
    (
        "book.epub",
        lambda: build_zip({"mimetype": b"application/epub+zip", "a.xhtml": b"<p>Hi</p>"}, True),
        "application/epub+zip",
        DOCUMENT,
        STD,
    ),
    ("old.doc", lambda: ole2("1Table", "WordDocument"), "application/msword", DOCUMENT, "by hand"),
    ("old.xls", lambda: ole2("a", "b", "c", "d", "Workbook"), "application/vnd.ms-excel", DOCUMENT, "by hand"),
    ("day.xls", lambda: xls(46348, "你好"), "application/vnd.ms-excel", DOCUMENT, "by hand"),
    ("sums.xlsb", lambda: xlsb("你好"), "application/vnd.ms-excel.sheet.binary.macroenabled.12", DOCUMENT, "by hand"),
    ("old.ppt", lambda: ole2("PowerPoint Document"), "application/vnd.ms-powerpoint", DOCUMENT, "by hand"),
    ("mail.msg", lambda: ole2("__properties_version1.0"), "application/vnd.ms-outlook", DOCUMENT, "by hand"),
    ("letter.doc", lambda: doc("Grüße\r"), "application/msword", DOCUMENT, "by hand"),
    ("talk.ppt", lambda: ppt("Title", "Box"), "application/vnd.ms-powerpoint", DOCUMENT, "by hand"),
    ("plan.msg", lambda: msg("Plan", "Words", "a.csv"), "application/vnd.ms-outlook", DOCUMENT, "by hand"),
    ("letter.rtf", lambda: b"{\\rtf1\\ansi Hello \\par}", "application/rtf", DOCUMENT, "by hand"),
    ("files.zip", lambda: build_zip({"a.txt": b"hello", "b.bin": bytes(9)}), "application/zip", OTHER, STD),
    ("empty.zip", lambda: build_zip({}), "application/zip", OTHER, STD),
    (
        "tool.jar",
        lambda: build_zip({"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n"}),
        "application/java-archive",
        OTHER,
        STD,
    ),
    (
        "app.apk",
        lambda: build_zip({"AndroidManifest.xml": bytes(9), "classes.dex": b"dex"}),
        "application/vnd.android.package-archive",
        OTHER,
        STD,
    ),
    ("log.gz", lambda: gzip.compress(b"hello", mtime=0), "application/gzip", OTHER, STD),
    ("log.bz2", lambda: bz2.compress(b"hello"), "application/x-bzip2", OTHER, STD),
    ("log.xz", lambda: lzma.compress(b"hello"), "application/x-xz", OTHER, STD),
    ("files.tar", lambda: build_tar("a.txt", b"hello"), "application/x-tar", OTHER, STD),
    ("files.7z", lambda: b"7z\xbc\xaf\x27\x1c\0\x04" + bytes(24), "application/x-7z-compressed", OTHER, "by hand"),
    ("files.rar", lambda: b"Rar!\x1a\x07\x01\0" + bytes(16), "application/x-rar-compressed", OTHER, "by hand"),
    ("log.zst", lambda: b"\x28\xb5\x2f\xfd\x04\x51\x01\0\0hello\xff\xff\xff", "application/zstd", OTHER, "by hand"),
    ("data.sqlite", sqlite, "application/vnd.sqlite3", OTHER, STD),
    ("program", elf, "application/x-executable", OTHER, "by hand"),
    ("setup.exe", executable, "application/vnd.microsoft.portable-executable", OTHER, "by hand"),
    ("module.wasm", lambda: b"\0asm\x01\0\0\0", "application/wasm", OTHER, "by hand"),
    ("Main.class", lambda: b"\xca\xfe\xba\xbe\0\0\0\x41\0\x05" + bytes(9), "application/java-vm", OTHER, "by hand"),
    ("letters.ttf", lambda: font(b"\0\x01\0\0"), "font/ttf", OTHER, "by hand"),
    ("letters.otf", lambda: font(b"OTTO"), "font/otf", OTHER, "by hand"),
    ("letters.woff2", lambda: b"wOF2\0\x01\0\0" + bytes(40), "font/woff2", OTHER, "by hand"),
    ("noise.bin", lambda: zlib.compress(bytes(range(256)) * 3, 9)[2:], "application/octet-stream", OTHER, STD),
)

TEXTS: tuple[tuple[str, bytes, str, str], ...] = (
    ("notes.txt", b"hello\n", "text/plain", "utf-8"),
    ("zh.txt", ZH.encode(), "text/plain", "utf-8"),
    ("marked.txt", ZH.encode("utf-8-sig"), "text/plain", "utf-8-sig"),
    ("gbk.txt", ZH.encode("gbk"), "text/plain", "gb18030"),
    ("gbk.csv", "编号,名称\n1,苹果\n2,香蕉\n".encode("gbk"), "text/csv", "gb18030"),
    ("big5.txt", TW.encode("big5"), "text/plain", "big5"),
    ("sjis.txt", JA.encode("shift_jis"), "text/plain", "shift_jis"),
    ("utf16.txt", ZH.encode("utf-16"), "text/plain", "utf-16"),
    ("utf16le.txt", ZH.encode("utf-16-le"), "text/plain", "utf-16-le"),
    ("utf16be.txt", "Plain words\nand more\n".encode("utf-16-be"), "text/plain", "utf-16-be"),
    ("latin.txt", FR.encode("latin-1"), "text/plain", "cp1252"),
    ("readme.md", b"# Title\n\n* one\n", "text/markdown", "utf-8"),
    ("data.json", b'{"a": [1, 2]}', "application/json", "utf-8"),
    ("lines.jsonl", b'{"a": 1}\n{"a": 2}\n', "application/x-ndjson", "utf-8"),
    ("table.csv", b"a,b\n1,2\n", "text/csv", "utf-8"),
    ("table.tsv", b"a\tb\n1\t2\n", "text/tab-separated-values", "utf-8"),
    ("page.html", b"<!doctype html><html><body>Hi</body></html>", "text/html", "utf-8"),
    ("data.xml", b"<?xml version='1.0'?><a/>", "application/xml", "utf-8"),
    ("drawing.svg", SVG, "image/svg+xml", "utf-8"),
    ("config.yaml", b"a: 1\n", "application/yaml", "utf-8"),
    ("config.toml", b"[a]\nb = 1\n", "application/toml", "utf-8"),
    ("config.ini", b"[a]\nb=1\n", "text/plain", "utf-8"),
    ("tool.py", b"print('hello')\n", "text/x-python", "utf-8"),
    ("tool.js", b"console.log(1)\n", "text/javascript", "utf-8"),
    ("tool.sh", b"#!/bin/sh\necho hi\n", "application/x-sh", "utf-8"),
    ("tool.rs", b"fn main() {}\n", "text/x-rust", "utf-8"),
    ("query.sql", b"select 1;\n", "application/sql", "utf-8"),
    ("captions.vtt", b"WEBVTT\n\n00:00.000 --> 00:01.000\nHi\n", "text/vtt", "utf-8"),
    ("captions.srt", b"1\n00:00:00,000 --> 00:00:01,000\nHi\n", "application/x-subrip", "utf-8"),
    ("meeting.ics", b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", "text/calendar", "utf-8"),
    ("card.vcf", b"BEGIN:VCARD\r\nFN:A\r\nEND:VCARD\r\n", "text/vcard", "utf-8"),
    ("mail.eml", b"From: a@example.com\r\nSubject: Hi\r\n\r\nHello\r\n", "message/rfc822", "utf-8"),
    ("page.mht", MHT, "multipart/related", "utf-8"),
    ("types.ts", b"export const a: number = 1\n", "text/plain", "utf-8"),
    ("study.ipynb", notebook(), "application/x-ipynb+json", "utf-8"),
    ("words.bin", b"only words here\n", "text/plain", "utf-8"),
)

OLD_TEXTS = extra_text_samples(
    {"ko": KO, "ja": JA, "zh": ZH, "ru": RU, "tr": TR, "cs": CS, "el": EL, "he": HE, "ar": AR, "lt": LT, "th": TH}
)

SAMPLES: tuple[Sample, ...] = (
    *(Sample(name, make(), mime, kind, None, made) for name, make, mime, kind, made in SAMPLE_MAKERS),
    *(Sample(name, data, mime, Kind.TEXT, encoding, "by hand") for name, data, mime, encoding in TEXTS),
    *(Sample(name, make(), mime, kind, None, made) for name, make, mime, kind, made in HEADS),
    *(
        Sample(name, data, mime, Kind.TEXT, encoding)
        for name, data, mime, encoding in (*EXTRA_TEXT_SAMPLES, *OLD_TEXTS)
    ),
    *(
        Sample(name, (made_samples.FILES / name).read_bytes(), mime, Kind(kind), encoding or None, made, bare or None)
        for name, made, kind, encoding, mime, bare in made_samples.rows()
    ),
    *(Sample(name, make(), mime, kind, None, made, BARE_TYPES.get(name)) for name, make, mime, kind, made in RARE),
    *(Sample(name, data, mime, Kind.TEXT, encoding) for name, data, mime, encoding in text_samples.rows()),
)
