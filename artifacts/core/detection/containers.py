"""Detect a container's type by its contents: office document or archive, audio or video.

Each function reads a few short ranges of the file. If these do not reveal the contents, it returns None, and the caller
uses the type implied by the signature. The work is bounded for any input. For example, only the beginning of one part
of an Apple iWork document is decompressed.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator

from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.core.detection.media_containers import asf_type, ebml_type, id3_type, iso_media_type, ogg_type
from artifacts.core.detection.structures import le
from artifacts.core.store import ReadAt

Inspect = Callable[[ReadAt, int], str | None]
MAX_NAMES = 2_000
MAX_DIRECTORY = 1 << 20
MAX_SECTORS = 128
MAX_PART = 2_048
"""Maximum number of bytes that are read from a zip entry, before and after decompression."""

OFFICE_PARTS = (
    ("xl/workbook.bin", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    ("word/vbaProject.bin", "application/vnd.ms-word.document.macroenabled.12"),
    ("xl/vbaProject.bin", "application/vnd.ms-excel.sheet.macroenabled.12"),
    ("ppt/vbaProject.bin", "application/vnd.ms-powerpoint.presentation.macroenabled.12"),
    ("word/", f"{OOXML}wordprocessingml.document"),
    ("xl/", f"{OOXML}spreadsheetml.sheet"),
    ("ppt/", f"{OOXML}presentationml.presentation"),
    ("visio/", "application/vnd.visio"),
    ("FixedDoc", "application/oxps"),
)
"""Maps name prefixes of the entries in an Office Open XML package to its type. More specific prefixes are listed
first."""

OFFICE_PROGRAMS = (
    (f"{OOXML}wordprocessingml.", "application/vnd.ms-word."),
    (f"{OOXML}spreadsheetml.", "application/vnd.ms-excel."),
    (f"{OOXML}presentationml.", "application/vnd.ms-powerpoint."),
)
"""Pairs of type prefixes that belong to the same office program. Its documents, templates, slide shows and add-ins
contain the same parts."""

ZIP_PACKAGES = frozenset({"application/vnd.xmind.workbook"})
"""Types of packages that only the file name distinguishes from other zip files."""

ARCHIVE_PARTS = (
    ("AndroidManifest.xml", "application/vnd.android.package-archive"),
    ("META-INF/MANIFEST.MF", "application/java-archive"),
    ("doc.kml", "application/vnd.google-earth.kmz"),
    ("OFD.xml", "application/ofd"),
    ("3D/3dmodel.model", "model/3mf"),
)
"""Maps names of the entries in other zip-based packages to the package's type."""

KEYNOTE, NUMBERS, PAGES = (f"application/vnd.apple.{name}" for name in ("keynote", "numbers", "pages"))
APPLE_ROOT = re.compile(
    rb'<(\w{1,20}):(?:document|presentation)\s[^>]*xmlns:\1="http://developer\.apple\.com/namespaces/(\w+)"'
)
APPLE_NAMESPACES = {b"key": KEYNOTE, b"keynote2": KEYNOTE, b"ls": NUMBERS, b"sl": PAGES}
"""Maps the namespace of the root element in an Apple iWork document from before 2013 to its type (libetonyek)."""

APPLE_MESSAGE = re.compile(rb"\x08\x01\x12[\x80-\xff]{0,3}[\0-\x7f]\x08(\x01|\x90\x4e)")
"""Matches the number and type of the first message in a part of an Apple iWork document: type 1 in Keynote and Numbers,
type 10000 in Pages (libetonyek). Snappy compression leaves the first bytes of a part unchanged."""

MIMETYPE_ENTRIES = frozenset(
    {
        "application/epub+zip",
        "application/hwp+zip",
        *(
            f"{ODF}{name}"
            for name in ("text", "spreadsheet", "presentation", "graphics", "formula", "chart", "text-master", "base")
        ),
        *(f"{ODF}{name}-template" for name in ("text", "spreadsheet", "presentation", "graphics")),
        f"{ODF}database",
        "image/openraster",
    }
)
"""Accepted contents of an uncompressed first zip entry named `mimetype` (EPUB, OpenDocument)."""

LOCKED_PACKAGE = "application/x-ole-storage"
"""Type of a password-protected office document. Only the file name reveals the program that wrote it."""

WORKS = "application/vnd.ms-works"
WORKS_TEXT = (b"CHNKWKS", b"CHNKINK")
"""The first bytes of the `CONTENTS` stream in Works text documents since 2000 (libwps)."""

OLE2_STREAMS = (
    ("WordDocument", "application/msword"),
    ("Workbook", "application/vnd.ms-excel"),
    ("Book", "application/vnd.ms-excel"),
    ("PowerPoint Document", "application/vnd.ms-powerpoint"),
    ("__properties_version1.0", "application/vnd.ms-outlook"),
    ("VisioDocument", "application/vnd.visio"),
    ("BodyText", "application/x-hwp"),
    ("Quill", "application/vnd.ms-publisher"),
    *((f"Props{version}", "application/vnd.ms-project") for version in (9, 12, 14)),
    *((f"   1{version}", "application/vnd.ms-project") for version in ("", "9", "12", "14")),
    ("MN0", WORKS),
    ("MatOST", WORKS),
    ("PerfectOffice_MAIN", "application/vnd.wordperfect"),
    ("EncryptedPackage", LOCKED_PACKAGE),
)


