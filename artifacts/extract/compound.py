"""Compound files (OLE2): the streams in which older Office keeps its documents. Only in the child process."""

from __future__ import annotations

import struct
import zipfile
from typing import BinaryIO

import olefile

from artifacts.extract.words import RefusedError, open_zip

MAX_STREAM_BYTES = 128 * 1024 * 1024
MAX_STREAMS = 20_000


class CompoundFile:
    """The streams of a compound file by name; raises `RefusedError` `failed` for broken chains, `encrypted` if so."""

    def __init__(self, source: BinaryIO) -> None:
        try:
            self._file = olefile.OleFileIO(source)
            self.names = frozenset("/".join(path) for path in self._file.listdir(storages=False)[:MAX_STREAMS])
        except (OSError, struct.error, IndexError, RecursionError) as error:
            raise RefusedError("failed") from error
        if "EncryptedPackage" in self.names:
            raise RefusedError("encrypted")

    def read(self, name: str) -> bytes:
        """A stream's bytes, empty where there is none; raises `RefusedError` `too_large` or `failed`."""
        if name not in self.names:
            return b""
        if self._file.get_size(name) > MAX_STREAM_BYTES:
            raise RefusedError("too_large")
        try:
            data: bytes = self._file.openstream(name).read()
        except OSError as error:
            raise RefusedError("failed") from error
        return data

    def size(self, name: str) -> int:
        """A stream's length in bytes, as the directory says."""
        return int(self._file.get_size(name)) if name in self.names else 0


def is_locked(source: BinaryIO) -> bool:
    """Whether a file in which a package of Office is expected holds it behind a password (MS-OFFCRYPTO §2.3.4.4)."""
    source.seek(0)
    mark = source.read(len(olefile.MAGIC))
    source.seek(0)
    try:
        if mark == olefile.MAGIC:
            CompoundFile(source)
    except RefusedError as refusal:
        return str(refusal) == "encrypted"
    finally:
        source.seek(0)
    return False


def open_package(source: BinaryIO) -> zipfile.ZipFile:
    """The package of an office file; raises `RefusedError` as `open_zip` does, and `encrypted` behind a password."""
    if is_locked(source):
        raise RefusedError("encrypted")
    return open_zip(source)
