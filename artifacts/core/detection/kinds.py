"""Tables of MIME types, file name extensions and content kinds, with lookup functions (ABR-1.2, ABR-1.3).

If no table lists a type, the part before the slash determines its kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from artifacts.core.detection.extensions import EXTENSION_MIMES, FILENAME_MIMES, ODF, OOXML
from capabilities.core.vocabulary import Kind
from capabilities.core.vocabulary import is_text_mime as is_text_mime

OCTET_STREAM = "application/octet-stream"
PLAIN_TEXT = "text/plain"

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "application/acrobat": "application/pdf",
        "application/bzip2": "application/x-bzip2",
        "application/csv": "text/csv",
        "application/docx": f"{OOXML}wordprocessingml.document",
        "application/java-archive-file": "application/java-archive",
        "application/msaccess": "application/x-msaccess",
        "application/vnd.ms-access": "application/x-msaccess",
        "application/x-123": "application/vnd.lotus-1-2-3",
        "application/msproj": "application/vnd.ms-project",
        "application/msproject": "application/vnd.ms-project",
        "application/x-msproject": "application/vnd.ms-project",
        "application/wordperfect": "application/vnd.wordperfect",
        "application/wordperfect5.1": "application/vnd.wordperfect",
        "application/x-wordperfect": "application/vnd.wordperfect",
        "application/x-mif": "application/vnd.mif",
        "application/x-iwork-keynote-sffkey": "application/vnd.apple.keynote",
        "application/x-iwork-numbers-sffnumbers": "application/vnd.apple.numbers",
        "application/x-iwork-pages-sffpages": "application/vnd.apple.pages",
        "application/msonenote": "application/onenote",
        "application/x-fictionbook": "application/x-fictionbook+xml",
        "application/x-bytecode.python": "application/x-python-bytecode",
        "application/x-dbf": "application/vnd.dbf",
        "application/x-redhat-package-manager": "application/x-rpm",
        "application/x-lzh": "application/x-lha",
        "application/x-hwp-v5": "application/x-hwp",
        "application/vnd.hancom.hwp": "application/x-hwp",
        "application/vnd.hancom.hwpx": "application/hwp+zip",
        "application/haansofthwp": "application/x-hwp",
        "application/x-pcapng": "application/vnd.tcpdump.pcap",
        "application/x-x509-ca-cert": "application/pkix-cert",
        "application/ms-tnef": "application/vnd.ms-tnef",
        "audio/vnd.dolby.dd-raw": "audio/ac3",
        "image/x.nifti": "application/x-nifti",
        "video/x-jng": "image/x-jng",
        "application/x-unix-archive": "application/x-archive",
        "application/msexcel": "application/vnd.ms-excel",
        "application/mspowerpoint": "application/vnd.ms-powerpoint",
        "application/ogg-audio": "audio/ogg",
        "application/rtf": "application/rtf",
        "application/vnd.rar": "application/x-rar-compressed",
        "application/x-7zip": "application/x-7z-compressed",
        "application/x-bzip": "application/x-bzip2",
        "application/x-dosexec": "application/vnd.microsoft.portable-executable",
        "application/x-msdownload": "application/vnd.microsoft.portable-executable",
        "application/x-gzip": "application/gzip",
        "application/x-javascript": "text/javascript",
        "application/javascript": "text/javascript",
        "application/x-pdf": "application/pdf",
        "application/x-rar": "application/x-rar-compressed",
        "application/x-sqlite3": "application/vnd.sqlite3",
        "application/x-yaml": "application/yaml",
        "application/x-zip": "application/zip",
        "application/x-zip-compressed": "application/zip",
        "application/zstandard": "application/zstd",
        "application/x-zstd": "application/zstd",
        "application/font-woff": "font/woff",
        "application/x-font-ttf": "font/ttf",
        "application/x-font-otf": "font/otf",
        "application/vnd.ms-opentype": "font/otf",
        "audio/aacp": "audio/aac",
        "audio/m4a": "audio/mp4",
        "audio/mp3": "audio/mpeg",
        "audio/mpeg3": "audio/mpeg",
        "audio/mpg": "audio/mpeg",
        "audio/opus": "audio/ogg",
        "audio/vnd.wave": "audio/wav",
        "audio/wave": "audio/wav",
        "audio/x-aac": "audio/aac",
        "audio/x-aiff": "audio/aiff",
        "audio/x-flac": "audio/flac",
        "audio/x-hx-aac-adts": "audio/aac",
        "audio/x-hx-aac-adif": "audio/aac",
        "audio/x-m4a": "audio/mp4",
        "audio/x-midi": "audio/midi",
        "audio/x-mp3": "audio/mpeg",
        "audio/x-mpeg": "audio/mpeg",
        "audio/x-pn-wav": "audio/wav",
        "audio/x-wav": "audio/wav",
        "image/apng": "image/apng",
        "image/jpg": "image/jpeg",
        "image/pjpeg": "image/jpeg",
        "image/svg": "image/svg+xml",
        "image/tif": "image/tiff",
        "image/vnd.zbrush.pcx": "image/x-pcx",
        "image/x-cmu-raster": "image/x-sun-raster",
        "image/vnd.microsoft.icon": "image/x-icon",
        "image/x-bmp": "image/bmp",
        "image/x-ms-bmp": "image/bmp",
        "image/x-png": "image/png",
        "image/x-tiff": "image/tiff",
        "image/x-photoshop": "image/vnd.adobe.photoshop",
        "text/html5": "text/html",
        "text/json": "application/json",
        "text/rtf": "application/rtf",
        "text/x-csv": "text/csv",
        "text/x-markdown": "text/markdown",
        "text/x-script.python": "text/x-python",
        "text/x-yaml": "application/yaml",
        "text/yaml": "application/yaml",
        "text/xml": "application/xml",
        "video/avi": "video/x-msvideo",
        "video/m4v": "video/mp4",
        "video/msvideo": "video/x-msvideo",
        "video/mpg": "video/mpeg",
        "video/x-flv": "video/x-flv",
        "video/x-m4v": "video/mp4",
        "video/x-mpeg": "video/mpeg",
    }
)
"""Maps each alias of a type to the name that we use, which is also the name in providers' lists of accepted types."""

