"""Small pictures of stored images, made in the extraction process and kept by content in the data directory.

A thumbnail is a PNG of our own making, so what a browser draws is never the upload itself. An image that cannot be
decoded is remembered as such; the extraction process is not asked about it again.
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
"""Bytes of an image above which none is made."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def can_have_thumbnail(row: Artifact) -> bool:
    """Whether a thumbnail is worth asking for; it may still turn out that there is none."""
    return row.kind == Kind.IMAGE and 0 < row.size <= MAX_SOURCE and row.mime_type != "image/svg+xml"


def thumbnail_of(row: Artifact) -> bytes | None:
    """The PNG, at most 256 pixels a side; None for what is no image or cannot be decoded."""
    if not can_have_thumbnail(row) or not _DIGEST.fullmatch(row.sha256):
        return None
    place = Path(settings.DATA_DIR) / "thumbnails" / row.sha256[:2] / f"{row.sha256}.png"
    try:
        kept = place.read_bytes()
    except FileNotFoundError:
        kept = _make(row.sha256)
        _keep(place, kept)
    return kept or None


def _make(sha256: str) -> bytes:
    """The PNG; no bytes when the image, or what is stored of it, cannot be read."""
    try:
        with byte_store().local_path(sha256) as path:
            return extract.thumbnail(path) or b""
    except UnreadableError:
        return b""


def _keep(place: Path, data: bytes) -> None:
    """Writes it whole or not at all; two processes may do so at once."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = place.with_name(f"{secrets.token_hex(8)}.part")
    try:
        part.write_bytes(data)
    except OSError:  # the disk is full: it is made anew the next time
        part.unlink(missing_ok=True)
        return
    os.replace(part, place)
