"""Find the type of a container by its contents: office file or archive, audio or video.

Every function reads a few places through `read_at`, and returns None if they do not show the contents. Then the file
keeps the type of its signature. The work is bounded no matter what the bytes claim, and nothing is decompressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.core.detection.media_containers import asf_type, ebml_type, id3_type, iso_media_type, ogg_type
from artifacts.core.detection.structures import le
from artifacts.core.store import ReadAt

Inspect = Callable[[ReadAt, int], str | None]
MAX_NAMES = 2_000
MAX_DIRECTORY = 1 << 20
MAX_SECTORS = 128

OFFICE_PARTS = (
    ("word/vbaProject.bin", "application/vnd.ms-word.document.macroenabled.12"),
    ("xl/vbaProject.bin", "application/vnd.ms-excel.sheet.macroenabled.12"),
    ("ppt/vbaProject.bin", "application/vnd.ms-powerpoint.presentation.macroenabled.12"),
    ("xl/workbook.bin", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    ("word/", f"{OOXML}wordprocessingml.document"),
    ("xl/", f"{OOXML}spreadsheetml.sheet"),
    ("ppt/", f"{OOXML}presentationml.presentation"),
    ("visio/", "application/vnd.visio"),
    ("FixedDoc", "application/oxps"),
)
"""Prefix of a name inside an Office Open XML package → the package's type. More specific prefixes come first."""

OFFICE_PROGRAMS = (
    (f"{OOXML}wordprocessingml.", "application/vnd.ms-word."),
    (f"{OOXML}spreadsheetml.", "application/vnd.ms-excel."),
    (f"{OOXML}presentationml.", "application/vnd.ms-powerpoint."),
)
"""Prefixes of types of the same program, whose documents, templates, slide shows and add-ins have the same parts."""

ZIP_PACKAGES = frozenset({"application/vnd.xmind.workbook"})
"""Packages that only their file name distinguishes from other zip files."""

ARCHIVE_PARTS = (
    ("AndroidManifest.xml", "application/vnd.android.package-archive"),
    ("META-INF/MANIFEST.MF", "application/java-archive"),
    ("Index/Document.iwa", "application/vnd.apple.pages"),
    ("doc.kml", "application/vnd.google-earth.kmz"),
    ("OFD.xml", "application/ofd"),
    ("3D/3dmodel.model", "model/3mf"),
)
"""Name inside another package built on zip → the package's type."""

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
"""Accepted contents of an uncompressed first entry named `mimetype` (EPUB, OpenDocument)."""

LOCKED_PACKAGE = "application/x-ole-storage"
"""Type of an office file with a password; only the file name shows which program it belongs to."""

OLE2_STREAMS = (
    ("WordDocument", "application/msword"),
    ("Workbook", "application/vnd.ms-excel"),
    ("Book", "application/vnd.ms-excel"),
    ("PowerPoint Document", "application/vnd.ms-powerpoint"),
    ("__properties_version1.0", "application/vnd.ms-outlook"),
    ("VisioDocument", "application/vnd.visio"),
    ("BodyText", "application/x-hwp"),
    ("Quill", "application/vnd.ms-publisher"),
    ("EncryptedPackage", LOCKED_PACKAGE),
)


def zip_type(read_at: ReadAt, size: int) -> str | None:
    """Return the type of a zip by the names in its central directory.

    If the directory is cut off, the names in the first local headers are used.
    """
    mimetype = _mimetype_entry(read_at(0, 256))
    if mimetype in MIMETYPE_ENTRIES:
        return mimetype
    whole = list(_directory_names(read_at, size))
    names = whole or list(_local_names(read_at(0, 64 * 1024)))
    if not names:
        return None
    if "[Content_Types].xml" in names or "_rels/.rels" in names:
        for start, mime in OFFICE_PARTS:
            if any(name.startswith(start) for name in names):
                return mime
    for part, mime in ARCHIVE_PARTS:
        if part in names:
            return mime
    return "application/zip" if whole else None


def _mimetype_entry(head: bytes) -> str:
    # The content of the first entry is used only if it is named `mimetype` and stored uncompressed.
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
    # The length of a streamed entry comes after its data, so the data ends at the next header.
    return head[start:].split(b"PK", 1)[0].decode("ascii", "replace").strip()


def _directory_names(read_at: ReadAt, size: int) -> Iterator[str]:
    # The end record lies within the last 66,000 bytes: 22 bytes and a comment of up to 65,535.
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
        yield directory[offset + 46 : offset + 46 + name].decode("utf-8", "replace")
        offset += 46 + name + le(directory, offset + 30, 2) + le(directory, offset + 32, 2)


def _local_names(head: bytes) -> Iterator[str]:
    offset = head.find(b"PK\x03\x04")
    for _ in range(MAX_NAMES):
        if offset < 0:
            return
        name = le(head, offset + 26, 2)
        yield head[offset + 30 : offset + 30 + name].decode("utf-8", "replace")
        offset = head.find(b"PK\x03\x04", offset + 30)


def ole2_type(read_at: ReadAt, size: int) -> str | None:
    """Return the type of an OLE2 file by the names in its directory, reading at most `MAX_SECTORS` sectors."""
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
    streams = set(_root_names(directory)) or set(_ole2_names(directory))
    return next((mime for stream, mime in OLE2_STREAMS if stream in streams), None)


def _ole2_names(directory: bytes) -> Iterator[str]:
    for index in range(len(directory) // 128):
        if name := _ole2_name(directory, index):
            yield name


def _ole2_name(directory: bytes, index: int) -> str:
    entry = directory[128 * index : 128 * index + 128]
    length = min(le(entry, 64, 2), 64)
    in_use = length >= 2 and entry[66:67] in (b"\1", b"\2", b"\5")
    return entry[: length - 2].decode("utf-16-le", "replace") if in_use else ""


def _root_names(directory: bytes) -> Iterator[str]:
    # Only names directly under the root are used. They are found by the tree of siblings (MS-CFB §2.6.4). Deeper names
    # belong to embedded files, such as the workbook in a presentation or an attachment in an e-mail.
    waiting, seen = [le(directory, 76, 4)], {0}
    while waiting:
        index = waiting.pop()
        if index not in seen and index < len(directory) // 128:
            seen.add(index)
            yield _ole2_name(directory, index)
            waiting += (le(directory, 128 * index + 68, 4), le(directory, 128 * index + 72, 4))


def _next_sector(read_at: ReadAt, header: bytes, position: int, sector: int) -> int:
    table, index = divmod(position, sector // 4)
    # The header lists only 109 sectors of the allocation table. Beyond them, return a number that no file reaches.
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
"""Family of a signature → the function that looks inside."""

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
"""Family → prefixes of its types. A declared type with such a prefix is kept if the contents could not be read."""
