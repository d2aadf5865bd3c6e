"""Extract text, images and measurements from untrusted files in a short-lived child process.

The web process passes an open file to `artifacts/extract/__main__.py`. The child process has limits on memory,
processor time and output, no network, no secrets in its environment, and no Django. On Linux, the kernel also blocks
other files, programs and processes (`sandbox.py`). Failures of the child process (a decompression bomb, a crash, a
timeout) are never raised, but returned as None or as `Facts` with a `reason`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from artifacts.core.detection.encodings import count_invalid_bytes
from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.core.store import BLOCK, LocalFile
from artifacts.extract.answer_cache import answers
from artifacts.extract.drawing import MAX_IMAGE_BYTES
from artifacts.extract.process import Result, run
from artifacts.extract.stored_results import StoredResults
from capabilities.core.message import Converted, ConvertTo, Inspection, Text, make_blob

MAX_CHARS = 2_000_000
THUMBNAIL_SIDE = 256

READERS = {
    "application/pdf": "pdf",
    f"{OOXML}wordprocessingml.document": "docx",
    "application/vnd.ms-word.document.macroenabled.12": "docx",
    f"{OOXML}spreadsheetml.sheet": "xlsx",
    "application/vnd.ms-excel.sheet.macroenabled.12": "xlsx",
    f"{OOXML}spreadsheetml.template": "xlsx",
    "application/vnd.ms-excel.sheet.binary.macroenabled.12": "xlsb",
    "application/vnd.ms-excel": "xls",
    f"{OOXML}presentationml.presentation": "pptx",
    f"{OOXML}presentationml.slideshow": "pptx",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": "pptx",
    f"{OOXML}presentationml.template": "pptx",
    "application/vnd.ms-word.template.macroenabled.12": "docx",
    "application/vnd.ms-excel.template.macroenabled.12": "xlsx",
    "application/vnd.ms-excel.addin.macroenabled.12": "xlsx",
    "application/vnd.ms-powerpoint.template.macroenabled.12": "pptx",
    "application/vnd.ms-powerpoint.slideshow.macroenabled.12": "pptx",
    f"{ODF}text-template": "odt",
    f"{ODF}spreadsheet-template": "ods",
    f"{ODF}presentation-template": "odp",
    f"{ODF}text": "odt",
    f"{ODF}spreadsheet": "ods",
    f"{ODF}presentation": "odp",
    f"{OOXML}wordprocessingml.template": "docx",
    "application/x-ipynb+json": "ipynb",
    "message/rfc822": "eml",
    "multipart/related": "mht",
    "application/vnd.ms-outlook": "msg",
    "application/rtf": "rtf",
    "application/msword": "doc",
    "application/vnd.ms-powerpoint": "ppt",
    "application/zip": "zip",
    "application/java-archive": "zip",
    "application/x-tar": "tar",
    "application/gzip": "tar",
    "application/x-bzip2": "tar",
    "application/x-xz": "tar",
    "application/epub+zip": "epub",
    "text/html": "html",
    "application/xhtml+xml": "html",
}
"""Maps types to the reader that extracts their text. No text can be extracted from other types."""

TEXT_VERSION = 1
"""Version of the text readers. Increase it when a reader finds text in more files, because the list of files without
text is stored on disk."""

MAIL_READERS = frozenset({"eml", "mht", "msg"})
"""Readers of formats that can have attachments."""

TEXT_READERS = frozenset({"html"})
"""Readers of text formats, whose encoding may already be known."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Measured properties of a file. An unknown property is None.

    If none is known, `reason` states why, such as `failed` or `timeout`.
    """

    pages: int | None = None
    seconds: float | None = None
    width: int | None = None
    height: int | None = None
    encrypted: bool | None = None
    reason: str = ""


def can_extract(mime_type: str) -> bool:
    return mime_type in READERS


def extract_text(
    path: LocalFile,
    mime_type: str,
    max_chars: int = MAX_CHARS,
    *,
    cache_key: str = "",
    stored: StoredResults | None = None,
    encoding: str | None = None,
) -> Text | None:
    """Return a document's text, or None if it has none.

    Markers such as `[page n]`, `[sheet: name]` and `[slide n]` separate its pages, sheets and slides. `encoding` is the
    encoding of a text file, if it is known. The result's `source` is the reader's name, or the encoding if some bytes
    do not decode. Its `note` is a `[truncated: …]` line if the document has more text. With `cache_key` (the hash of
    the bytes), the result is cached in memory. `stored` remembers documents without text, such as scans, so that they
    are not read again.
    """
    reader = READERS.get(mime_type)
    if reader is None:
        return None
    options: dict[str, object] = {"reader": reader, "max_chars": max_chars}
    if reader in TEXT_READERS and encoding:
        options["encoding"] = encoding
    result = _run_or_reuse(cache_key, path, "text", options, 4 * max_chars + 4096, stored)
    text = result.payload.decode("utf-8", "replace")
    if result.reason or not text.strip():
        return None
    share = result.header.get("share")
    known_share = share if isinstance(share, int | float) and 0 <= share <= 1 else None
    note, invalid_bytes = str(result.header.get("note", "")), 0
    if reader in TEXT_READERS and encoding and "\ufffd" in text:
        with path.open("rb") as source:
            invalid_bytes = count_invalid_bytes(iter(lambda: source.read(BLOCK), b""), encoding)
    return Text(text, encoding if invalid_bytes and encoding else reader, note, known_share, invalid_bytes)


def convert_image(path: LocalFile, target: ConvertTo, *, cache_key: str = "") -> Converted | None:
    """Rotate an image upright, and return it in a type and size that the target accepts, or return None if this fails.

    With `cache_key` (the hash of the bytes), the result is cached.
    """
    limit = min(target.max_bytes or MAX_IMAGE_BYTES, MAX_IMAGE_BYTES)
    options = {"mime_types": list(target.mime_types), "max_bytes": limit, "max_side": target.max_side}
    result = _run_or_reuse(cache_key, path, "image", options, limit + 4096)
    if result.reason:
        return None
    width, height, mime = (result.header.get(name) for name in ("width", "height", "mime_type"))
    if not isinstance(width, int) or not isinstance(height, int) or not isinstance(mime, str):
        return None
    pixels, frames = result.header.get("original_pixels"), result.header.get("frames")
    return Converted(
        make_blob(result.payload),
        mime,
        width,
        height,
        pixels if isinstance(pixels, int) else None,
        frames if isinstance(frames, int) else 1,
    )


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file attached to an e-mail. `filename` and `mime_type` are as declared in the e-mail, or empty."""

    data: bytes
    filename: str
    mime_type: str


