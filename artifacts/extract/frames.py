"""Convert the pages of a TIFF, or a few frames of an animation. Runs only in the extraction process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from PIL import Image

from artifacts.extract.images import encode_within, find_frames, open_image, upright
from artifacts.extract.reading import BUDGET_SECONDS, RefusedError

MAX_FRAMES = 6
"""Maximum number of evenly spaced frames that are taken from an animation. For a TIFF, the caller limits the number of
pages."""


def answer(source: BinaryIO, options: Mapping[str, Any]) -> tuple[dict[str, object], bytes]:
    """Return up to `count` pages or frames, concatenated as in `pages.answer`.

    The result's field `pages` is the total number in the file.
    """
    image = open_image(source)
    frames = find_frames(image)
    deadline, max_total_bytes = time.monotonic() + BUDGET_SECONDS, int(options["max_total_bytes"])
    images, payload = list[dict[str, object]](), b""
    for number in _choose(len(frames), int(options["count"]), is_animation=image.format != "TIFF"):
        if time.monotonic() > deadline:
            break
        frame = _frame(image, frames[number - 1], options.get("max_side"))
        if frame is None:
            continue
        limit = min(int(options["max_bytes"]), max_total_bytes - len(payload))
        encoded = encode_within(frame, options["mime_types"], limit, photo=image.format != "TIFF")
        if encoded is None:
            break
        mime_type, data, (width, height) = encoded
        images.append({"page": number, "mime_type": mime_type, "width": width, "height": height, "bytes": len(data)})
        payload += data
    if not images:
        raise RefusedError("too_large")
    return {"pages": len(frames), "images": images}, payload


def _choose(total: int, count: int, *, is_animation: bool) -> Sequence[int]:
    if not is_animation or total <= 1:
        return range(1, min(count, total) + 1)
    count = min(count, total, MAX_FRAMES)
    # Choose the first frame, the last frame, and evenly spaced frames between them.
    return [1 + index * (total - 1) // max(count - 1, 1) for index in range(count)]


def _frame(image: Image.Image, index: int, max_side: int | None) -> Image.Image | None:
    # Skip a damaged frame, so that the others can still be used.
    try:
        image.seek(index)
        return upright(image.copy(), max_side)
    except (OSError, ValueError, EOFError, SyntaxError, TypeError):
        return None