UNDECLARED = frozenset(
    {
        OCTET_STREAM,
        "application/unknown",
        "application/x-unknown",
        "application/x-empty",
        "application/force-download",
        "application/x-download",
        "binary/octet-stream",
        "inode/x-empty",
        "application/binary",
    }
)
"""Generic types. They are treated as if no type had been declared."""

DOCUMENT_TYPES = frozenset(
    {
        "application/pdf",
        "application/rtf",
        "application/msword",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/vnd.ms-outlook",
        "application/vnd.ms-project",
        "application/vnd.ms-works",
        "application/vnd.wordperfect",
        "application/vnd.visio",
        "application/epub+zip",
        "application/x-mobipocket-ebook",
        "application/vnd.apple.pages",
        "application/vnd.apple.numbers",
        "application/vnd.apple.keynote",
        "application/x-ole-storage",
        "application/onenote",
        "application/vnd.lotus-1-2-3",
        "application/x-quattro-pro",
        "application/vnd.ms-htmlhelp",
        "application/oxps",
        "application/ofd",
        "application/x-hwp",
        "application/hwp+zip",
        "application/vnd.ms-publisher",
        "application/vnd.ms-tnef",
        "application/vnd.hp-pcl",
        "image/vnd.djvu",
    }
)
"""Document types: office files, PDF and books. `DOCUMENT_PREFIXES` covers entire families of types."""

DOCUMENT_PREFIXES = (
    OOXML,
    ODF,
    "application/vnd.ms-word.",
    "application/vnd.ms-excel.",
    "application/vnd.ms-powerpoint.",
)

