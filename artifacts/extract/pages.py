"""Render pages of a PDF for models with vision, since a scan has no text. Runs only in the child process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, BinaryIO

import pypdfium2
from PIL import Image

from artifacts.extract.images import encode_within
from artifacts.extract.words import BUDGET_SECONDS, RefusedError

MAX_SIDE = 4096
POINTS_PER_INCH, DOTS_PER_INCH = 72, 200
"""The resolution of a rendered page. It is reduced if the target accepts fewer pixels."""


def answer(source: BinaryIO, options: Mapping[str, Any]) -> tuple[dict[str, object], bytes]:
    """Return up to `count` pages from `first` on, concatenated. The header has the length of each.

    Pages that cannot be rendered are skipped. Raise `RefusedError`: `encrypted`, `failed`, or `too_large` if not even
    one page fits into `max_bytes`.
    """
    document = _open(source)
    deadline, max_total_bytes = time.monotonic() + BUDGET_SECONDS, int(options["max_total_bytes"])
    images, payload, first = list[dict[str, object]](), b"", int(options["first"])
    for number in range(first, min(first + int(options["count"]), len(document) + 1)):
        if time.monotonic() > deadline:
            break
        image = _draw(document, number, int(options["max_side"] or MAX_SIDE))
        if image is None:
            continue
        encoded = encode_within(
            image, options["mime_types"], min(int(options["max_bytes"]), max_total_bytes - len(payload))
        )
        if encoded is None:
            break
        mime_type, data, (width, height) = encoded
        images.append({"page": number, "mime_type": mime_type, "width": width, "height": height, "bytes": len(data)})
        payload += data
    if not images and len(document):
        raise RefusedError("too_large")
    return {"pages": len(document), "images": images}, payload


def _open(source: BinaryIO) -> pypdfium2.PdfDocument:
    try:
        # A stream needs callbacks that ctypes generates, which systemd's MemoryDenyWriteExecute forbids.
        return pypdfium2.PdfDocument(source.read())
    except pypdfium2.PdfiumError as error:
        raise RefusedError("encrypted" if "password" in str(error).lower() else "failed") from error


def _draw(document: pypdfium2.PdfDocument, number: int, max_side: int) -> Image.Image | None:
    # A damaged page must not affect the others.
    try:
        page = document[number - 1]
        longer = max(page.get_size())
        scale = min(DOTS_PER_INCH / POINTS_PER_INCH, min(max_side, MAX_SIDE) / longer)
        image: Image.Image = page.render(scale=scale).to_pil().convert("RGB")
    except (pypdfium2.PdfiumError, ZeroDivisionError, ValueError, OverflowError):
        return None
    image.thumbnail((max_side, max_side))
    return image
