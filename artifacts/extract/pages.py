"""Render PDF pages for vision models, because scans have no text. Runs only in the extraction process."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

import pypdfium2
from PIL import Image
from pypdfium2 import raw

from artifacts.extract.images import MAX_PIXELS, encode_within
from artifacts.extract.pdf import open_pdf
from artifacts.extract.reading import BUDGET_SECONDS, RefusedError

POINTS_PER_INCH, DOTS_PER_INCH = 72, 200
"""Resolution of rendered pages. It is lower if the model accepts only smaller images."""

SCAN_RESOLUTION = (149, 202)
"""Range of resolutions in dots per inch. If the JPEG decoder can scale a scan (by 1, 1/2, 1/4 or 1/8) to a resolution
in this range, the scan gets that size. Rendering at 150 instead of 200 dots per inch takes a fifth of the time."""

ALTERED = re.compile(rb"/(?:Decode(?!Parms)|SMask|Mask|ImageMask|ColorTransform)\b")
"""Entries in a PDF image dictionary that make the image differ from its JPEG data. These dictionaries are never
compressed."""

PLAIN_COLORS = {
    "L": (raw.FPDF_COLORSPACE_DEVICEGRAY, raw.FPDF_COLORSPACE_CALGRAY, raw.FPDF_COLORSPACE_ICCBASED),
    "RGB": (raw.FPDF_COLORSPACE_DEVICERGB, raw.FPDF_COLORSPACE_CALRGB, raw.FPDF_COLORSPACE_ICCBASED),
}
"""Maps Pillow's modes of a JPEG to the PDF color spaces that match them."""

EDGE = 0.01
"""Maximum distance between an edge of a scan and the same edge of its page, as a fraction of the page's side."""


def answer(source: BinaryIO, options: Mapping[str, Any]) -> tuple[dict[str, object], bytes]:
    """Return up to `count` page images from page `first` on, concatenated. The header contains their lengths.

    `next` is the page at which rendering stopped. `limited` is True if a larger `max_side` would give larger images.
    Pages that cannot be rendered are skipped. Raise `RefusedError`: `encrypted`, `failed`, or `too_large` if not even
    one page fits into `max_bytes`.
    """
    data = source.read()
    document = open_pdf(data)
    draw = partial(_draw, max_side=int(options["max_side"]), plain=not ALTERED.search(data))
    deadline, max_total_bytes = time.monotonic() + BUDGET_SECONDS, int(options["max_total_bytes"])
    images, payload, number, limited = list[dict[str, object]](), b"", int(options["first"]), False
    end = min(number + int(options["count"]), len(document) + 1)
    while number < end and time.monotonic() < deadline:
        image, is_limited = draw(document, number)
        limited |= is_limited
        if image is not None:
            limit = min(int(options["max_bytes"]), max_total_bytes - len(payload))
            encoded = encode_within(image, options["mime_types"], limit)
            if encoded is None:
                break
            mime, drawn, (width, height) = encoded
            images.append({"page": number, "mime_type": mime, "width": width, "height": height, "bytes": len(drawn)})
            payload += drawn
        number += 1
    if not images and len(document):
        raise RefusedError("too_large")
    return {"pages": len(document), "images": images, "next": number, "limited": limited}, payload


def _draw(
    document: pypdfium2.PdfDocument, number: int, *, max_side: int, plain: bool
) -> tuple[Image.Image | None, bool]:
    # Skip a damaged page, so that the others can still be used.
    try:
        page = document[number - 1]
        largest, longer = DOTS_PER_INCH / POINTS_PER_INCH, max(page.get_size())
        scale, is_limited = min(largest, max_side / longer), max_side < largest * longer
        if plain and (scan := _find_scan(page)) is not None:
            halved = _halved_size(page, scan)
            fits = halved is not None and max(halved) <= max_side
            if (image := _decode(scan, halved if halved and fits else _size_at(page, scale))) is not None:
                return image, is_limited and not fits
        # Without `rev_byteorder`, Pillow would have to swap the colors.
        image = page.render(scale=scale, rev_byteorder=True).to_pil().convert("RGB")
    except (pypdfium2.PdfiumError, ZeroDivisionError, ValueError, OverflowError):
        return None, False
    image.thumbnail((max_side, max_side))
    return image, is_limited


def _size_at(page: pypdfium2.PdfPage, scale: float) -> tuple[int, int]:
    width, height = page.get_size()
    return max(round(width * scale), 1), max(round(height * scale), 1)


def _find_scan(page: pypdfium2.PdfPage) -> pypdfium2.PdfImage | None:
    """Return the image if the page consists of a single upright JPEG."""
    objects = list(islice(page.get_objects(max_depth=1), 2))
    if len(objects) != 1 or objects[0].type != raw.FPDF_PAGEOBJ_IMAGE or page.get_rotation():
        return None
    scan = objects[0]
    width, height = scan.get_px_size()
    is_plain = scan.get_filters() == ["DCTDecode"] and not raw.FPDFPageObj_HasTransparency(scan.raw)
    return scan if is_plain and width * height <= MAX_PIXELS and _fills(page, scan) else None


def _halved_size(page: pypdfium2.PdfPage, scan: pypdfium2.PdfImage) -> tuple[int, int] | None:
    """Return a size to which the JPEG decoder can scale the scan within `SCAN_RESOLUTION`, else None."""
    least, most = (_size_at(page, dots / POINTS_PER_INCH) for dots in SCAN_RESOLUTION)
    for part in (1, 2, 4, 8):
        width, height = (-(-side // part) for side in scan.get_px_size())
        if least[0] <= width <= most[0] and least[1] <= height <= most[1]:
            return width, height
    return None


def _decode(scan: pypdfium2.PdfImage, size: tuple[int, int]) -> Image.Image | None:
    """Decode the scan and scale it to this size. Return None if the JPEG decoder cannot do this well."""
    width, height = scan.get_px_size()
    if scan.get_px_size() != size and min(width / size[0], height / size[1]) < 1.9:
        return None
    try:
        image: Image.Image = Image.open(io.BytesIO(bytes(scan.get_data(decode_simple=False))), formats=["JPEG"])
        if scan.get_metadata().colorspace not in PLAIN_COLORS.get(image.mode, ()):
            return None
        image.draft(image.mode, size)
        return image.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)
    except OSError:  # If this fails, PDFium may still be able to render part of the page.
        return None


def _fills(page: pypdfium2.PdfPage, scan: pypdfium2.PdfObject) -> bool:
    a, b, c, d, e, f = scan.get_matrix().get()
    left, bottom, right, top = page.get_bbox()
    edges = ((e, left, right), (e + a, right, left), (f, bottom, top), (f + d, top, bottom))
    return not b and not c and all(abs(at - edge) <= EDGE * abs(other - edge) for at, edge, other in edges)
