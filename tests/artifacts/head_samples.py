"""More sample files: written by Pillow or the standard library, or synthetic headers if neither can write the format.

A synthetic header contains the part of a file that detection reads, built from the format's published structure. The
comment above its row names the source. Nothing was copied.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from functools import reduce
from operator import xor

from PIL import Image

from artifacts.core.detection.extensions import ODF
from capabilities.core.vocabulary import Kind
from tests.artifacts.compound_files import build_compound_file

IMAGE, AUDIO, VIDEO, DOCUMENT, OTHER = Kind.IMAGE, Kind.AUDIO, Kind.VIDEO, Kind.DOCUMENT, Kind.OTHER
PIL, STD, HEAD = "Pillow", "standard library", "synthetic head"


def draw_image(name: str, mode: str = "RGB", **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((16, 16), 60).convert(mode).save(buffer, name, **options)
    return buffer.getvalue()


def package(**entries: bytes) -> bytes:
    """Build a zip archive with these entries. `_` in a name is replaced by a slash."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name.replace("_", "/")), data)
    return buffer.getvalue()


def office_package(*parts: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("[Content_Types].xml", "_rels/.rels", *parts):
            archive.writestr(zipfile.ZipInfo(name), b"<a/>")
    return buffer.getvalue()


def iso_media(brand: bytes, *tracks: bytes) -> bytes:
    """Build an ISO media file whose tracks have these handler types (ISO/IEC 14496-12)."""

    def box(name: bytes, inner: bytes) -> bytes:
        return struct.pack(">I", 8 + len(inner)) + name + inner

    handlers = (box(b"hdlr", bytes(8) + track + bytes(13)) for track in tracks)
    traks = b"".join(box(b"trak", box(b"mdia", handler)) for handler in handlers)
    return box(b"ftyp", brand + bytes(4) + brand) + box(b"moov", box(b"mvhd", bytes(100)) + traks) + box(b"mdat", b"\1")


def add_id3_tag(sound: bytes) -> bytes:
    return b"ID3\3\0\0\0\0\0\x0a" + bytes(10) + sound


def metafile() -> bytes:
    """Build a placeable Windows metafile with a correct checksum (MS-WMF §2.3.2.3)."""
    words = struct.pack("<IH4hHI", 0x9AC6CDD7, 0, 0, 0, 100, 100, 96, 0)
    return words + struct.pack("<H", reduce(xor, struct.unpack("<10H", words))) + b"\1\0\x09\0" + bytes(14)


def archive_member(name: bytes, data: bytes) -> bytes:
    """Build a Unix archive with one member (ar(5))."""
    return (
        b"!<arch>\n"
        + name.ljust(16)
        + b"0".ljust(12)
        + b"0".ljust(6) * 2
        + b"644".ljust(8)
        + (str(len(data)).encode().ljust(10) + b"`\n" + data)
    )


def mpeg_pages(second: bytes) -> bytes:
    """Build packets of 192 bytes, each with a time code and a sync byte (M2TS, used on Blu-ray discs)."""
    return (b"\0\0\0\0\x47\x40\0" + second + bytes(184)) * 5


AAC = (b"\xff\xf1\x50\x80\x02\x1f\xfc" + bytes(9)) * 4
FLAC = b"fLaC\x80\0\0\x22" + bytes(34) + b"\xff\xf8\xc9\x18" + bytes(60)
ID = struct.Struct("<I").pack

# Each row has a name, builder, type, kind and how the file is made. Packages contain only what identifies their format.
HEADS: tuple[tuple[str, Callable[[], bytes], str, Kind, str], ...] = (
    # Source: Khronos KTX 1 and 2, §3.1, the identifier
    ("texture.ktx", lambda: b"\xabKTX 11\xbb\r\n\x1a\n\1\2\3\4" + bytes(48), "image/ktx", IMAGE, HEAD),
    ("texture.ktx2", lambda: b"\xabKTX 20\xbb\r\n\x1a\n" + bytes(68), "image/ktx2", IMAGE, HEAD),
    # Sources: TIFF's layout with Panasonic's and Canon's identifiers (shared-mime-info, LibRaw)
    ("raw.rw2", lambda: b"IIU\0\x18\0\0\0" + bytes(40), "image/x-panasonic-rw2", IMAGE, HEAD),
    ("raw.cr2", lambda: b"II*\0\x10\0\0\0CR\2\0" + bytes(40), "image/x-canon-cr2", IMAGE, HEAD),
    ("raw.cr3", lambda: iso_media(b"crx ", b"vide"), "image/x-canon-cr3", IMAGE, HEAD),
    ("raw.raf", lambda: b"FUJIFILMCCD-RAW 0201FF129502X100" + bytes(60), "image/x-fuji-raf", IMAGE, HEAD),
    ("scan.pcx", lambda: draw_image("PCX"), "image/x-pcx", IMAGE, PIL),
    ("grey.pcx", lambda: draw_image("PCX", "L"), "image/x-pcx", IMAGE, PIL),
    # Source: rasterfile.h of SunOS. The image has 2 x 1 pixels of 24 bits and no colour map.
    (
        "scan.ras",
        lambda: struct.pack(">8I", 0x59A66A95, 2, 1, 24, 6, 1, 0, 0) + b"rgbrgb",
        "image/x-sun-raster",
        IMAGE,
        "by hand",
    ),
    ("app.icns", lambda: draw_image("ICNS"), "image/icns", IMAGE, PIL),
    ("texture.dds", lambda: draw_image("DDS"), "image/vnd.ms-dds", IMAGE, PIL),
    ("photo.j2k", lambda: draw_image("JPEG2000", no_jp2=True), "image/jp2", IMAGE, PIL),
    ("photo.ppm", lambda: draw_image("PPM"), "image/x-portable-pixmap", IMAGE, PIL),
    ("photo.pgm", lambda: draw_image("PPM", "L"), "image/x-portable-graymap", IMAGE, PIL),
    ("photo.pbm", lambda: draw_image("PPM", "1"), "image/x-portable-bitmap", IMAGE, PIL),
    ("large.tif", lambda: draw_image("TIFF", big_tiff=True), "image/tiff", IMAGE, PIL),
    # Sources: BigTIFF, OpenEXR file layout, GIMP's xcf.txt, FITS 4.0 §4.4, MS-EMF §2.3.4.2
    ("light.exr", lambda: b"\x76\x2f\x31\1\2\0\0\0channels\0" + bytes(60), "image/x-exr", IMAGE, HEAD),
    ("layers.xcf", lambda: b"gimp xcf v011\0" + bytes(60), "image/x-xcf", IMAGE, HEAD),
    (
        "sky.fits",
        lambda: b"SIMPLE  =                    T".ljust(80) + b"BITPIX  =  16\0".ljust(2800),
        "image/fits",
        IMAGE,
        HEAD,
    ),
    ("drawing.emf", lambda: ID(1) + ID(108) + bytes(32) + b" EMF" + bytes(64), "image/emf", IMAGE, HEAD),
    ("drawing.wmf", metafile, "image/wmf", IMAGE, HEAD),
    # Sources: Impulse Tracker's ITTECH.TXT, Scream Tracker 3's TECH.DOC, FastTracker 2's XM.TXT, ProTracker's header
    (
        "tune.it",
        lambda: b"IMPM" + b"tune".ljust(28, b"\0") + bytes(16) + b"\x80\x30" + bytes(160),
        "audio/x-it",
        AUDIO,
        HEAD,
    ),
    (
        "tune.s3m",
        lambda: b"tune".ljust(28, b"\0") + b"\x1a\x10" + bytes(14) + b"SCRM" + bytes(80),
        "audio/x-s3m",
        AUDIO,
        HEAD,
    ),
    (
        "tune.xm",
        lambda: b"Extended Module: tune".ljust(37) + b"\x1aFastTracker v2.00   \4\1" + bytes(60),
        "audio/x-xm",
        AUDIO,
        HEAD,
    ),
    (
        "tune.mod",
        lambda: b"tune".ljust(950, b"\0") + b"\1\x7f" + bytes(128) + b"M.K." + bytes(1024),
        "audio/x-mod",
        AUDIO,
        HEAD,
    ),
    # Sources: Monkey's Audio, WavPack 5 §2, Apple's CAF 1.0, Sony's DSF 1.01
    ("song.ape", lambda: b"MAC \x96\x0f\0\0" + bytes(60), "audio/x-ape", AUDIO, HEAD),
    ("song.wv", lambda: b"wvpk" + ID(64) + b"\x10\4" + bytes(60), "audio/x-wavpack", AUDIO, HEAD),
    ("song.caf", lambda: b"caff\0\1\0\0desc" + bytes(40), "audio/x-caf", AUDIO, HEAD),
    ("song.dsf", lambda: b"DSD \x1c\0\0\0\0\0\0\0" + bytes(60), "audio/x-dsf", AUDIO, HEAD),
    ("tagged.aac", lambda: add_id3_tag(AAC), "audio/aac", AUDIO, "by hand"),
    ("tagged.flac", lambda: add_id3_tag(FLAC), "audio/flac", AUDIO, "by hand"),
    ("voice.awb", lambda: b"#!AMR-WB\n" + (b"\x44" + bytes(60)) * 2, "audio/amr", AUDIO, HEAD),
    # Sources: ISO/IEC 15444-3 (RFC 3745), the brands of 3GPP2 C.S0050 and of KDDI (mp4ra.org)
    (
        "clip.mj2",
        lambda: b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypmjp2\0\0\0\0mjp2" + bytes(60),
        "video/mj2",
        VIDEO,
        HEAD,
    ),
    ("phone.3g2", lambda: iso_media(b"3g2a", b"vide", b"soun"), "video/3gpp2", VIDEO, HEAD),
    ("kddi.3g2", lambda: iso_media(b"KDDI", b"vide", b"soun"), "video/3gpp2", VIDEO, HEAD),
    ("clip.m4v", lambda: iso_media(b"M4V ", b"vide"), "video/mp4", VIDEO, HEAD),
    ("clip.mts", lambda: mpeg_pages(b"\x10"), "video/mp2t", VIDEO, HEAD),
    ("pictures.mpg", lambda: b"\0\0\1\xb3\x14\0\xf0\x15" + bytes(60), "video/mpeg", VIDEO, HEAD),
    # Source: the `mimetype` entries that OpenDocument defines
    ("data.odb", lambda: package(mimetype=f"{ODF}base".encode()), f"{ODF}base", DOCUMENT, STD),
    ("drawing.odg", lambda: package(mimetype=f"{ODF}graphics".encode()), f"{ODF}graphics", DOCUMENT, STD),
    # Source: MS-ONESTORE §2.3.1, guidFileType of a section and of a table of contents
    (
        "notes.one",
        lambda: bytes.fromhex("e4525c7b8cd8a74daeb15378d02996d3") + bytes(60),
        "application/onenote",
        DOCUMENT,
        HEAD,
    ),
    (
        "notes.onetoc2",
        lambda: bytes.fromhex("a12fff43d9ef764c9ee210ea5722765f") + bytes(60),
        "application/onenote",
        DOCUMENT,
        HEAD,
    ),
    # Sources: BOF records of Lotus 1-2-3 releases 2 and 3, and of Quattro Pro for DOS and Windows (file formats of
    # both)
    (
        "sums.wk1",
        lambda: bytes.fromhex("00000200060406000800") + bytes(60),
        "application/vnd.lotus-1-2-3",
        DOCUMENT,
        HEAD,
    ),
    (
        "sums.wk3",
        lambda: bytes.fromhex("00001a000010040000000000") + bytes(60),
        "application/vnd.lotus-1-2-3",
        DOCUMENT,
        HEAD,
    ),
    ("sums.wq1", lambda: bytes.fromhex("000002002051") + bytes(60), "application/x-quattro-pro", DOCUMENT, HEAD),
    ("sums.wb1", lambda: bytes.fromhex("000002000110") + bytes(60), "application/x-quattro-pro", DOCUMENT, HEAD),
    (
        "book.mobi",
        lambda: b"book".ljust(60, b"\0") + b"BOOKMOBI" + bytes(60),
        "application/x-mobipocket-ebook",
        DOCUMENT,
        HEAD,
    ),
    ("help.chm", lambda: b"ITSF\3\0\0\0" + bytes(60), "application/vnd.ms-htmlhelp", DOCUMENT, HEAD),
    ("page.xps", lambda: office_package("FixedDocSeq.fdseq"), "application/oxps", DOCUMENT, STD),
    (
        "macro.docm",
        lambda: office_package("word/vbaProject.bin"),
        "application/vnd.ms-word.document.macroenabled.12",
        DOCUMENT,
        STD,
    ),
    (
        "macro.xlsm",
        lambda: office_package("xl/vbaProject.bin"),
        "application/vnd.ms-excel.sheet.macroenabled.12",
        DOCUMENT,
        STD,
    ),
    (
        "macro.pptm",
        lambda: office_package("ppt/vbaProject.bin"),
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        DOCUMENT,
        STD,
    ),
    (
        "letter.pages",
        lambda: package(Index_Document=b"", **{"Index/Document.iwa": b"\0"}),
        "application/vnd.apple.pages",
        DOCUMENT,
        STD,
    ),
    ("plan.vsd", lambda: build_compound_file({"VisioDocument": b"v"}), "application/vnd.visio", DOCUMENT, "by hand"),
    ("unknown.ole", lambda: build_compound_file({"Contents": b"c"}), "application/x-ole-storage", DOCUMENT, "by hand"),
    # In an embedded compound file, the directory is nested (MS-CFB §2.6, MS-OXMSG §2.2.2).
    (
        "letter attached.msg",
        lambda: build_compound_file(
            {
                "__attach_version1.0_#00000000": {"__substg1.0_3701000D": {"WordDocument": b"w"}},
                "__properties_version1.0": b"p",
            }
        ),
        "application/vnd.ms-outlook",
        DOCUMENT,
        "by hand",
    ),
    (
        "chart inside.ppt",
        lambda: build_compound_file({"MBD001": {"Workbook": b"w"}, "PowerPoint Document": b"p"}),
        "application/vnd.ms-powerpoint",
        DOCUMENT,
        "by hand",
    ),
    (
        "letter inside.xls",
        lambda: build_compound_file({"MBD001": {"WordDocument": b"w"}, "Workbook": b"x"}),
        "application/vnd.ms-excel",
        DOCUMENT,
        "by hand",
    ),
    # Jet 3 and ACE databases contain their format's name after the first four bytes (mdbtools, HACKING).
    ("data.mdb", lambda: b"\0\1\0\0Standard Jet DB\0" + bytes(60), "application/x-msaccess", OTHER, HEAD),
    ("data.accdb", lambda: b"\0\1\0\0Standard ACE DB\0" + bytes(60), "application/x-msaccess", OTHER, HEAD),
    # Source: self-described CBOR (RFC 8949 §3.4.6), the tag followed by the value {"a": [1, 2]}
    ("data.cbor", lambda: bytes.fromhex("d9d9f7a161618201f5"), "application/cbor", OTHER, "by hand"),
    ("words.ar", lambda: archive_member(b"a.txt/", b"hello\n"), "application/x-archive", OTHER, "by hand"),
    (
        "library.a",
        lambda: archive_member(b"/", b"\0\0\0\1\0\0\0\x44main\0\0"),
        "application/x-archive",
        OTHER,
        "by hand",
    ),
    (
        "tool.deb",
        lambda: archive_member(b"debian-binary", b"2.0\n"),
        "application/vnd.debian.binary-package",
        OTHER,
        "by hand",
    ),
    ("files.cab", lambda: b"MSCF\0\0\0\0" + bytes(60), "application/vnd.ms-cab-compressed", OTHER, HEAD),
    ("disk.iso", lambda: bytes(32768) + b"\1CD001\1\0" + bytes(2040), "application/x-iso9660-image", OTHER, HEAD),
    ("log.lz4", lambda: b"\4\x22\x4d\x18\x64\x40\xa7" + bytes(20), "application/x-lz4", OTHER, HEAD),
    ("old.rar", lambda: b"Rar!\x1a\7\0\xcf\x90\x73\0\0\x0d" + bytes(20), "application/x-rar-compressed", OTHER, HEAD),
    ("scan.dcm", lambda: bytes(128) + b"DICM\2\0\0\0UL\4\0" + bytes(20), "application/dicom", OTHER, HEAD),
    (
        "table.parquet",
        lambda: b"PAR1\x15\4\x15\x10" + bytes(20) + b"PAR1",
        "application/vnd.apache.parquet",
        OTHER,
        HEAD,
    ),
    ("data.h5", lambda: b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0" + bytes(60), "application/x-hdf5", OTHER, HEAD),
    (
        "array.npy",
        lambda: b"\x93NUMPY\1\0\x46\0{'descr': '<i4'}".ljust(80) + bytes(8),
        "application/x-npy",
        OTHER,
        HEAD,
    ),
    ("net.pcap", lambda: b"\xd4\xc3\xb2\xa1\2\0\4\0" + bytes(16), "application/vnd.tcpdump.pcap", OTHER, HEAD),
    (
        "program.macho",
        lambda: b"\xcf\xfa\xed\xfe\7\0\0\1\3\0\0\0\2\0\0\0" + bytes(40),
        "application/x-mach-binary",
        OTHER,
        HEAD,
    ),
    ("universal.macho", lambda: b"\xca\xfe\xba\xbe\0\0\0\2" + bytes(60), "application/x-mach-binary", OTHER, HEAD),
    ("game.swf", lambda: b"CWS\x0a\x40\0\0\0x\x9c" + bytes(20), "application/x-shockwave-flash", OTHER, HEAD),
    ("letters.ttc", lambda: b"ttcf\0\1\0\0\0\0\0\2" + bytes(40), "font/collection", OTHER, HEAD),
    ("letters.woff", lambda: b"wOFF\0\1\0\0" + bytes(40), "font/woff", OTHER, HEAD),
    ("place.kmz", lambda: package(**{"doc.kml": b"<kml/>"}), "application/vnd.google-earth.kmz", OTHER, STD),
)

XML = b"<?xml version='1.0'?>\n<!-- made here -->\n"
EXTRA_TEXT_SAMPLES: tuple[tuple[str, bytes, str, str], ...] = (
    (
        "captions.ttml",
        XML + b'<tt xmlns="http://www.w3.org/ns/ttml"><head/><body/></tt>',
        "application/ttml+xml",
        "utf-8",
    ),
    (
        "book.fb2",
        XML + b'<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><body/></FictionBook>',
        "application/x-fictionbook+xml",
        "utf-8",
    ),
    ("news.rss", XML + b'<rss version="2.0"><channel/></rss>', "application/rss+xml", "utf-8"),
    ("news.atom", XML + b'<feed xmlns="http://www.w3.org/2005/Atom"/>', "application/atom+xml", "utf-8"),
    ("page.ps", b"%!PS-Adobe-3.0\n/Helvetica findfont\nshowpage\n", "application/postscript", "utf-8"),
    (".env", b"DEBUG=1\n", "text/plain", "utf-8"),
    (".gitignore", b"*.pyc\n", "text/plain", "utf-8"),
)


def extra_text_samples(words: dict[str, str]) -> tuple[tuple[str, bytes, str, str], ...]:
    encodings = {
        "ko": ("cp949", "johab", "iso2022_kr", "utf-32-le"),
        "ja": ("euc_jp", "iso2022_jp", "utf-16-be"),
        "zh": ("hz", "utf-32-be"),
        "ru": ("cp1251", "koi8-r", "iso8859-5", "cp866", "cp855", "mac-cyrillic"),
        "tr": ("cp1254",),
        "cs": ("cp1250",),
        "el": ("cp1253",),
        "he": ("cp1255",),
        "ar": ("cp1256",),
        "lt": ("cp1257",),
        "th": ("cp874",),
    }
    return tuple(
        (f"{language} {encoding}.txt", words[language].encode(encoding), "text/plain", encoding)
        for language, names in encodings.items()
        for encoding in names
    )
