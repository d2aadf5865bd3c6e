"""The table of file signatures. The first row that proves a type is used.

A signature proves its type if its fixed bytes and the structure after them are valid. Without a valid structure, a long
signature is a hint, and a short one is ignored. `family` names a container format whose contents determine the type
(`containers.py`). `also` lists types that begin with the same bytes. `textual` marks formats that may be entirely clean
text. For all other formats, clean text after the fixed bytes means that these bytes are part of a word and not a
signature.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from artifacts.core.detection import media_containers as media
from artifacts.core.detection import structures as is_
from artifacts.core.detection.evidence import Signature
from artifacts.core.detection.structures import always, at, number

# Signatures of images, audio and video, in the order in which they are tried.

S = Signature
MPEG_AUDIO = ("audio/aac", "audio/flac", "audio/x-ape")

MEDIA: tuple[Signature, ...] = (
    # Signatures of image formats
    S("image/png", b"\x89PNG\r\n\x1a\n", is_.png, also=("image/apng",)),
    S("image/jls", b"\xff\xd8\xff", media.jpeg_ls),
    S("image/jpeg", b"\xff\xd8\xff", is_.jpeg),
    S("image/gif", b"GIF87a", is_.gif),
    S("image/gif", b"GIF89a", is_.gif),
    S("image/webp", b"WEBP", is_.riff_chunk(b"VP8 ", b"VP8L", b"VP8X"), offset=8),
    S("image/x-canon-cr2", b"II*\0\x10\0\0\0CR", is_.tiff, also=("image/tiff",)),
    S("image/x-panasonic-rw2", b"IIU\0", number(4, 4, 8, 64, little=True)),
    S("image/x-fuji-raf", b"FUJIFILMCCD-RAW ", always),
    S("image/tiff", b"II*\0", is_.tiff, also=("image/x-adobe-dng", "image/x-nikon-nef", "image/x-sony-arw")),
    S("image/tiff", b"MM\0*", is_.tiff, also=("image/x-adobe-dng", "image/x-nikon-nef")),
    S("image/tiff", b"II+\0\x08\0\0\0", always),
    S("image/tiff", b"MM\0+\0\x08\0\0", always),
    S("image/bmp", b"BM", is_.bmp),
    S("image/x-icon", b"\0\0\x01\0", is_.icon),
    S("image/x-icon", b"\0\0\x02\0", is_.icon, also=("image/x-win-bitmap",)),
    S("image/vnd.adobe.photoshop", b"8BPS", is_.psd),
    S("image/ktx", b"\xabKTX 11\xbb\r\n\x1a\n", always),
    S("image/ktx2", b"\xabKTX 20\xbb\r\n\x1a\n", always),
    S("image/x-sun-raster", b"\x59\xa6\x6a\x95", is_.sun_raster),
    S("image/x-portable-bitmap", b"P1", is_.netpbm, textual=True),
    S("image/x-portable-graymap", b"P2", is_.netpbm, textual=True),
    S("image/x-portable-pixmap", b"P3", is_.netpbm, textual=True),
    S("image/x-portable-bitmap", b"P4", is_.netpbm, textual=True),
    S("image/x-portable-graymap", b"P5", is_.netpbm, textual=True),
    S("image/x-portable-pixmap", b"P6", is_.netpbm, textual=True),
    S("image/x-msp", b"DanM", is_.paint),
    S("image/x-msp", b"LinS", is_.paint),
    S("image/x-ifunc", b"Image type: ", is_.image_memory),
    S("image/x-pcx", b"\x0a", is_.pcx),
    S("video/mj2", b"\0\0\0\x0cjP  \r\n\x87\n", at(20, b"mjp2", b"mj2s")),
    S("image/jp2", b"\0\0\0\x0cjP  \r\n\x87\n", always, also=("image/jpx", "image/jpm")),
    S("image/jp2", b"\xff\x4f\xff\x51\0", number(4, 2, 38, 16384)),
    S("image/jxl", b"\0\0\0\x0cJXL \r\n\x87\n", always),
    S("image/jxl", b"\xff\x0a", None),
    S("image/qoi", b"qoif", number(12, 1, 3, 4)),
    S("image/x-exr", b"\x76\x2f\x31\x01", number(4, 1, 1, 3)),
    S("image/x-xcf", b"gimp xcf ", always),
    S("image/vnd.djvu", b"AT&TFORM", at(12, b"DJVU", b"DJVM")),
    S("image/icns", b"icns", number(4, 4, 16, 1 << 30)),
    S("image/vnd.ms-dds", b"DDS \x7c\0\0\0", always),
    S("image/emf", b" EMF", at(0, b"\x01\0\0\0"), offset=40),
    S("image/wmf", b"\xd7\xcd\xc6\x9a", is_.wmf),
    S("image/fits", b"SIMPLE  =                    T", always, also=("application/fits",)),
    S("image/jxr", b"II\xbc\x01", is_.tiff),
    S("image/x-jng", b"\x8bJNG\r\n\x1a\n", at(12, b"JHDR")),
    S("image/vnd.radiance", b"#?RADIANCE\n", always),
    S("image/x-sgi", b"\x01\xda", media.sgi),
    S("image/x-dpx", b"SDPX", at(8, b"V1.0\0", b"V2.0\0")),
    S("image/x-dpx", b"XPDS", at(8, b"V1.0\0", b"V2.0\0")),
    S("image/x-cineon", b"\x80\x2a\x5f\xd7", always),
    S("image/x-miff", b"id=ImageMagick", always),
    S("image/x-portable-arbitrarymap", b"P7\n", is_.portable_arbitrary_map, textual=True),
    S("image/x-portable-floatmap", b"P", media.float_map),
    S("image/x-xwindowdump", b"\0\0\0\7", media.window_dump, offset=4),
    S("image/x-ilbm", b"FORM", at(8, b"ILBM", b"PBM ")),
    S("image/nitf", b"NITF02.", always),
    S("image/vnd.dwg", b"AC10", is_.drawing),
    # Signatures of audio formats
    S("audio/wav", b"WAVE", is_.wav_float_or_pcm, offset=8),
    S("audio/midi", b"RMID", at(0, b"RIFF"), offset=8),
    S("audio/mpeg", b"ID3", is_.id3, family="id3", also=MPEG_AUDIO),
    S("audio/flac", b"fLaC", lambda head: head[4] & 0x7F == 0 and is_.be(head, 5, 3) == 34 if len(head) > 7 else False),
    S("audio/ogg", b"OggS", is_.ogg, family="ogg"),
    S("audio/aiff", b"FORM", at(8, b"AIFF", b"AIFC")),
    S("audio/x-8svx", b"FORM", at(8, b"8SVX", b"16SV")),
    S("audio/amr", b"#!AMR\n", always),
    S("audio/amr", b"#!AMR-WB\n", always, also=("audio/amr-wb",)),
    S("audio/midi", b"MThd\0\0\0\x06", number(8, 2, 0, 2)),
    S("audio/basic", b".snd", number(12, 4, 1, 27)),
    S("audio/x-ape", b"MAC ", number(4, 2, 3800, 4200, little=True)),
    S("audio/x-wavpack", b"wvpk", number(8, 2, 0x402, 0x410, little=True)),
    S("audio/x-caf", b"caff\0\x01\0\0", always),
    S("audio/x-dsf", b"DSD \x1c\0\0\0", always),
    S("audio/x-it", b"IMPM", number(48, 1, 0, 128)),
    S("audio/x-s3m", b"SCRM", at(28, b"\x1a\x10"), offset=44),
    S("audio/x-xm", b"Extended Module: ", at(37, b"\x1a")),
    S("audio/x-mod", b"M.K.", number(950, 1, 1, 128), offset=1080),
    S("audio/ac3", b"\x0b\x77", media.ac3, also=("audio/eac3",)),
    S("audio/vnd.dts", b"\x7f\xfe\x80\x01", always),
    S("audio/x-tta", b"TTA1", number(4, 2, 1, 3, little=True)),
    S("audio/x-voc", b"Creative Voice File\x1a", always),
    S("audio/x-w64", b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\0\0", always),
    S("audio/x-smaf", b"MMMD", at(8, b"CNTI")),
    S("audio/x-nist", b"NIST_1A\n", always),
    S("audio/vnd.rn-realaudio", b".ra\xfd", always),
    S("audio/aac", b"\xff", is_.aac_frames),
    S("audio/mpeg", b"\xff", is_.mp3_frames),
    # Signatures of video formats and media containers
    S("video/x-msvideo", b"AVI ", is_.riff_chunk(b"LIST"), offset=8),
    S("video/mp4", b"ftyp", is_.ftyp, offset=4, family="mp4"),
    S("video/quicktime", b"moov", is_.quicktime_atom, offset=4),
    S("video/quicktime", b"mdat", is_.quicktime_atom, offset=4),
    S("video/quicktime", b"wide", is_.quicktime_atom, offset=4),
    S("video/webm", b"\x1a\x45\xdf\xa3", number(4, 1, 0x40, 0xFF), family="ebml"),
    S("video/x-flv", b"FLV\x01", number(5, 4, 9, 9)),
    S("video/x-ms-asf", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c", is_.asf, family="asf"),
    S(
        "video/mpeg",
        b"\0\0\x01\xba",
        is_.program_stream,
    ),
    S("video/mpeg", b"\0\0\x01\xb3", number(4, 3, 0x001001, 0xFFFFFF)),
    S("video/mp2t", b"\x47", is_.transport_stream),
    S("video/mp2t", b"\x47", is_.blu_ray_stream, offset=4),
    S("application/vnd.rn-realmedia", b".RMF\0\0\0", always, also=("audio/vnd.rn-realaudio",)),
    S("application/mxf", b"\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02", always),
    S("video/x-mng", b"\x8aMNG\r\n\x1a\n", at(12, b"MHDR")),
    S("video/x-nut", b"nut/multimedia container\0", always),
    S("video/x-ivf", b"DKIF\0\0\x20\0", always),
    S("video/x-yuv4mpeg", b"YUV4MPEG2 ", always),
    S("video/h264", b"\0\0\0\1", media.unit_stream(7, 8, 0, 0x1F)),
    S("video/h265", b"\0\0\0\1", media.unit_stream(32, 33, 1, 0x3F)),
)


# Signatures of documents, archives, programs, data and fonts, in the order in which they are tried.


FILES: tuple[Signature, ...] = (
    # Signatures of document formats
    S(
        "application/pdf",
        b"%PDF-",
        lambda head: head[5:6] in (b"1", b"2") and head[6:7] == b"." and head[7:8].isdigit(),
        textual=True,
    ),
    S("application/rtf", b"{\\rtf", lambda head: head[5:6].isdigit() or head[5:6] in (b"\\", b"}"), textual=True),
    S("application/x-ole-storage", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", is_.ole2, family="ole2"),
    S("application/onenote", b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1\x53\x78\xd0\x29\x96\xd3", always),
    S("application/onenote", b"\xa1\x2f\xff\x43\xd9\xef\x76\x4c\x9e\xe2\x10\xea\x57\x22\x76\x5f", always),
    # In Excel 2, 3 and 4 files, the fixed bytes are the first record and its length. They are followed by a version and
    # the substream type: sheet, chart, macros or workspace.
    *(
        S("application/vnd.ms-excel", mark, at(6, b"\x10\0", b"\x20\0", b"\x40\0", b"\0\1"))
        for mark in (b"\x09\0\x04\0", b"\x09\x02\x06\0", b"\x09\x04\x06\0")
    ),
    S("application/vnd.lotus-1-2-3", b"\0\0\x02\0", at(4, b"\x04\x04\x06\0\x08\0", b"\x06\x04\x06\0\x08\0")),
    S("application/vnd.lotus-1-2-3", b"\0\0\x1a\0", number(4, 2, 0x1000, 0x1005, little=True)),
    S("application/vnd.ms-works", b"\xff\0\2\0", at(4, b"\x04\x04\x05\x54\x02\0")),
    S("application/vnd.wordperfect", b"\xffWPC", at(9, b"\x0a", b"\x2c")),
    S("image/x-wordperfect-graphics", b"\xffWPC", at(9, b"\x16")),
    S("application/vnd.ms-outlook-pst", b"!BDN", at(8, b"SM", b"SO")),
    S("application/x-quattro-pro", b"\0\0\x02\0", at(4, b"\x20\x51", b"\x01\x10", b"\x02\x10")),
    S("application/x-mobipocket-ebook", b"BOOKMOBI", always, offset=60),
    S("application/vnd.ms-htmlhelp", b"ITSF\x03\0\0\0", always),
    S("application/vnd.hp-pcl", b"\x1bE\x1b", always),
    S("application/vnd.hp-pcl", b"\x1b%-12345X@PJL", always),
    S("application/vnd.ms-tnef", b"\x78\x9f\x3e\x22", always),
    # Signatures of archives, programs and data formats
    S("application/zip", b"PK\x03\x04", is_.zip_entry, family="zip"),
    S("application/zip", b"PK\x05\x06" + bytes(16), always, family="zip"),
    S(
        "application/gzip",
        b"\x1f\x8b\x08",
        number(3, 1, 0, 31),
        also=("application/x-tar", "application/x-compressed-tar"),
    ),
    S("application/x-7z-compressed", b"7z\xbc\xaf\x27\x1c", number(6, 1, 0, 1)),
    S("application/x-rar-compressed", b"Rar!\x1a\x07", at(6, b"\0", b"\x01\0")),
    S("application/x-bzip2", b"BZh", at(4, b"1AY&SY", b"\x17rE8P\x90"), also=("application/x-tar",)),
    S("application/x-xz", b"\xfd7zXZ\0", number(6, 2, 0, 10), also=("application/x-tar",)),
    S("application/zstd", b"\x28\xb5\x2f\xfd", number(4, 1, 0, 255), also=("application/x-tar",)),
    S("application/x-lz4", b"\x04\x22\x4d\x18", number(4, 1, 0x40, 0x7F)),
    S("application/x-compress", b"\x1f\x9d", number(2, 1, 0x89, 0x90)),
    S("application/x-lzip", b"LZIP", number(4, 1, 0, 1)),
    S("application/x-lzop", b"\x89LZO\0\r\n\x1a\n", always),
    S("application/x-lzma", b"\x5d\0\0", is_.lzma_alone),
    S("application/x-arj", b"\x60\xea", is_.arj),
    S("application/x-lha", b"-l", is_.lha, offset=2),
    S("application/x-cpio", b"07070", is_.cpio),
    S("application/x-squashfs", b"hsqs", number(28, 2, 4, 4, little=True)),
    S("application/x-ms-wim", b"MSWIM\0\0\0", always),
    S("application/x-rpm", b"\xed\xab\xee\xdb", number(4, 1, 3, 4)),
    S("application/x-tar", b"ustar", is_.tar, offset=257),
    S("application/vnd.ms-cab-compressed", b"MSCF\0\0\0\0", always),
    S("application/vnd.debian.binary-package", b"!<arch>\ndebian-binary", always, textual=True),
    S("application/x-archive", b"!<arch>\n", is_.ar_member, textual=True),
    S("application/x-iso9660-image", b"CD001", number(32774, 1, 1, 1), offset=32769),
    S(
        "application/x-executable",
        b"\x7fELF",
        number(4, 1, 1, 2),
        also=("application/x-sharedlib", "application/x-object"),
    ),
    S("application/vnd.microsoft.portable-executable", b"MZ", is_.portable_executable),
    S("application/wasm", b"\0asm\x01\0\0\0", always),
    S("application/java-vm", b"\xca\xfe\xba\xbe", is_.java_class),
    S("application/x-mach-binary", b"\xca\xfe\xba\xbe", number(4, 4, 1, 30)),
    S("application/x-mach-binary", b"\xcf\xfa\xed\xfe", number(12, 4, 1, 12, little=True)),
    S("application/vnd.sqlite3", b"SQLite format 3\0", always, also=("application/geopackage+sqlite3",)),
    S("application/x-msaccess", b"\0\x01\0\0Standard Jet DB\0", always),
    S("application/x-msaccess", b"\0\x01\0\0Standard ACE DB\0", always),
    S("application/cbor", b"\xd9\xd9\xf7", is_.cbor_item),
    S("application/vnd.apache.parquet", b"PAR1", None),
    S("application/x-hdf5", b"\x89HDF\r\n\x1a\n", always, also=("application/x-netcdf", "application/x-matlab-data")),
    S("application/x-npy", b"\x93NUMPY", number(6, 1, 1, 3)),
    S("application/dicom", b"DICM", at(132, b"\x02\0"), offset=128),
    S("application/vnd.tcpdump.pcap", b"\xd4\xc3\xb2\xa1\x02\0\x04\0", always),
    S("application/x-shockwave-flash", b"FWS", number(3, 1, 1, 50)),
    S("application/x-shockwave-flash", b"CWS", number(3, 1, 6, 50)),
    S("application/vnd.tcpdump.pcap", b"\x0a\x0d\x0d\x0a", at(8, b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d")),
    S("application/x-bittorrent", b"d", is_.torrent),
    S("application/x-ms-shortcut", b"L\0\0\0\x01\x14\x02\0", always),
    S("application/pkix-cert", b"\x30\x82", is_.certificate),
    S("application/x-pkcs12", b"\x30\x82", at(4, b"\2\1\3\x30\x82")),
    S("application/x-gettext-translation", b"\xde\x12\x04\x95", number(4, 2, 0, 1)),
    S("application/x-python-pickle", b"\x80", is_.pickle),
    # Signatures of scientific data, 3D models and maps
    S("application/x-nifti", b"n+1\0", media.nifti, offset=344),
    S("application/x-matlab-data", b"MATLAB 5.0 MAT-file", always),
    S("application/x-netcdf", b"CDF", at(3, b"\1", b"\2", b"\5")),
    S("application/x-grib", b"GRIB", number(7, 1, 1, 2)),
    S("application/vnd.apache.arrow.file", b"ARROW1\0\0", always),
    S("application/vnd.apache.avro", b"Obj\1", is_.avro),
    S("application/x-orc", b"ORC", None),
    S("application/x-safetensors", b'\0\0{"', is_.tensors, offset=6),
    S("application/x-gguf", b"GGUF", number(4, 4, 1, 3, little=True)),
    S("application/vnd.las", b"LASF", number(24, 1, 1, 1)),
    S("application/vnd.shp", b"\0\0\x27\x0a", is_.shape, also=("application/vnd.shx",)),
    S("application/vnd.dbf", b"\x03", is_.dbase),
    S("application/vnd.flatgeobuf", b"fgb\3fgb", always),
    S("application/x-erdas-hfa", b"EHFA_HEADER_TAG\0", always),
    S("application/x-nrrd", b"NRRD000", always),
    S("model/ply", b"ply\nformat binary_", always),
    S("model/gltf-binary", b"glTF", number(4, 4, 1, 2, little=True)),
    S("application/x-blender", b"BLENDER", at(8, b"v", b"V")),
    # Signatures of font formats
    S("font/ttf", b"\0\x01\0\0", is_.font_tables),
    S("font/otf", b"OTTO", is_.font_tables),
    S("font/collection", b"ttcf", number(4, 4, 0x00010000, 0x00020000)),
    S("font/woff", b"wOFF", at(4, b"\0\x01\0\0", b"OTTO", b"true")),
    S("font/woff2", b"wOF2", at(4, b"\0\x01\0\0", b"OTTO", b"true")),
)


HEAD = 64 * 1024
"""Number of bytes at the start of a file that are examined first. libmagic needs 8 KB for .xls, and more for other
office documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The type implied by a matching signature, and whether the match is proof."""

    mime: str
    proves: bool
    family: str = ""
    also: tuple[str, ...] = ()
    textual: bool = False


SIGNATURES: tuple[Signature, ...] = (*MEDIA, *FILES)

ROOTS = {
    b"html": (b"", "text/html"),
    b"svg": (b"", "image/svg+xml"),
    b"FictionBook": (b"", "application/x-fictionbook+xml"),
    b"tt": (b"/ns/ttml", "application/ttml+xml"),
    b"rss": (b"", "application/rss+xml"),
    b"kml": (b"/kml/", "application/vnd.google-earth.kml+xml"),
    b"gpx": (b"topografix.com/GPX", "application/gpx+xml"),
    b"feed": (b"w3.org/2005/Atom", "application/atom+xml"),
}
"""Maps the root element of an XML document (without prefix) to a string that its namespace must contain, and to the
document's type."""

