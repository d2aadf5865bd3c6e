"""Draw a document's pages as images, for a model that sees but does not take the document itself.

This is tried after a document's words and before its description. A scan has no words to extract. Each page is
decided like any image, and as many are sent as there is room for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from capabilities.core.delivery.decision import Outcome, conversion_target, decide, hoists, page_slot
from capabilities.core.delivery.obstacles import wire_bytes
from capabilities.core.delivery.reader import Position, Reader
from capabilities.core.delivery.slots import Slot, slot_key
from capabilities.core.message import Converted, Drawable, FilePart
from capabilities.core.vocabulary import Kind

MAX_PAGES = 20
"""Pages of one document that are sent as images: about as many tokens as a long text."""


@dataclass(frozen=True, slots=True)
class DrawnPages:
    """The images by page number (from 1), the document's number of pages, and the slot of the images."""

    images: Mapping[int, Converted]
    total: int
    slot: Slot
    hoist: bool


def draw_pages(file: FilePart, reader: Reader, position: Position) -> DrawnPages | None:
    """Return the first pages that this reader can see here, or None if it sees none or none can be drawn."""
    slot, content = page_slot(file, reader, position), file.content
    if slot is None or not isinstance(content, Drawable):
        return None
    max_pages = _most_pages(slot)
    max_pages = max_pages if slot.max_count is None else min(max_pages, slot.max_count - _count(position))
    # Always drawn at the size for a crowded request, whatever else this one contains.
    crowded = replace(position, total=slot.crowd_count + 1) if slot.crowd_count else position
    pages = content.draw(conversion_target(slot, reader, crowded), max_pages) if max_pages > 0 else None
    fitting = _take_fitting(pages.images, file, reader, position) if pages else {}
    if pages is None or not fitting:
        return None
    return DrawnPages(fitting, pages.total, slot, hoists(slot, reader, position))


def count_images(files: Iterable[FilePart], reader: Reader) -> int:
    """Return how many images a request with these files may hold. A drawable document counts its pages."""
    total = 0
    for file in files:
        # An upper bound: which pages fit is not known yet.
        slot = page_slot(file, reader, Position()) if file.kind is not Kind.IMAGE else None
        total += 1 if file.kind is Kind.IMAGE else _most_pages(slot) if slot else 0
    return total


def _most_pages(slot: Slot) -> int:
    # Half of the crowd limit, whatever the request, so that pages alone never lower the allowed image size.
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
        # Each image is judged behind those before it, so the first that does not fit ends the list.
        if decide(part, reader, position).outcome not in (Outcome.NATIVE, Outcome.HOISTED):
            break
        fitting[number] = image
        counts = {**position.counts, key: _count(position) + 1}
        sizes = {**position.sizes, key: position.sizes.get(key, 0) + size}
        request_bytes = position.request_bytes + wire_bytes(size)
        position = replace(position, counts=counts, sizes=sizes, request_bytes=request_bytes)
    return fitting
