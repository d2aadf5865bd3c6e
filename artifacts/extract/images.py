"""Convert images: rotate them upright, remove metadata, apply limits. Runs only in the extraction process."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from PIL import Image, ImageFile, ImageOps
from PIL.TiffImagePlugin import TiffImageFile

from artifacts.extract.reading import RefusedError

FORMATS = (
    *("PNG", "JPEG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "AVIF", "ICO", "ICNS", "PPM", "TGA", "PCX", "JPEG2000"),
    *("QOI", "PSD", "HEIF", "MSP"),
)
"""Pillow decoders that are allowed for uploads. None of them starts another program, as the EPS decoder does. HEIF
requires the optional dependency `heic`."""

with suppress(ImportError):  # On some platforms, the optional dependency `heic` has no wheel and cannot be installed.
    from pi_heif import register_heif_opener

    register_heif_opener()

FRAMED = frozenset({"TIFF", "GIF", "PNG", "WEBP", "AVIF"})
"""Image formats that can contain several pages or frames."""

MAX_FRAMES_COUNTED = 1_000
SUBFILE_TYPE, PAGE_OF_SEVERAL = 254, 2
"""The TIFF tag that states the purpose of an image, and the bit in it that marks a page."""

MAX_PIXELS = 64_000_000
QUALITIES = (90, 80, 65, 50)
SCALE_FACTORS = 5
PHOTOS = frozenset({"JPEG", "AVIF", "WEBP", "MPO", "JPEG2000", "HEIF"})


def answer(source: BinaryIO, options: Mapping[str, Any]) -> tuple[dict[str, object], bytes]:
    """Return the first frame in one of the requested types and within the limits, and the number of `frames`.

    Raise `RefusedError`: `unsupported` if none of the types can be written, or `too_large` if every result is too
    large.
    """
    image = open_image(source)
    photo, pixels, frames = image.format in PHOTOS, image.width * image.height, find_frames(image)
    if frames[0]:
        image.seek(frames[0])
    image = upright(image, options.get("max_side"))
    writable = [mime for mime in options["mime_types"] if mime in _ENCODERS]
    encoded = encode_within(image, writable, int(options["max_bytes"]), photo=photo)
    if encoded is None:
        raise RefusedError("too_large" if writable else "unsupported")
    mime, data, size = encoded
    facts = {"mime_type": mime, "width": size[0], "height": size[1], "original_pixels": pixels, "frames": len(frames)}
    return facts, data


def encode_within(
    image: Image.Image, mime_types: list[str], max_bytes: int, *, photo: bool = True
) -> tuple[str, bytes, tuple[int, int]] | None:
    """Return the image's type, bytes and size in pixels, or None if it is too large even when scaled down."""
    ordered = _order([mime for mime in mime_types if mime in _ENCODERS], photo, _has_alpha(image))
    tries = _tries(image, ordered)
    return next((encoded for encoded in tries if len(encoded[1]) <= max_bytes), None)


def open_image(source: BinaryIO) -> Image.Image:
    """Open an image without decoding it. Raise `RefusedError` (`too_large`) if it has too many pixels."""
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    # Pillow only warns above MAX_IMAGE_PIXELS and raises at twice this number, so turn the warning into an error.
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        image: Image.Image = Image.open(source, formats=FORMATS)
    if image.width * image.height > MAX_PIXELS:
        raise RefusedError("too_large")
    return image


def find_frames(image: Image.Image) -> list[int]:
    """Return the indexes of a TIFF's pages or an animation's frames, or [0] for any other image."""
    if image.format not in FRAMED:
        return [0]
    frames = list[int]()
    for index in range(MAX_FRAMES_COUNTED):
        try:
            image.seek(index)
        except (EOFError, OSError, ValueError, SyntaxError, TypeError):
            break
        # A TIFF may also contain masks and smaller copies of its pages.
        if not isinstance(image, TiffImageFile) or not int(image.tag_v2.get(SUBFILE_TYPE, 0)) & ~PAGE_OF_SEVERAL:
            frames.append(index)
    image.seek(0)
    return frames or [0]


def upright(image: Image.Image, max_side: int | None) -> Image.Image:
    """Return the image upright, without a palette, and with sides of at most `max_side` pixels."""
    # The JPEG decoder can scale down while decoding, which is faster.
    if max_side and image.format in PHOTOS:
        image.draft("RGB", (max_side, max_side))
    image = ImageOps.exif_transpose(image)
    image = image.convert("RGBA" if _has_alpha(image) else "L" if image.mode in ("1", "L") else "RGB")
    if max_side and max(image.size) > max_side:
        image.thumbnail((max_side, max_side), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return image


def _has_alpha(image: Image.Image) -> bool:
    return image.mode in ("RGBA", "LA", "PA", "RGBa") or "transparency" in image.info


def _order(mime_types: list[str], photo: bool, alpha: bool) -> list[str]:
    # Prefer JPEG for photographs, and PNG for drawings and transparency.
    first = "image/jpeg" if photo and not alpha else "image/png"
    return sorted(mime_types, key=lambda mime: mime != first)


def _tries(image: Image.Image, mime_types: list[str]) -> Iterator[tuple[str, bytes, tuple[int, int]]]:
    for _ in range(SCALE_FACTORS):
        for mime in mime_types:
            for data in _ENCODERS[mime](image):
                yield mime, data, image.size
        image = image.resize((max(image.width * 2 // 3, 1), max(image.height * 2 // 3, 1)), Image.Resampling.LANCZOS)


def _png(image: Image.Image) -> Iterator[bytes]:
    yield _encode(image, "PNG", optimize=False)


def _jpeg(image: Image.Image) -> Iterator[bytes]:
    flat = image
    if image.mode == "RGBA":
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A"))
    for quality in QUALITIES:
        yield _encode(flat, "JPEG", quality=quality)


def _webp(image: Image.Image) -> Iterator[bytes]:
    for quality in QUALITIES:
        yield _encode(image, "WEBP", quality=quality)


def _encode(image: Image.Image, name: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


_ENCODERS = {"image/png": _png, "image/jpeg": _jpeg, "image/webp": _webp}