RIFF_BRANDS = frozenset({"image/webp", "audio/wav", "video/x-msvideo", "audio/midi"})
ROOT = re.compile(rb"<(?:[\w.-]{1,40}:)?([\w.-]{1,80})[\s>/]")
MARKUP = (
    (re.compile(rb"<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>]", re.I), "text/html"),
    (re.compile(rb"<svg[\s>]|<!doctype\s+svg", re.I), "image/svg+xml"),
    (re.compile(rb"<\?xml[\s?]", re.I), "application/xml"),
)
"""Patterns of markup at the beginning of text, and the type that each indicates. More specific patterns are listed
first."""

FRAMEMAKER = re.compile(rb"<MIFFile\s+[0-9]+\.[0-9]+\s*>")


MIN_HINT_BYTES = 3
"""A signature counts as a hint only if it has at least this many non-NUL bytes. Several formats begin with NUL, NUL, 2,
NUL."""

BEFORE_WORDS = b"\xef\xbb\xbf\t\r\n\f "
WORDS_BEFORE = 1024
"""Bytes that may precede the signature of a textual format, and their maximum number. PDF readers search the first 1024
bytes of a file for `%PDF-`."""


def match(head: bytes) -> Match | None:
    """Return the type implied by the first signature that counts as proof, otherwise by the first hint, or None."""
    hint: Match | None = None
    text_start = head[:WORDS_BEFORE].lstrip(BEFORE_WORDS) + head[WORDS_BEFORE:]
    for row in SIGNATURES:
        start = text_start if row.textual else head
        if not start.startswith(row.fixed, row.offset) or not _has_brand(row, head):
            continue
        if row.structure is not None and row.structure(start):
            return Match(mime=row.mime, proves=True, family=row.family, also=row.also, textual=row.textual)
        # Short signatures can occur by accident.
        if hint is None and len(row.fixed.replace(b"\0", b"")) >= MIN_HINT_BYTES:
            hint = Match(mime=row.mime, proves=False, family=row.family, also=row.also, textual=row.textual)
    return hint