def read_attachment(path: LocalFile, mime_type: str, number: int, max_bytes: int) -> Attachment | None:
    """Return an e-mail attachment, given its number in the extracted text (from 1).

    Return None if there is no such attachment or it is larger than `max_bytes`.
    """
    reader = READERS.get(mime_type)
    if reader not in MAIL_READERS:
        return None
    result = run(path, "attachment", {"reader": reader, "number": number}, max_output=max_bytes + 4096)
    if result.reason or len(result.payload) > max_bytes:
        return None
    return Attachment(result.payload, str(result.header["filename"]), str(result.header["mime_type"]))


def _run_or_reuse(
    cache_key: str,
    path: LocalFile,
    operation: str,
    options: Mapping[str, object],
    max_output: int,
    stored: StoredResults | None = None,
) -> Result:
    if not cache_key:
        return run(path, operation, options, max_output=max_output)
    key = (cache_key, operation, json.dumps(dict(options), sort_keys=True))
    stored_key = (*key, str(TEXT_VERSION))

    def find_or_run() -> Result:
        if stored and (found := stored.find(stored_key)):
            return found
        result = run(path, operation, options, max_output=max_output)
        if stored and result.reason == "no_text":
            stored.keep(stored_key, result)
        return result

    return answers().answer(key, find_or_run)


def thumbnail(path: LocalFile) -> bytes | None:
    """Return a PNG with sides of at most 256 pixels, or None if the image cannot be decoded."""
    options = {"mime_types": ["image/png"], "max_bytes": MAX_IMAGE_BYTES, "max_side": THUMBNAIL_SIDE}
    result = run(path, "image", options, max_output=MAX_IMAGE_BYTES + 4096)
    return None if result.reason else result.payload


def facts(path: LocalFile, mime_type: str, *, cache_key: str = "") -> Facts:
    """Return measured properties of a file: page count, encryption, duration in seconds, or image size.

    With `cache_key` (the hash of the bytes), the result is cached.
    """
    result = _run_or_reuse(cache_key, path, "facts", {"mime_type": mime_type}, 4096)
    if result.reason:
        return Facts(reason=result.reason)
    values = {name: result.header.get(name) for name in ("pages", "seconds", "width", "height", "encrypted")}
    return Facts(**values)  # type: ignore[arg-type]


def inspect(path: LocalFile, mime_type: str, *, cache_key: str = "") -> Inspection:
    """Return the duration of audio or video, and whether a document needs a password or is damaged.

    With `cache_key` (the hash of the bytes), the result is cached.
    """
    measured = facts(path, mime_type, cache_key=cache_key)
    damaged = measured.reason == "failed" and mime_type in READERS
    if damaged and mime_type == "application/pdf":
        # Retry with the PDF renderer, which can repair some damaged files. Model providers accept such files, too.
        options = {"mime_types": ["image/png"], "max_bytes": MAX_IMAGE_BYTES, "max_side": THUMBNAIL_SIDE}
        options |= {"first": 1, "count": 1, "max_total_bytes": MAX_IMAGE_BYTES}
        drawn = _run_or_reuse(cache_key, path, "pages", options, MAX_IMAGE_BYTES + 64 * 1024)
        return Inspection(None, drawn.reason == "encrypted", drawn.reason == "failed")
    return Inspection(measured.seconds, bool(measured.encrypted), damaged)


def weaknesses() -> list[str]:
    """Return the protections that the extraction process lacks on this system, as sentences for operators."""
    result = run(Path(os.devnull), "facts", {"mime_type": ""}, max_output=4096)
    sandbox = result.header.get("sandbox")
    if not isinstance(sandbox, dict):
        return [f"the process that reads files cannot be started ({result.reason or 'no answer'})"]
    missing = []
    if not sandbox.get("landlock"):
        missing.append("this system has no Landlock, so a hostile file might read what this user may read")
    if not sandbox.get("seccomp"):
        missing.append(
            "system calls are not filtered, so a hostile file might connect, start programs or end processes"
        )
    return missing
