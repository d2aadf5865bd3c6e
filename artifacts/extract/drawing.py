"""Render PDF pages in the extraction process, a few at a time. Models that need the same page images share them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from artifacts.core.store import LocalFile
from artifacts.extract.answer_cache import Key, answers
from artifacts.extract.process import Result, run
from artifacts.extract.stored_results import StoredResults
from capabilities.core.message import Converted, ConvertTo, PageImages, make_blob

MAX_PAGES = 50
"""Maximum number of PDF pages that are rendered in one call of `draw_pages`."""
PAGES_AT_ONCE = 10
"""Number of pages that each process renders. Other files can be read between two such processes."""
MAX_IMAGE_BYTES = 20 * 1024 * 1024
MAX_PAGE_SIDE, MAX_PAGE_BYTES = 4096, 4 * 1024 * 1024
"""Size limits of a rendered page. Few models have lower limits, so most models can share images."""
UNLIMITED = 0
"""Value of `max_side` in the cache key of pages that did not have to be scaled down."""


class NotDrawnError(Exception):
    """`disable_drawing` is active, but some of the requested pages or frames have not been rendered yet."""


_may_draw = ContextVar("may_draw", default=True)


@contextmanager
def disable_drawing() -> Iterator[None]:
    """Within this context, use only pages and frames that are already rendered.

    Raise `NotDrawnError` if others are requested.
    """
    token = _may_draw.set(False)
    try:
        yield
    finally:
        _may_draw.reset(token)


def _run(path: LocalFile, operation: str, options: Mapping[str, object], *, is_quick: bool = True) -> Result:
    if not _may_draw.get():
        raise NotDrawnError
    return run(path, operation, options, max_output=MAX_IMAGE_BYTES + 64 * 1024, is_quick=is_quick)


def draw_pages(
    path: LocalFile,
    target: ConvertTo,
    *,
    first: int = 1,
    count: int = MAX_PAGES,
    cache_key: str = "",
    stored: StoredResults | None = None,
    mime_type: str = "application/pdf",
) -> PageImages | None:
    """Render pages as images of a type that the target accepts, within its limits. Return None if this fails.

    Render the pages of a PDF or TIFF from `first` on, or a few frames of an animation. The total size is at most
    `MAX_IMAGE_BYTES`, so there may be fewer images than requested. With `cache_key` (the hash of the file's bytes),
    pages are cached in `stored` or, without it, in memory. Frames are always cached in memory.
    """
    if mime_type.startswith("image/"):
        return _draw_frames(path, target, count, cache_key)
    options: dict[str, object] = {
        # The renderer prefers JPEG. Ignoring other accepted types lets more models share the cached images.
        "mime_types": ["image/jpeg"] if "image/jpeg" in target.mime_types else list(target.mime_types),
        "max_bytes": min(target.max_bytes or MAX_PAGE_BYTES, MAX_PAGE_BYTES),
        "max_side": min(target.max_side or MAX_PAGE_SIDE, MAX_PAGE_SIDE),
        "max_total_bytes": MAX_IMAGE_BYTES,
    }
    images, used, number = dict[int, Converted](), 0, max(first, 1)
    end, total = number + min(count, MAX_PAGES), 0
    while number < end:
        options |= {"first": number, "count": min(PAGES_AT_ONCE, end - number)}
        result = _draw_or_reuse(path, options, cache_key, stored)
        if result.reason == "too_large" and images:
            break
        if result.reason:
            return None
        for page, image in _split_images(result):
            used += image.blob.size
            if used > MAX_IMAGE_BYTES:
                return PageImages(images, total)
            images[page] = image
        number, total = number + PAGES_AT_ONCE, int(str(result.header["pages"]))
        if result.header["next"] != number or number > total:
            break  # The document has no more pages, or rendering ran out of time or space.
    return PageImages(images, total) if images else None


def _draw_frames(path: LocalFile, target: ConvertTo, count: int, cache_key: str) -> PageImages | None:
    options = {
        "mime_types": list(target.mime_types),
        "max_bytes": min(target.max_bytes or MAX_IMAGE_BYTES, MAX_IMAGE_BYTES),
        "max_side": target.max_side,
        "count": min(count, MAX_PAGES),
        "max_total_bytes": MAX_IMAGE_BYTES,
    }

    def draw() -> Result:
        return _run(path, "frames", options)

    key = (cache_key, "frames", json.dumps(options, sort_keys=True))
    result = answers().answer(key, draw) if cache_key else draw()
    images = {} if result.reason else dict(_split_images(result))
    return PageImages(images, int(str(result.header["pages"]))) if images else None


def _split_images(result: Result) -> Iterator[tuple[int, Converted]]:
    at, descriptions = 0, result.header["images"]
    for description in descriptions if isinstance(descriptions, list) else ():
        data, at = result.payload[at : at + description["bytes"]], at + description["bytes"]
        size = description["width"], description["height"]
        yield description["page"], Converted(make_blob(data), description["mime_type"], *size)


def _draw_or_reuse(
    path: LocalFile, options: Mapping[str, object], cache_key: str, stored: StoredResults | None
) -> Result:
    def draw() -> Result:
        # Rendering one or two pages takes no longer than reading a small document.
        is_quick = int(str(options["count"])) <= 2
        return _run(path, "pages", options, is_quick=is_quick)

    if not cache_key:
        return draw()
    asked, whole = (
        (cache_key, "pages", json.dumps({**options, "max_side": side}, sort_keys=True))
        for side in (options["max_side"], UNLIMITED)
    )

    def find_or_draw() -> Result:
        for key in (whole, asked):
            found = _find(key, stored)
            if found is not None and _fits(found, int(str(options["max_side"]))):
                return found
        result = draw()
        if not result.reason:
            _keep(asked if result.header["limited"] else whole, result, stored)
        return result

    return answers().answer(asked, find_or_draw)


def _find(key: Key, stored: StoredResults | None) -> Result | None:
    return answers().find(key) or (stored.find(key) if stored else None)


def _keep(key: Key, result: Result, stored: StoredResults | None) -> None:
    if stored:
        stored.keep(key, result)
    else:
        answers().keep(key, result)


def _fits(result: Result, side: int) -> bool:
    return all(max(image.width or 0, image.height or 0) <= side for _, image in _split_images(result))
