"""Draw a document's pages as images, for a model that accepts images but not the document.

Pages are drawn if the policy does not allow text extraction or the document contains no text, as in a scan. Each page
must fit the limits for images, and the first page that does not fit ends the sequence. If no page fits, a description
is sent instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from capabilities.core.delivery.decision import Outcome, conversion_target, decide, is_hoisted, page_slot
from capabilities.core.delivery.obstacles import wire_bytes
from capabilities.core.delivery.reader import Position, Reader
from capabilities.core.delivery.slots import Slot, slot_key
from capabilities.core.message import Converted, Drawable, FilePart
from capabilities.core.vocabulary import Kind

MAX_PAGES = 20
"""Maximum number of document pages sent as images. This many pages use about as many tokens as a long text file."""

MULTI_FRAME_TYPES = frozenset({"image/tiff", "image/gif", "image/apng"})
"""Types of images that usually consist of several pages or frames."""


@dataclass(frozen=True, slots=True)
class DrawnPages:
    """Page images by page number (from 1), the document's total number of pages, and the slot used for the images."""

    images: Mapping[int, Converted]
    total: int
    slot: Slot
    hoist: bool


def draw_pages(file: FilePart, reader: Reader, position: Position) -> DrawnPages | None:
    """Return images of the first pages, as many as this reader accepts at this position, or None if it accepts none."""
    slot, content = page_slot(file, reader, position), file.content
    if slot is None or not isinstance(content, Drawable):
        return None
    max_pages = _max_pages(slot)
    max_pages = max_pages if slot.max_count is None else min(max_pages, slot.max_count - _count(position))
    # Always draw pages at the smaller size that is allowed in requests with many images, so that the page images do
    # not depend on the request's other content.
    crowded = replace(position, total=slot.crowd_count + 1) if slot.crowd_count else position
    pages = content.draw(conversion_target(slot, reader, crowded), max_pages) if max_pages > 0 else None
    fitting = _take_fitting(pages.images, file, reader, position) if pages else {}
    if pages is None or not fitting:
        return None
    return DrawnPages(fitting, pages.total, slot, is_hoisted(slot, reader, position))


def count_images(files: Iterable[FilePart], reader: Reader) -> int:
    """Return an upper bound for the number of images in a request with these files, including document pages."""
    total = 0
    for file in files:
        # It is not yet known which pages fit, or whether a TIFF has more than one page.
        slot = page_slot(file, reader, Position()) if file.kind is not Kind.IMAGE or _has_frames(file, reader) else None
        total += _max_pages(slot) if slot else file.kind is Kind.IMAGE
    return total


def _has_frames(file: FilePart, reader: Reader) -> bool:
    slot = reader.slots.get(Kind.IMAGE)
    return (
        slot is not None
        and file.mime_type in MULTI_FRAME_TYPES
        and not slot.carries(file.mime_type, in_tool_result=False)
    )


def _max_pages(slot: Slot) -> int:
    # Send at most half of `crowd_count` pages, so that the pages of one document alone never reduce the allowed image
    # size.
    return min(MAX_PAGES, slot.crowd_count // 2) if slot.crowd_count else MAX_PAGES


def _count(position: Position) -> int:
    return position.counts.get(slot_key(Kind.IMAGE), 0)


def _take_fitting(
    images: Mapping[int, Converted], file: FilePart, reader: Reader, position: Position
) -> Mapping[int, Converted]:
    key, fitting = slot_key(Kind.IMAGE), dict[int, Converted]()
    for number, image in images.items():
        size = image.blob.size
        part = FilePart(Kind.IMAGE, image.mime_type, None, size, width=image.width, height=image.height)
        part = replace(part, content=file.content)
        # Check each image as if the previous ones were already in the request. Stop at the first one that does not fit.
        if decide(part, reader, position).outcome not in (Outcome.NATIVE, Outcome.HOISTED):
            break
        fitting[number] = image
        counts = {**position.counts, key: _count(position) + 1}
        sizes = {**position.sizes, key: position.sizes.get(key, 0) + size}
        request_bytes = position.request_bytes + wire_bytes(size)
        position = replace(position, counts=counts, sizes=sizes, request_bytes=request_bytes)
    return fitting
