"""Results of libmagic for types and of charset-normalizer for encodings. Only this module imports `magic`.

libmagic gets at most 64 KB, and less of a file with many lines, which would take a quarter of a second. It never gets
UTF-8 text. Each thread has its own handle, because python-magic guards a shared handle with a global lock, and sharing
has caused crashes.
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
# charset-normalizer logs each step of every guess.
logging.getLogger("charset_normalizer").setLevel(logging.WARNING)

DOUBTFUL = frozenset({"image/x-tga", "image/x-pcx", "image/x-win-bitmap", "audio/x-mod", "application/x-dosexec"})
"""Types that libmagic reports because of only two or three bytes. For example, it reports the bytes 0, 1, 2 … as a
Targa image."""

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
    """Return which library is used: `libmagic 5.44`, `pylibmagic 5.41`, or `none`."""
    library, name = _library()
    if library is None:
        return name
    try:
        version = int(library.version())
    except (AttributeError, NotImplementedError):  # Old versions of libmagic cannot report their version.
        return name
    return f"{name} {version // 100}.{version % 100:02d}"


def sniff(head: bytes) -> str | None:
    """Return libmagic's MIME type for a file's first bytes, or None."""
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
    """Return charset-normalizer's guess for at most 64 KB, or None."""
    try:
        best = charset_normalizer.from_bytes(head[:HEAD]).best()
    except (UnicodeError, LookupError):  # Some codecs raise an exception if they cannot decode the bytes.
        return None
    return best.encoding if best else None


def detector(prefer: str = "zh") -> BinaryDetector:
    """Return a detector that uses these libraries. For `prefer`, see `BinaryDetector`."""
    return BinaryDetector(sniff, guess_encoding, prefer)
