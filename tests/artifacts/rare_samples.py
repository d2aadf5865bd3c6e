"""Synthetic headers of formats that no Debian program or Python package writes, and minimal packages.

A synthetic header contains the part of a file that detection reads, built from the format's published structure. The
comment above its row names the source.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

from artifacts.core.detection.containers import KEYNOTE, NUMBERS, PAGES, WORKS
from artifacts.core.detection.extensions import ODF, OOXML
from capabilities.core.vocabulary import Kind
from tests.artifacts.compound_files import build_compound_file
from tests.artifacts.head_samples import HEAD, PIL, STD, draw_image, office_package, package

IMAGE, AUDIO, VIDEO, DOCUMENT, OTHER = Kind.IMAGE, Kind.AUDIO, Kind.VIDEO, Kind.DOCUMENT, Kind.OTHER
WORD, EXCEL, POINT = "application/vnd.ms-word.", "application/vnd.ms-excel.", "application/vnd.ms-powerpoint."
MACRO, PROJECT = "macroenabled.12", "application/vnd.ms-project"

APPLE = "http://developer.apple.com/namespaces/"


def apple_root(name: str, space: str) -> bytes:
    """Build the beginning of an iWork '08 or '09 document's XML, as libetonyek reads it."""
    root = f'<{name} xmlns:sfa="{APPLE}sfa" xmlns:sf="{APPLE}sf" xmlns:{name.partition(":")[0]}="{APPLE}{space}"/>'
    return b'<?xml version="1.0"?>\n' + root.encode()


def apple_part(number: bytes) -> bytes:
    """Build an iWork part (2013 and later): a Snappy literal with object 1, whose message has this number."""
    message = b"\x08" + number + b"\x12\3\1\0\5\x18\x10"
    archive = b"\x08\1\x12" + bytes([len(message)]) + message
    plain = bytes([len(archive)]) + archive + bytes(16)
    packed = bytes([len(plain), len(plain) - 1 << 2]) + plain
    return b"\0" + len(packed).to_bytes(3, "little") + packed