def text_type(head: bytes) -> str | None:
    """Return the type that the beginning of text indicates, such as HTML, XML, vCard or PostScript, else None."""
    start = head[:4096].removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\f\x04")
    for prefix, mime in (
        (b"BEGIN:VCALENDAR", "text/calendar"),
        (b"BEGIN:VCARD", "text/vcard"),
        (b"WEBVTT", "text/vtt"),
        (b"%!PS", "application/postscript"),
    ):
        if start.startswith(prefix):
            return mime
    if not start.startswith(b"<"):
        return None
    if FRAMEMAKER.match(start):
        return "application/vnd.mif"
    name_space, mime = ROOTS.get(_root_element(start), (b"\0", ""))
    if name_space in start:
        return mime
    if start.startswith(b"<?xml") and _root_element(start) not in (b"", b"head", b"body"):
        return "application/xml"
    return next((mime for pattern, mime in MARKUP if pattern.search(start[:2048])), None)


def _root_element(start: bytes) -> bytes:
    # Skip declarations and comments before the root element.
    for _ in range(50):
        start = start.lstrip()
        if not start.startswith((b"<?", b"<!")):
            break
        end = b"-->" if start.startswith(b"<!--") else b">"
        start = start.partition(end)[2]
    match = ROOT.match(start)
    return match[1] if match else b""


def _has_brand(row: Signature, head: bytes) -> bool:
    # Four letters at offset 8 are a brand only if the file begins with RIFF.
    return row.mime not in RIFF_BRANDS or row.offset != 8 or head[:4] in (b"RIFF", b"RIFX", b"RF64")
