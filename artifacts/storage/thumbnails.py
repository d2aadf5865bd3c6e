"""Thumbnails of stored images, made in the extraction process and cached in the data directory by content hash.

Thumbnails are PNG files that we create, so browsers never render the upload itself. For an image that cannot be
decoded, an empty file is cached, so that decoding is not tried again.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from django.conf import settings

from artifacts import extract
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from capabilities.core.message import UnreadableError
from capabilities.core.vocabulary import Kind

MAX_SOURCE = 32 * 1024 * 1024
"""Maximum size in bytes of an image that gets a thumbnail."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def can_have_thumbnail(row: Artifact) -> bool:
    """Return whether the artifact is an image that can probably be decoded."""
    is_image = row.kind == Kind.IMAGE and 0 < row.size <= MAX_SOURCE and row.mime_type != "image/svg+xml"
    return is_image and bool(_DIGEST.fullmatch(row.sha256)) and not _is_undecodable(_thumbnail_path(row.sha256))


def _is_undecodable(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return False


def _thumbnail_path(sha256: str) -> Path:
    return Path(settings.DATA_DIR) / "thumbnails" / sha256[:2] / f"{sha256}.png"


def find_thumbnail(row: Artifact) -> bytes | None:
    """Return a PNG with sides of at most 256 pixels, or None if there is no thumbnail."""
    if not can_have_thumbnail(row):
        return None
    path = _thumbnail_path(row.sha256)
    try:
        thumbnail = path.read_bytes()
    except FileNotFoundError:
        thumbnail = _make(row.sha256)
        _write(path, thumbnail)
    return thumbnail or None


def _make(sha256: str) -> bytes:
    try:
        with byte_store().local_file(sha256) as path:
            return extract.thumbnail(path) or b""
    except UnreadableError:
        return b""


def _write(path: Path, data: bytes) -> None:
    # Two processes may write the same thumbnail, so write a complete file and rename it.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{secrets.token_hex(8)}.part")
    try:
        part.write_bytes(data)
    except OSError:  # If the disk is full, make the thumbnail again for the next request.
        part.unlink(missing_ok=True)
        return
    os.replace(part, path)
