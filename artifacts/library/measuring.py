"""What can be measured of stored bytes, once it is known what they are: pixels, pages, seconds."""

from __future__ import annotations

from typing import Any

from artifacts import extract
from artifacts.core.detection.image_size import image_size
from artifacts.core.detection.signatures import HEAD
from artifacts.storage.content import byte_store
from capabilities.core.vocabulary import Kind

MEASURES = ("width", "height", "pages", "seconds")
"""The columns of an artifact that hold what was measured, null where nothing was."""

LARGEST = 2**31 - 1
"""The most that a column holds; a header may claim more."""


def measure(sha256: str, mime_type: str, kind: Kind) -> dict[str, Any]:
    """Every measure by its column; pages and seconds are counted in the extraction process.

    Raises `MissingError` or `CorruptError` for bytes that cannot be read.
    """
    store, found = byte_store(), dict[str, Any].fromkeys(MEASURES)
    if kind is Kind.IMAGE:
        with store.reader(sha256) as read_at:
            size = image_size(read_at(0, HEAD), mime_type, read_at)
        return {**found, "width": min(size[0], LARGEST), "height": min(size[1], LARGEST)} if size else found
    if mime_type == "application/pdf" or kind in (Kind.AUDIO, Kind.VIDEO):
        with store.local_file(sha256) as path:
            facts = extract.facts(path, mime_type)
        return {**found, "pages": facts.pages, "seconds": facts.seconds}
    return found
