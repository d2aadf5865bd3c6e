"""Opinions from outside the core: libmagic on types, charset-normalizer on encodings. The only import of `magic`.

libmagic is fed at most 64 KB, and little of a file with many lines, on which it takes a quarter of a second; text in
UTF-8 never reaches it. Each thread has a handle of its own, because a shared one stalls and has crashed (its module's
global lock; security reference §1.5).
"""

from __future__ import annotations

import importlib
import logging
import threading
from functools import cache
from typing import Any

import charset_normalizer

from artifacts.core.detection.detector import BinaryDetector
from artifacts.core.detection.signatures import HEAD

log = logging.getLogger(__name__)
# It explains each of its guesses at length; nobody asked.
logging.getLogger("charset_normalizer").setLevel(logging.WARNING)

DOUBTFUL = frozenset({"image/x-tga", "image/x-pcx", "image/x-win-bitmap", "audio/x-mod", "application/x-dosexec"})
"""Types that libmagic sees in two or three arbitrary bytes; 0 to 255 in order is a Targa image to it."""

MANY_LINES = 1000
SHORT = 1024
_handles = threading.local()


def _import_magic() -> Any:
    import magic  # raises ImportError when it finds no libmagic

    return magic


@cache
def _library() -> tuple[Any, str]:
    """python-magic and where its libmagic comes from: `libmagic` (the system's), `pylibmagic` or `none`."""
    for name in ("libmagic", "pylibmagic"):
        try:
            if name == "pylibmagic":
                importlib.import_module("pylibmagic")
            return _import_magic(), name
        except (ImportError, OSError):
            continue
    log.warning("No libmagic on this machine: file types come from our own table alone. Install libmagic1.")
    return None, "none"


def describe_sniffer() -> str:
    """Whose opinion is asked: `libmagic 5.44`, `pylibmagic 5.41`, or `none` (our own signature table alone)."""
    library, name = _library()
    if library is None:
        return name
    try:
        version = int(library.version())
    except (AttributeError, NotImplementedError):  # a library too old to tell its version
        return name
    return f"{name} {version // 100}.{version % 100:02d}"


def sniff(head: bytes) -> str | None:
    """Libmagic's MIME type for the first bytes of a file; None when there is no libmagic or it knows none."""
    library, _ = _library()
    if library is None or not head:
        return None
    sample = head[: SHORT if head.count(b"\n", 0, HEAD) > MANY_LINES else HEAD]
    try:
        handle = getattr(_handles, "mime", None)
        if handle is None:
            handle = _handles.mime = library.Magic(mime=True)
        opinion = str(handle.from_buffer(sample))
    except library.MagicException:  # libmagic's word for a file it cannot make sense of; our own table has spoken
        log.warning("libmagic failed on a file of which %d bytes were looked at", len(sample))
        return None
    return None if opinion in DOUBTFUL else opinion


def guess_encoding(head: bytes) -> str | None:
    """charset-normalizer's guess on at most 64 KB; None when nothing fits."""
    try:
        best = charset_normalizer.from_bytes(head[:HEAD]).best()
    except (UnicodeError, LookupError):  # a codec that these bytes are nothing for
        return None
    return best.encoding if best else None


def detector(prefer: str = "zh") -> BinaryDetector:
    """The detector with these opinions; `prefer` is the language whose legacy encoding wins (`zh`: GB18030)."""
    return BinaryDetector(sniff, guess_encoding, prefer)
