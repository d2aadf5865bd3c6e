"""A file cache of extraction results with a limited size. Processes share it, and it survives restarts."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

from artifacts.extract.process import Result, parse_output

MAX_BYTES = 512 * 1024 * 1024
"""Maximum size of the cache folder in bytes. A scan of twenty pages takes 3 to 15 MB for each resolution."""


class StoredResults:
    """Stores results as files, named by the hash of the source file, so that they can be deleted with it."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder, self._max_bytes = folder, max_bytes

    def find(self, key: tuple[str, ...]) -> Result | None:
        path = self._path(key)
        try:
            output = path.read_bytes()
            os.utime(path)  # The time of last use determines which results are deleted first.
        except OSError:
            return None
        result = parse_output(output)
        return None if result.reason == "crashed" else result

    def keep(self, key: tuple[str, ...], result: Result) -> None:
        """Store a result if the disk has space. Above the size limit, delete the least recently used results."""
        path = self._path(key)
        part = path.with_name(f"{secrets.token_hex(8)}.part")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Two processes may write the same result, so write a complete file and rename it.
            part.write_bytes(json.dumps(dict(result.header)).encode() + b"\n" + result.payload)
            os.replace(part, path)
        except OSError:
            with suppress(OSError):
                part.unlink()
            return
        self._shrink()

    def _path(self, key: tuple[str, ...]) -> Path:
        sha256, *question = key
        name = hashlib.sha256("\n".join(question).encode()).hexdigest()[:16]
        return self._folder / sha256[:2] / f"{sha256}-{name}.pages"

    def _shrink(self) -> None:
        files = []
        for path in self._folder.glob("??/*.pages"):
            with suppress(OSError):  # Ignore a file that another process has already deleted.
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        used = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if used <= self._max_bytes:
                break
            with suppress(OSError):
                path.unlink()
            used -= size