def zip_type(read_at: ReadAt, size: int) -> str | None:
    """Return the type of a zip file according to the entry names in its central directory.

    If the directory is missing because the file is cut off, use the names in the first local headers.
    """
    mimetype = _mimetype_entry(read_at(0, 256))
    if mimetype in MIMETYPE_ENTRIES:
        return mimetype
    directory = dict(_directory_entries(read_at, size))
    parts = directory or dict(_local_entries(read_at(0, 64 * 1024)))
    if not parts:
        return None
    if "[Content_Types].xml" in parts or "_rels/.rels" in parts:
        for start, mime in OFFICE_PARTS:
            if any(name.startswith(start) for name in parts):
                return mime
    if apple := _apple_type(read_at, parts):
        return apple
    for part, mime in ARCHIVE_PARTS:
        if part in parts:
            return mime
    return "application/zip" if directory else None


def _apple_type(read_at: ReadAt, parts: dict[str, int]) -> str | None:
    # Only Keynote documents have slides. All three iWork types can contain tables and therefore a calculation engine.
    if "Index/Document.iwa" in parts:
        if any(name.startswith(("Index/Slide", "Index/MasterSlide", "Index/TemplateSlide")) for name in parts):
            return KEYNOTE
        message = APPLE_MESSAGE.search(_part(read_at, parts["Index/Document.iwa"])[:64])
        has_tables = "Index/CalculationEngine.iwa" in parts
        is_numbers = message[1] == b"\x01" if message else has_tables
        return NUMBERS if is_numbers else PAGES
    if any(f"{name}.apxl{end}" in parts for name in ("index", "presentation") for end in ("", ".gz")):
        return KEYNOTE
    if "index.xml" in parts:
        root = APPLE_ROOT.search(_part(read_at, parts["index.xml"]))
        return APPLE_NAMESPACES.get(root[2]) if root else None
    return None


def _part(read_at: ReadAt, offset: int) -> bytes:
    # Return the first bytes of a stored or deflated zip entry, or b"" for other compression methods.
    header = read_at(offset, 30)
    data = read_at(offset + 30 + le(header, 26, 2) + le(header, 28, 2), MAX_PART)
    if le(header, 8, 2) != 8:
        return data if le(header, 8, 2) == 0 else b""
    try:
        return zlib.decompressobj(-15).decompress(data, MAX_PART)
    except zlib.error:
        return b""


def _mimetype_entry(head: bytes) -> str:
    # Use the first entry's content only if the entry is named `mimetype` and is not compressed.
    if head[30:38] != b"mimetype" or le(head, 26, 2) != 8 or le(head, 8, 2) != 0:
        return ""
    start = 38 + le(head, 28, 2)
    length = le(head, 18, 4)
    return (
        head[start : start + min(length, 100)].decode("ascii", "replace").strip()
        if length
        else _until_header(head, start)
    )


def _until_header(head: bytes, start: int) -> str:
    # In a streamed entry, the length follows the data, so read up to the next header.
    return head[start:].split(b"PK", 1)[0].decode("ascii", "replace").strip()


def _directory_entries(read_at: ReadAt, size: int) -> Iterator[tuple[str, int]]:
    # Yield names with the offsets of their local headers. The end-of-directory record has 22 bytes and a comment of up
    # to 65,535 bytes, so it is in the last 66,000 bytes.
    tail_size = min(size, 66_000)
    tail = read_at(size - tail_size, tail_size)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) < end + 22:
        return
    length, start = le(tail, end + 12, 4), le(tail, end + 16, 4)
    if start + length > size:
        return
    directory = read_at(start, min(length, MAX_DIRECTORY))
    offset = 0
    for _ in range(MAX_NAMES):
        if directory[offset : offset + 4] != b"PK\x01\x02":
            return
        name = le(directory, offset + 28, 2)
        yield directory[offset + 46 : offset + 46 + name].decode("utf-8", "replace"), le(directory, offset + 42, 4)
        offset += 46 + name + le(directory, offset + 30, 2) + le(directory, offset + 32, 2)


def _local_entries(head: bytes) -> Iterator[tuple[str, int]]:
    # An entry can itself be a zip file, so skip its data instead of searching it for further headers.
    offset = head.find(b"PK\x03\x04")
    for _ in range(MAX_NAMES):
        if head[offset : offset + 4] != b"PK\x03\x04" or offset < 0:
            return
        name = le(head, offset + 26, 2)
        yield head[offset + 30 : offset + 30 + name].decode("utf-8", "replace"), offset
        start = offset + 30 + name + le(head, offset + 28, 2)
        length = le(head, offset + 18, 4)
        is_streamed = le(head, offset + 6, 2) & 8 and not length
        offset = _after_stream(head, start) if is_streamed else start + length


