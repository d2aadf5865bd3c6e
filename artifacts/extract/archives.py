"""List the names, sizes and dates of an archive's entries without reading them. Runs only in the extraction process."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from typing import BinaryIO

from artifacts.core.detection.encodings import decode_blocks, detect_text
from artifacts.extract.reading import Progress, RefusedError, TextCollector

MAX_MEMBERS = 5_000
MAX_UNPACKED_BYTES = 512 * 1024 * 1024
MAX_READS_AFTER_END = 16
UTF_8_NAME, ENCRYPTED = 0x800, 0x1
"""Flag bits of a zip entry."""

UNPACKERS: dict[str, Callable[[BinaryIO], object]] = {
    "gz": lambda source: gzip.GzipFile(fileobj=source),
    "bz2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
}


def zip_listing(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """List the entries in a zip file's directory. The encoding of names without the UTF-8 flag is detected."""
    entries = zipfile.ZipFile(source).infolist()
    # The zipfile module decodes names without the UTF-8 flag as cp437, so encode them again and detect the encoding of
    # all names together.
    raw = b"\n".join(entry.filename.encode("cp437") for entry in entries if not entry.flag_bits & UTF_8_NAME)
    names_found = detect_text(raw, whole=True) if not raw.isascii() else None
    total = sum(entry.file_size for entry in entries)
    output.add(f"[archive: {len(entries)} entries, {total} bytes unpacked]\n")
    for number, entry in enumerate(entries[:MAX_MEMBERS], 1):
        progress.report("entries", number, len(entries))
        name = entry.filename
        if names_found and not entry.flag_bits & UTF_8_NAME:
            name = "".join(decode_blocks((name.encode("cp437"),), names_found.encoding))
        day = "{:04}-{:02}-{:02}".format(*entry.date_time[:3])
        lock = ", encrypted" if entry.flag_bits & ENCRYPTED else ""
        output.add(_format_line(name, entry.file_size, day + lock))
    _add_truncation_note(len(entries) > MAX_MEMBERS, output)


def tar_listing(source: BinaryIO, output: TextCollector, progress: Progress) -> None:
    """List a tar file, which may be compressed with gzip, bzip2 or xz.

    Raise `RefusedError`: `no_text` for a compressed file that is not a tar file, or `too_large` if the contents exceed
    `MAX_UNPACKED_BYTES`.
    """
    kind = {b"\x1f\x8b": "gz", b"BZ": "bz2", b"\xfd7": "xz"}.get(source.read(2), "")
    source.seek(0)
    unpacked = BoundedReader(UNPACKERS[kind](source) if kind else source)
    try:
        with tarfile.open(fileobj=unpacked, mode="r|") as archive:  # type: ignore[call-overload]
            output.add("[archive]\n")
            for number, entry in enumerate(archive, 1):
                day = datetime.fromtimestamp(max(min(entry.mtime, 2**32), 0), UTC).strftime("%Y-%m-%d")
                name = entry.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                output.add(_format_line(name + "/" * entry.isdir(), entry.size, day))
                if number >= MAX_MEMBERS:
                    _add_truncation_note(True, output)
                    break
    except tarfile.ReadError as error:
        raise RefusedError("no_text") from error


class BoundedReader:
    """A stream that raises `RefusedError` after `MAX_UNPACKED_BYTES`, or if it is read too often after its end.

    The tarfile module skips an entry by reading it, even if a file of one kilobyte declares an entry of one terabyte.
    """

    def __init__(self, stream: object) -> None:
        self._read = stream.read  # type: ignore[attr-defined]
        self._bytes = 0
        self._reads_after_end = 0

    def read(self, size: int = io.DEFAULT_BUFFER_SIZE) -> bytes:
        """Return at most `size` bytes.

        Raise `RefusedError`: `too_large` above the limit, or `no_text` after too many reads at the end.
        """
        data: bytes = self._read(size)
        self._bytes += len(data)
        self._reads_after_end += not data
        if self._reads_after_end > MAX_READS_AFTER_END:
            raise RefusedError("no_text")
        if self._bytes > MAX_UNPACKED_BYTES:
            raise RefusedError("too_large")
        return data


def _format_line(name: str, size: int, day: str) -> str:
    printable = "".join(char if char.isprintable() else "?" for char in name)
    return f"- {printable} ({size} bytes, {day})\n"


def _add_truncation_note(is_truncated: bool, output: TextCollector) -> None:
    if is_truncated:
        output.add(f"(the first {MAX_MEMBERS} of more)\n")
