"""What the first bytes say: our own table of signatures, read from the top; the first row that proves wins.

A row proves its type when its fixed bytes stand there and the structure behind them is valid (decision 3);
with the fixed bytes alone, or in a row without a structure, it only hints, and a short signature says nothing then.
`family` names the container whose inside decides (`containers.py`), `also` the types that begin with the very same
bytes, `textual` the formats that may be clean text throughout: for all others clean text behind the fixed bytes means
that the bytes are words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from artifacts.core.detection.file_signatures import FILES
from artifacts.core.detection.media_signatures import MEDIA
from artifacts.core.detection.signature import Signature

HEAD = 64 * 1024
"""Bytes of a file that detection looks at first; libmagic needs 8 KB for .xls, office files more."""


@dataclass(frozen=True, slots=True)
class Match:
    """What a row says of a head: its type, and whether that is proof."""

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
"""Root element of an XML document, without its prefix → what its name space holds, and its type."""

RIFF_BRANDS = frozenset({"image/webp", "audio/wav", "video/x-msvideo", "audio/midi"})
ROOT = re.compile(rb"<(?:[\w.-]{1,40}:)?([\w.-]{1,80})[\s>/]")
MARKUP = (
    (re.compile(rb"<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>]", re.I), "text/html"),
    (re.compile(rb"<svg[\s>]|<!doctype\s+svg", re.I), "image/svg+xml"),
    (re.compile(rb"<\?xml[\s?]", re.I), "application/xml"),
)
"""Words that name a text's own type at its beginning, the more telling first."""


TELLING = 3
"""Bytes beside NUL that a signature needs to name a type unproved: many a format begins with NUL, NUL, 2, NUL."""

BEFORE_WORDS = b"\xef\xbb\xbf\t\r\n\f "
WORDS_BEFORE = 1024
"""What may stand before a textual format's first words, and how far (readers look for `%PDF-` in the first 1024)."""


def match(head: bytes) -> Match | None:
    """What the bytes at the beginning of a file say, proof before hints; None when no row knows them."""
    hint: Match | None = None
    words = head[:WORDS_BEFORE].lstrip(BEFORE_WORDS) + head[WORDS_BEFORE:]
    for row in SIGNATURES:
        start = words if row.textual else head
        if not start.startswith(row.fixed, row.offset) or not _has_brand(row, head):
            continue
        if row.structure is not None and row.structure(start):
            return Match(row.mime, True, row.family, row.also, row.textual)
        if hint is None and len(row.fixed.replace(b"\0", b"")) >= TELLING:
            hint = Match(row.mime, False, row.family, row.also, row.textual)
    return hint


def text_type(head: bytes) -> str | None:
    """The type that a text names at its beginning: HTML, XML and what is written in it, calendar, card, captions,
    PostScript; None otherwise.
    """
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
    name_space, mime = ROOTS.get(_root_element(start), (b"\0", ""))
    if name_space in start:
        return mime
    if start.startswith(b"<?xml") and _root_element(start) not in (b"", b"head", b"body"):
        return "application/xml"
    return next((mime for pattern, mime in MARKUP if pattern.search(start[:2048])), None)


def _root_element(start: bytes) -> bytes:
    """The name of the first element, without its prefix, behind declarations and comments; empty when none is seen."""
    for _ in range(50):
        start = start.lstrip()
        if not start.startswith((b"<?", b"<!")):
            break
        end = b"-->" if start.startswith(b"<!--") else b">"
        start = start.partition(end)[2]
    found = ROOT.match(start)
    return found[1] if found else b""


def _has_brand(row: Signature, head: bytes) -> bool:
    """Brands of RIFF stand behind its mark: four letters alone at offset 8 say nothing."""
    return row.mime not in RIFF_BRANDS or row.offset != 8 or head[:4] in (b"RIFF", b"RIFX", b"RF64")