def deflated(**entries: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


TABLES = {"Index/CalculationEngine.iwa": b"c", "Index/Tables/DataList.iwa": b"t"}

# Each row has a name, builder, type, kind and how the file is made. Packages contain only what identifies their format.
RARE: tuple[tuple[str, Callable[[], bytes], str, Kind, str], ...] = (
    # Sources: netpbm's pbm(5), pgm(5), ppm(5) and pam(5). The .im file is synthetic, because Pillow warns that it will
    # remove its writer for this format.
    ("plain.pbm", lambda: b"P1\n# made here\n4 2\n1010\n0101\n", "image/x-portable-bitmap", IMAGE, HEAD),
    ("plain.pgm", lambda: b"P2\n3 2\n15\n 1  2  3\n13 14 15\n", "image/x-portable-graymap", IMAGE, HEAD),
    ("plain.ppm", lambda: b"P3\n2 1\n255\n255 0 0  0 0 255\n", "image/x-portable-pixmap", IMAGE, HEAD),
    ("one colour.ppm", lambda: b"P6\n40 40\n255\n" + b"d" * 4800, "image/x-portable-pixmap", IMAGE, HEAD),
    (
        "grey.pam",
        lambda: b"P7\n# made here\nHEIGHT 2\nWIDTH 2\nMAXVAL 255\nDEPTH 1\nENDHDR\n\1abc",
        "image/x-portable-arbitrarymap",
        IMAGE,
        HEAD,
    ),
    ("paint.msp", lambda: draw_image("MSP", "1"), "image/x-msp", IMAGE, PIL),
    (
        "scan.im",
        lambda: b"Image type: L image\r\nName: scan\r\nImage size (x*y): 4*2\r\n".ljust(511, b"\0") + b"\x1aabcdefgh",
        "image/x-ifunc",
        IMAGE,
        HEAD,
    ),
    # Sources: Open Design's specification of .dwg; RealAudio 3 (ffmpeg's rmdec.c)
    ("plan.dwg", lambda: b"AC1032\0\0\0\0\0\x0b\1" + bytes(100), "image/vnd.dwg", IMAGE, HEAD),
    ("old.ra", lambda: b".ra\xfd\0\3\0\x3a" + bytes(60), "audio/vnd.rn-realaudio", AUDIO, HEAD),
    # Sources: Hancom's HWP 5.0 revision 1.3; OWPML (KS X 6101); OFD (GB/T 33190); MS-OXTNEF §2.1.3.1
    (
        "letter.hwp",
        lambda: build_compound_file(
            {"FileHeader": b"HWP Document File", "DocInfo": b"d", "BodyText": {"Section0": b"s"}}
        ),
        "application/x-hwp",
        DOCUMENT,
        HEAD,
    ),
    ("letter.hwpx", lambda: package(mimetype=b"application/hwp+zip"), "application/hwp+zip", DOCUMENT, HEAD),
    ("invoice.ofd", lambda: package(**{"OFD.xml": b"<ofd:OFD/>"}), "application/ofd", DOCUMENT, HEAD),
    ("winmail.dat", lambda: b"\x78\x9f\x3e\x22\1\0\1" + bytes(60), "application/vnd.ms-tnef", DOCUMENT, HEAD),
    (
        "flyer.pub",
        lambda: build_compound_file({"Quill": {"QuillSub": b"q"}}),
        "application/vnd.ms-publisher",
        DOCUMENT,
        HEAD,
    ),
    # Kingsoft Office writes Microsoft's binary formats with its own file name extensions.
    ("letter.wps", lambda: build_compound_file({"WordDocument": b"w"}), "application/msword", DOCUMENT, HEAD),
    ("sums.et", lambda: build_compound_file({"Workbook": b"w"}), "application/vnd.ms-excel", DOCUMENT, HEAD),
    (
        "talk.dps",
        lambda: build_compound_file({"PowerPoint Document": b"p"}),
        "application/vnd.ms-powerpoint",
        DOCUMENT,
        HEAD,
    ),
    ("macro.dotm", lambda: office_package("word/document.xml"), f"{WORD}template.{MACRO}", DOCUMENT, STD),
    ("macro.xltm", lambda: office_package("xl/workbook.xml"), f"{EXCEL}template.{MACRO}", DOCUMENT, STD),
    ("macro.xlam", lambda: office_package("xl/worksheets/sheet1.xml"), f"{EXCEL}addin.{MACRO}", DOCUMENT, STD),
    ("macro.potm", lambda: office_package("ppt/slides/slide1.xml"), f"{POINT}template.{MACRO}", DOCUMENT, STD),
    ("macro.ppsm", lambda: office_package("ppt/presentation.xml"), f"{POINT}slideshow.{MACRO}", DOCUMENT, STD),
    (
        "both.xlsb",
        lambda: office_package("xl/workbook.bin", "xl/vbaProject.bin"),
        f"{EXCEL}sheet.binary.{MACRO}",
        DOCUMENT,
        STD,
    ),
    # Source: libetonyek's EtonyekDocument.cpp, the root elements of '08 and '09, the messages and names of 2013 and
    # later
    (
        "talk 09.key",
        lambda: deflated(**{"index.apxl": apple_root("key:presentation", "keynote2")}),
        KEYNOTE,
        DOCUMENT,
        STD,
    ),
    ("sums 09.numbers", lambda: deflated(**{"index.xml": apple_root("ls:document", "ls")}), NUMBERS, DOCUMENT, STD),
    ("letter 09.pages", lambda: deflated(**{"index.xml": apple_root("sl:document", "sl")}), PAGES, DOCUMENT, STD),
    (
        "talk.key",
        lambda: package(**{"Index/Document.iwa": apple_part(b"\1"), "Index/Slide-12.iwa": b"s"}, **TABLES),
        KEYNOTE,
        DOCUMENT,
        STD,
    ),
    (
        "sums.numbers",
        lambda: package(**{"Index/Document.iwa": apple_part(b"\1")}, **TABLES),
        NUMBERS,
        DOCUMENT,
        STD,
    ),
    (
        "letter with table.pages",
        lambda: package(**{"Index/Document.iwa": apple_part(b"\x90\x4e")}, **TABLES),
        PAGES,
        DOCUMENT,
        STD,
    ),
    # Sources: libwps' WPSHeader.cpp; Works' spreadsheets for Windows begin with record FF, then 5405 (Kessler's list)
    ("letter 4.wps", lambda: build_compound_file({"MN0": b"\4\xfe", "MM": b"\x44\x4e"}), WORKS, DOCUMENT, HEAD),
    (
        "short 8.wps",
        lambda: build_compound_file({"A": bytes(700), "CONTENTS": b"CHNKWKS \4\0\10\0"}),
        WORKS,
        DOCUMENT,
        HEAD,
    ),
    (
        "long 2000.wps",
        lambda: build_compound_file({"CONTENTS": b"CHNKINK \4\0\10\0" + bytes(5000)}),
        WORKS,
        DOCUMENT,
        HEAD,
    ),
    ("sums.wks", lambda: bytes.fromhex("ff000200040405540200") + bytes(60), WORKS, DOCUMENT, HEAD),
    (
        "sums.xlr",
        lambda: build_compound_file({"Workbook": b"w", "WksSSWorkBook": b"x"}),
        "application/vnd.ms-excel",
        DOCUMENT,
        HEAD,
    ),
    # Sources: MPXJ's MPPReader and the storages it opens; libwpd's WPXHeader.cpp; MS-PST 2.2.2.6
    (
        "plan.mpp",
        lambda: build_compound_file({"Props14": b"p", "   114": {"TBkndTask": b"t"}}),
        PROJECT,
        DOCUMENT,
        HEAD,
    ),
    ("plan 98.mpp", lambda: build_compound_file({"   1": {"TBkndTask": b"t"}}), PROJECT, DOCUMENT, HEAD),
    ("letter.wpd", lambda: b"\xffWPC\x10\0\0\0\1\x0a\2\1" + bytes(60), "application/vnd.wordperfect", DOCUMENT, HEAD),
    ("logo.wpg", lambda: b"\xffWPC\x10\0\0\0\1\x16\1\0" + bytes(60), "image/x-wordperfect-graphics", IMAGE, HEAD),
    (
        "mail.pst",
        lambda: b"!BDN\1\2\3\4SM\x17\0\x13\0\1\1" + bytes(498),
        "application/vnd.ms-outlook-pst",
        OTHER,
        HEAD,
    ),
    ("sum.odf", lambda: package(mimetype=f"{ODF}formula".encode()), f"{ODF}formula", DOCUMENT, STD),
    ("map.xmind", lambda: package(**{"content.json": b"[]"}), "application/vnd.xmind.workbook", OTHER, STD),
    ("comic.cbz", lambda: package(**{"1.png": b"p"}), "application/vnd.comicbook+zip", OTHER, STD),
    # Source: Blender's file-format README
    ("scene.blend", lambda: b"BLENDER-v405REND" + bytes(60), "application/x-blender", OTHER, HEAD),
    # Sources: LHA's header.doc; the name in an Access database; GeoPackage's SQLite application id
    (
        "files.lzh",
        lambda: b"\x1c\x5a-lh5-" + bytes(12) + b"\x20\0\5a.txt" + bytes(20),
        "application/x-lha",
        OTHER,
        HEAD,
    ),
    ("cells.accdb", lambda: b"\0\1\0\0Standard ACE DB\0\2" + bytes(99), "application/x-msaccess", OTHER, HEAD),
    (
        "place.gpkg",
        lambda: b"SQLite format 3\0" + bytes(52) + b"GPKG" + bytes(28),
        "application/geopackage+sqlite3",
        OTHER,
        HEAD,
    ),
)

# Maps a file name to the type that is detected without the name.
BARE_TYPES = {
    "macro.dotm": f"{OOXML}wordprocessingml.document",
    "macro.xltm": f"{OOXML}spreadsheetml.sheet",
    "macro.xlam": f"{OOXML}spreadsheetml.sheet",
    "macro.potm": f"{OOXML}presentationml.presentation",
    "macro.ppsm": f"{OOXML}presentationml.presentation",
    "map.xmind": "application/zip",
    "comic.cbz": "application/zip",
    "place.gpkg": "application/vnd.sqlite3",
}
