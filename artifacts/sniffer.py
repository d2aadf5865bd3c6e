"""Guess file types with libmagic and encodings with charset-normalizer. Only this module imports `magic`.

libmagic receives at most 64 KB of a file, but only 1 KB if the file has many lines, because many lines would take it a
quarter of a second. It never receives UTF-8 text. Each thread has its own handle, because python-magic protects a
shared handle with a global lock, and sharing has caused crashes.
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
# Otherwise, charset-normalizer would log every step of its guesses.
logging.getLogger("charset_normalizer").setLevel(logging.WARNING)

DOUBTFUL = frozenset({"image/x-tga", "image/x-pcx", "image/x-win-bitmap", "audio/x-mod", "application/x-dosexec"})
"""Types that libmagic guesses from only two or three bytes. For example, it mistakes the bytes 0, 1, 2 … for a Targa
image."""

MANY_LINES = 1000
SHORT = 1024
_handles = threading.local()


def _import_magic() -> Any:
    import magic  # The import raises ImportError if libmagic is not installed.

    return magic


@cache
def _library() -> tuple[Any, str]:
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
    """Return the name and version of the library in use: `libmagic 5.44`, `pylibmagic 5.41`, or `none`."""
    library, name = _library()
    if library is None:
        return name
    try:
        version = int(library.version())
    except (AttributeError, NotImplementedError):  # Old versions of libmagic cannot report their version.
        return name
    return f"{name} {version // 100}.{version % 100:02d}"


def sniff(head: bytes) -> str | None:
    """Return the MIME type that libmagic guesses from a file's first bytes, or None."""
    library, _ = _library()
    if library is None or not head:
        return None
    sample = head[: SHORT if head.count(b"\n", 0, HEAD) > MANY_LINES else HEAD]
    try:
        handle = getattr(_handles, "mime", None)
        if handle is None:
            handle = _handles.mime = library.Magic(mime=True)
        opinion = str(handle.from_buffer(sample))
    except library.MagicException:  # libmagic raises an exception for files that it cannot parse.
        log.warning("libmagic failed on a file; %d bytes were examined", len(sample))
        return None
    return None if opinion in DOUBTFUL else opinion


def guess_encoding(head: bytes) -> str | None:
    """Return the encoding that charset-normalizer guesses from at most 64 KB, or None."""
    try:
        best = charset_normalizer.from_bytes(head[:HEAD]).best()
    except (UnicodeError, LookupError):  # Some codecs raise an exception if they cannot decode the bytes.
        return None
    return best.encoding if best else None


def detector(prefer: str = "zh") -> BinaryDetector:
    """Return a type detector that uses these libraries. For `prefer`, see `BinaryDetector`."""
    return BinaryDetector(sniff, guess_encoding, prefer)
