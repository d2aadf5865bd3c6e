"""What do hostile files contain? Text, other forms and facts, decoded in a short-lived process.

The web process hands an open file to `python -m artifacts.extract`, which has limits on memory, processor time and
output, no network, no secrets in its environment and no Django. Whatever happens there (a bomb, a crash, a time-out)
comes back as None or as facts with a `reason`, never as an exception.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from artifacts.core.detection.extensions import ODF, OOXML
from artifacts.core.store import LocalFile
from artifacts.extract.answer_cache import AnswerCache
from artifacts.extract.process import Result, run
from capabilities.core.message import Converted, ConvertTo, Inspection, PageImages, Text, blob_of
from capabilities.runtime import owned

MAX_CHARS = 2_000_000
MAX_IMAGE_BYTES = 20 * 1024 * 1024
THUMBNAIL_SIDE = 256
MAX_PAGES = 50
"""Pages of a PDF that are drawn in one go."""

answers = owned(AnswerCache)
"""What was taken out of files whose hash is known."""

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
"""Type → the reader that takes its text; every other type has no text to extract."""

READERS_OF_TEXT = frozenset({"html"})
"""Readers of files that are text themselves, whose encoding may be known."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What can be counted or measured: None where unknown. `reason` says why nothing was: `failed`, `timeout` …"""

    pages: int | None = None
    seconds: float | None = None
    width: int | None = None
    height: int | None = None
    encrypted: bool | None = None
    reason: str = ""


def can_extract(mime_type: str) -> bool:
    """Whether `extract_text` knows a way for that (cleaned) type."""
    return mime_type in READERS


def extract_text(
    path: LocalFile, mime_type: str, max_chars: int = MAX_CHARS, *, cache_key: str = "", encoding: str | None = None
) -> Text | None:
    """The text of a document with `[page n]`, `[sheet: name]` or `[slide n]` marks; None when there is none to have.

    `encoding` is what is known of a file that is text itself; without it, and for every other, the reader finds out.

    `source` is the reader's name; `note` is a `[truncated: …]` line when the document holds more than was taken. With
    `cache_key`, the hash of the bytes, the answer is kept and the same question is not put to the process again.
    """
    reader = READERS.get(mime_type)
    if reader is None:
        return None
    options: dict[str, object] = {"reader": reader, "max_chars": max_chars}
    if reader in READERS_OF_TEXT and encoding:
        options["encoding"] = encoding
    result = _run_or_reuse(cache_key, path, "text", options, 4 * max_chars + 4096)
    words = result.payload.decode("utf-8", "replace")
    if result.reason or not words.strip():
        return None
    share = result.header.get("share")
    known = share if isinstance(share, int | float) and 0 <= share <= 1 else None
    return Text(words, reader, str(result.header.get("note", "")), known)


def convert_image(path: LocalFile, target: ConvertTo, *, cache_key: str = "") -> Converted | None:
    """The image in one of the target's types and within its limits, upright; None when that cannot be had.

    With `cache_key`, the hash of the bytes, the answer is kept as `extract_text` keeps its own.
    """
    limit = min(target.max_bytes or MAX_IMAGE_BYTES, MAX_IMAGE_BYTES)
    options = {"mime_types": list(target.mime_types), "max_bytes": limit, "max_side": target.max_side}
    result = _run_or_reuse(cache_key, path, "image", options, limit + 4096)
    if result.reason:
        return None
    width, height, mime = (result.header.get(name) for name in ("width", "height", "mime_type"))
    if not isinstance(width, int) or not isinstance(height, int) or not isinstance(mime, str):
        return None
    pixels = result.header.get("original_pixels")
    return Converted(blob_of(result.payload), mime, width, height, pixels if isinstance(pixels, int) else None)


def draw_pages(
    path: LocalFile, target: ConvertTo, *, first: int = 1, count: int = MAX_PAGES, cache_key: str = ""
) -> PageImages | None:
    """Pages of a PDF as they look, each in one of the target's types and within its limits; None when none can be had.

    All images together have at most `MAX_IMAGE_BYTES`, so fewer may come than were asked for; `cache_key` as in
    `extract_text`.
    """
    limit = min(target.max_bytes or MAX_IMAGE_BYTES, MAX_IMAGE_BYTES)
    options = {"mime_types": list(target.mime_types), "max_bytes": limit, "max_side": target.max_side}
    options |= {"first": max(first, 1), "count": min(count, MAX_PAGES), "max_total_bytes": MAX_IMAGE_BYTES}
    result = _run_or_reuse(cache_key, path, "pages", options, MAX_IMAGE_BYTES + 64 * 1024)
    listed, total = result.header.get("images"), result.header.get("pages")
    if result.reason or not isinstance(listed, list) or not isinstance(total, int):
        return None
    images, at = dict[int, Converted](), 0
    for each in listed:
        data, at = result.payload[at : at + each["bytes"]], at + each["bytes"]
        images[each["page"]] = Converted(blob_of(data), each["mime_type"], each["width"], each["height"])
    return PageImages(images, total) if images else None


def _run_or_reuse(
    cache_key: str, path: LocalFile, operation: str, options: Mapping[str, object], max_output: int
) -> Result:
    """The process's answer; the kept one where the bytes are known by their hash and were asked for before."""
    if not cache_key:
        return run(path, operation, options, max_output=max_output)
    key = (cache_key, operation, json.dumps(dict(options), sort_keys=True))
    return answers().answer(key, lambda: run(path, operation, options, max_output=max_output))


def thumbnail(path: LocalFile) -> bytes | None:
    """A PNG of the image, at most 256 pixels a side; None when it cannot be decoded."""
    options = {"mime_types": ["image/png"], "max_bytes": MAX_IMAGE_BYTES, "max_side": THUMBNAIL_SIDE}
    result = run(path, "image", options, max_output=MAX_IMAGE_BYTES + 4096)
    return None if result.reason else result.payload


def facts(path: LocalFile, mime_type: str, *, cache_key: str = "") -> Facts:
    """Pages of a PDF and whether it is encrypted, seconds of sound or video, pixels of an image.

    `cache_key` as in `extract_text`.
    """
    result = _run_or_reuse(cache_key, path, "facts", {"mime_type": mime_type}, 4096)
    if result.reason:
        return Facts(reason=result.reason)
    known = {name: result.header.get(name) for name in ("pages", "seconds", "width", "height", "encrypted")}
    return Facts(**known)  # type: ignore[arg-type]


def inspect(path: LocalFile, mime_type: str, *, cache_key: str = "") -> Inspection:
    """How long sound or video plays, and whether a PDF wants a password; `cache_key` as in `extract_text`."""
    measured = facts(path, mime_type, cache_key=cache_key)
    return Inspection(measured.seconds, bool(measured.encrypted))
