"""Measure the page counts, durations and image sizes of files that must be parsed.

Runs only in the extraction process.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.extract.reading import RefusedError, open_zip

if TYPE_CHECKING:
    from artifacts.extract.legacy import CompoundFile

COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIPPED = (OOXML, ODF, "application/zip", "application/epub+zip", "application/java-archive")
PACKAGES = (*ZIPPED, "application/msword", "application/vnd.ms-", "application/rtf")
"""Type prefixes of zip-based packages that are opened to find out whether they need a password or are damaged."""

BARE_SHEETS = (b"\x09\x00\x04\x00", b"\x09\x02\x06\x00", b"\x09\x04\x06\x00")
"""First bytes of Excel 2, 3 and 4 files (the first record and its length), which are not compound files."""
FILEPASS, MAX_RECORDS, MAX_MANIFEST = 0x2F, 64, 16 * 1024 * 1024


def answer(source: BinaryIO, options: Mapping[str, Any]) -> tuple[dict[str, object], bytes]:
    """Return the measured properties of a file of this type, or an empty dictionary if there are none."""
    mime = str(options["mime_type"])
    if mime == "application/pdf":
        return _pdf(source), b""
    if mime.startswith(("audio/", "video/")):
        return _sound(source), b""
    if mime.startswith("image/"):
        return _image(source), b""
    return (_package(source, mime) if mime.startswith(PACKAGES) else {}), b""


def _pdf(source: BinaryIO) -> dict[str, object]:
    from pypdf import PdfReader

    reader = PdfReader(source)
    if reader.is_encrypted and not reader.decrypt(""):
        return {"encrypted": True}
    return {"pages": len(reader.pages), "encrypted": False}


def _sound(source: BinaryIO) -> dict[str, object]:
    from tinytag import TinyTag

    seconds = TinyTag.get(file_obj=source, tags=False).duration
    return {"seconds": round(seconds, 3)} if seconds else {}


def _image(source: BinaryIO) -> dict[str, object]:
    from PIL import Image

    from artifacts.extract.images import FORMATS, MAX_PIXELS

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    image = Image.open(source, formats=FORMATS)
    return {"width": image.width, "height": image.height}


def _package(source: BinaryIO, mime: str) -> dict[str, object]:
    from artifacts.extract.legacy import CompoundFile

    start = source.read(len(COMPOUND))
    source.seek(0)
    try:
        if start == COMPOUND:
            return {"encrypted": _is_locked(CompoundFile(source))}
        if mime == "application/rtf" and start.startswith(b"{\\rt"):
            return {"encrypted": False}
        if mime == "application/vnd.ms-excel" and start.startswith(BARE_SHEETS):
            return {"encrypted": _needs_password(source.read(MAX_MANIFEST))}
        if not start.startswith(b"PK"):
            raise RefusedError("failed")
        return {"encrypted": _has_encrypted_entries(open_zip(source))}
    except RefusedError as refusal:
        if str(refusal) == "encrypted":
            return {"encrypted": True}
        raise


def _is_locked(file: CompoundFile) -> bool:
    from artifacts.extract.legacy import ENCRYPTED, NO_ENCRYPTION

    try:
        if document := file.read("WordDocument"):
            return bool(struct.unpack_from("<H", document, 10)[0] & ENCRYPTED)
        if user := file.read("Current User"):
            return bool(struct.unpack_from("<I", user, 12)[0] != NO_ENCRYPTION)
    except struct.error as error:
        raise RefusedError("failed") from error
    return _needs_password(file.read("Workbook") or file.read("Book"))


def _needs_password(workbook: bytes) -> bool:
    at = 0
    for _ in range(MAX_RECORDS):
        if at + 4 > len(workbook):
            return False
        record, length = struct.unpack_from("<HH", workbook, at)
        if record == FILEPASS:
            return True
        at += 4 + length
    return False


def _has_encrypted_entries(package: zipfile.ZipFile) -> bool:
    # OpenDocument encrypts the entries of the package and declares this in its manifest.
    if "META-INF/manifest.xml" not in package.namelist():
        return False
    with package.open("META-INF/manifest.xml") as manifest:
        return b"encryption-data" in manifest.read(MAX_MANIFEST)