def _after_stream(head: bytes, start: int) -> int:
    # A streamed entry is followed by an optional signature and three numbers. The second one is the entry's length.
    offset = head.find(b"PK\x03\x04", start)
    while offset >= 0 and le(head, offset - 8, 4) not in (offset - start - 12, offset - start - 16):
        offset = head.find(b"PK\x03\x04", offset + 4)
    return offset


def ole2_type(read_at: ReadAt, size: int) -> str | None:
    """Return the type of an OLE2 file according to the stream names in its directory.

    Read at most `MAX_SECTORS` sectors.
    """
    header = read_at(0, 512)
    if le(header, 30, 2) not in (9, 12):
        return None
    sector = 1 << le(header, 30, 2)
    position, directory = le(header, 48, 4), b""
    for _ in range(MAX_SECTORS):
        if (position + 2) * sector > size + sector:
            break
        directory += read_at((position + 1) * sector, sector)
        position = _next_sector(read_at, header, position, sector)
    streams = dict(_root_entries(directory)) or dict(_ole2_entries(directory))
    mime = next((mime for stream, mime in OLE2_STREAMS if stream in streams), None)
    if mime is None and "CONTENTS" in streams:
        start = _stream_start(read_at, header, directory, streams["CONTENTS"])
        return WORKS if read_at(start, 8).startswith(WORKS_TEXT) else None
    return mime


def _stream_start(read_at: ReadAt, header: bytes, directory: bytes, index: int) -> int:
    # Streams of less than 4096 bytes are stored inside another stream, which starts at the root entry's sector (MS-CFB
    # §2.4).
    sector = 1 << le(header, 30, 2)
    start, length = le(directory, 128 * index + 116, 4), le(directory, 128 * index + 120, 4)
    if length >= le(header, 56, 4):
        return (start + 1) * sector
    skipped, rest = divmod(64 * start, sector)
    position = le(directory, 116, 4)
    for _ in range(min(skipped, MAX_SECTORS)):
        position = _next_sector(read_at, header, position, sector)
    return (position + 1) * sector + rest


def _ole2_entries(directory: bytes) -> Iterator[tuple[str, int]]:
    for index in range(len(directory) // 128):
        if name := _ole2_name(directory, index):
            yield name, index


def _ole2_name(directory: bytes, index: int) -> str:
    entry = directory[128 * index : 128 * index + 128]
    length = min(le(entry, 64, 2), 64)
    in_use = length >= 2 and entry[66:67] in (b"\1", b"\2", b"\5")
    return entry[: length - 2].decode("utf-16-le", "replace") if in_use else ""


def _root_entries(directory: bytes) -> Iterator[tuple[str, int]]:
    # Use only names directly under the root, which form a tree of sibling entries (MS-CFB §2.6.4). Other names belong
    # to embedded files, such as a workbook in a presentation or an attachment in an e-mail.
    waiting, seen = [le(directory, 76, 4)], {0}
    while waiting:
        index = waiting.pop()
        if index not in seen and index < len(directory) // 128:
            seen.add(index)
            yield _ole2_name(directory, index), index
            waiting += (le(directory, 128 * index + 68, 4), le(directory, 128 * index + 72, 4))


def _next_sector(read_at: ReadAt, header: bytes, position: int, sector: int) -> int:
    table, index = divmod(position, sector // 4)
    # The header lists only the first 109 sectors of the allocation table. For later ones, return a number beyond the
    # end of any file.
    if table >= 109:
        return 0xFFFFFFFE
    offset = (le(header, 76 + 4 * table, 4) + 1) * sector + 4 * index
    entry = read_at(offset, 4)
    return le(entry, 0, 4) if len(entry) == 4 else 0xFFFFFFFE


INSPECT: dict[str, Inspect] = {
    "zip": zip_type,
    "ole2": ole2_type,
    "mp4": iso_media_type,
    "ebml": ebml_type,
    "ogg": ogg_type,
    "asf": asf_type,
    "id3": id3_type,
}
"""Maps signature families to the functions that inspect the container's contents."""

FAMILY_TYPES: dict[str, tuple[str, ...]] = {
    "zip": ("application/zip", "application/epub+zip", "application/java-archive", OOXML, ODF, "application/vnd."),
    "ole2": ("application/msword", "application/vnd.ms-", "application/vnd.visio", "application/x-msi"),
    "mp4": (
        "video/mp4",
        "audio/mp4",
        "video/quicktime",
        "video/3gpp",
        "audio/3gpp",
        "image/heic",
        "image/heif",
        "image/avif",
    ),
    "ebml": ("video/webm", "audio/webm", "video/x-matroska", "audio/x-matroska"),
    "ogg": ("audio/ogg", "video/ogg"),
    "asf": ("video/x-ms-", "audio/x-ms-"),
}
"""Maps signature families to type prefixes. If a container's contents cannot be read, a declared type with one of its
family's prefixes is accepted."""
