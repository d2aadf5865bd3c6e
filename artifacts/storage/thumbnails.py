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
    """Whether a thumbnail is worth asking for: of an image that may be decoded, and was not found to be none."""
    is_image = row.kind == Kind.IMAGE and 0 < row.size <= MAX_SOURCE and row.mime_type != "image/svg+xml"
    return is_image and bool(_DIGEST.fullmatch(row.sha256)) and not _is_undecodable(_place_of(row.sha256))


def _is_undecodable(place: Path) -> bool:
    try:
        return place.stat().st_size == 0
    except FileNotFoundError:
        return False


def _place_of(sha256: str) -> Path:
    return Path(settings.DATA_DIR) / "thumbnails" / sha256[:2] / f"{sha256}.png"


def thumbnail_of(row: Artifact) -> bytes | None:
    """The PNG, at most 256 pixels a side; None for what is no image or cannot be decoded."""
    if not can_have_thumbnail(row):
        return None
    place = _place_of(row.sha256)
    try:
        kept = place.read_bytes()
    except FileNotFoundError:
        kept = _make(row.sha256)
        _keep(place, kept)
    return kept or None


def _make(sha256: str) -> bytes:
    """The PNG; no bytes when the image, or what is stored of it, cannot be read."""
    try:
        with byte_store().local_file(sha256) as path:
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