ARCHIVE_TYPES = frozenset(
    {
        "application/zip",
        "application/gzip",
        "application/x-7z-compressed",
        "application/x-rar-compressed",
        "application/x-bzip2",
        "application/x-xz",
        "application/x-tar",
        "application/zstd",
        "application/x-lz4",
        "application/x-compress",
        "application/x-lzip",
        "application/x-lzop",
        "application/x-lzma",
        "application/x-arj",
        "application/x-lha",
        "application/x-cpio",
        "application/x-squashfs",
        "application/x-ms-wim",
        "application/x-rpm",
        "application/java-archive",
        "application/vnd.android.package-archive",
        "application/vnd.ms-cab-compressed",
        "application/x-iso9660-image",
        "application/vnd.debian.binary-package",
        "application/x-archive",
        "application/vnd.microsoft.portable-executable",
        "application/x-executable",
        "application/x-mach-binary",
        "application/java-vm",
        "application/wasm",
        "application/vnd.sqlite3",
        "application/x-msaccess",
        "application/vnd.ms-outlook-pst",
        "application/cbor",
        "application/vnd.apache.parquet",
        "application/x-hdf5",
        "application/x-netcdf",
        "application/x-matlab-data",
        "application/vnd.apache.arrow.file",
        "application/vnd.apache.avro",
        "application/x-orc",
        "application/x-safetensors",
        "application/geopackage+sqlite3",
        "font/ttf",
        "font/otf",
        "font/woff",
        "font/woff2",
        "font/collection",
    }
)
"""Types of kind `other` that are never text: archives, programs, databases and fonts."""

VIDEO_TYPES = frozenset({"application/mxf", "application/vnd.rn-realmedia"})
"""Video types that do not begin with `video/`."""

_TOP_LEVEL_KINDS = {"text": Kind.TEXT, "image": Kind.IMAGE, "audio": Kind.AUDIO, "video": Kind.VIDEO}
_MIME = re.compile(r"^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$")


def clean_mime(raw: object) -> str | None:
    """Return the declared type in its normalized form, or None if it is absent, malformed or generic.

    Parameters, quotes, spaces and case are ignored: ` "IMAGE/JPG"; q=1` becomes `image/jpeg`.
    """
    if not isinstance(raw, str):
        return None
    name = raw.split(";", 1)[0].split(",", 1)[0].strip().strip("\"'").strip().lower()
    if not _MIME.match(name):
        return None
    name = ALIASES.get(name, name)
    return None if name in UNDECLARED else name


def mime_kind(mime: str) -> Kind:
    """Return the kind of content of a normalized type, or `other` if no table lists the type (ABR-1.2)."""
    if is_text_mime(mime):
        return Kind.TEXT
    if mime in DOCUMENT_TYPES or mime.startswith(DOCUMENT_PREFIXES):
        return Kind.DOCUMENT
    if mime in VIDEO_TYPES:
        return Kind.VIDEO
    return _TOP_LEVEL_KINDS.get(mime.partition("/")[0], Kind.OTHER)


def is_binary_mime(mime: str) -> bool:
    """Return whether files of this type are never clean text: media, documents, archives, programs and fonts."""
    return mime in ARCHIVE_TYPES or mime_kind(mime) not in (Kind.TEXT, Kind.OTHER)


def filename_extension(filename: str | None) -> str:
    """Return the extension in lower case without the dot, or "" if there is none (as in `.bashrc`)."""
    stem, dot, extension = (filename or "").replace("\\", "/").rsplit("/", 1)[-1].rpartition(".")
    return extension.strip().lower() if dot and stem else ""


def filename_mime(filename: str | None) -> str | None:
    base = (filename or "").replace("\\", "/").rsplit("/", 1)[-1].lower()
    return FILENAME_MIMES.get(base) or EXTENSION_MIMES.get(filename_extension(filename))
