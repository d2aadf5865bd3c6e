"""Image width and height are read from file headers without Pillow, and equal the values that Pillow returns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import SAMPLES, be16, draw_picture

from artifacts.core.detection.image_size import image_size

FORMATS = {
    "PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp", "BMP": "image/bmp",
    "TIFF": "image/tiff", "AVIF": "image/avif",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@given(st.integers(1, 300), st.integers(1, 300))
def test_image_size_from_the_header_equals_the_decoded_size(name: str, width: int, height: int) -> None:
    data = draw_picture(name, (width, height))
    assert image_size(data, FORMATS[name], lambda start, n: data[start : start + n]) == (width, height)


@pytest.mark.parametrize("options", [{"lossless": True}, {"exif": b"Exif\0\0" + bytes(30)}])
def test_size_of_every_webp_variant_is_read(options: dict[str, object]) -> None:
    """Lossless and extended WebP files store the size at different positions than lossy files."""
    assert image_size(draw_picture("WEBP", (31, 17), **options), "image/webp") == (31, 17)


def test_icon_with_a_side_of_zero_has_256_pixels() -> None:
    """A side has one byte, so 256 is written as 0."""
    entries = [bytes([16, 16]), bytes([0, 0]), bytes([48, 48])]
    icon = b"\0\0\1\0" + bytes([len(entries), 0]) + b"".join(entry + bytes(14) for entry in entries)
    assert image_size(icon, "image/x-icon") == (256, 256)


def test_jpeg_size_is_read_after_large_metadata() -> None:
    """Three full metadata segments move the frame header beyond the first 64 KB, so more of the file must be read."""
    data = draw_picture("JPEG", (40, 30))
    fat = data[:2] + (b"\xff\xe1" + be16(65535) + bytes(65533)) * 3 + data[2:]
    assert image_size(fat[:65536], "image/jpeg") is None
    assert image_size(fat[:65536], "image/jpeg", lambda start, n: fat[start : start + n]) == (40, 30)


@given(st.binary(max_size=200), st.sampled_from([*FORMATS.values(), "image/x-icon", "image/svg+xml", "audio/mpeg"]))
def test_any_bytes_yield_a_size_or_none(data: bytes, mime: str) -> None:
    size = image_size(data, mime)
    assert size is None or min(size) > 0


def test_icon_and_psd_sizes_are_read() -> None:
    """An icon has the size of its largest entry, and a PSD file has the size of its canvas."""
    by_name = {sample.name: sample for sample in SAMPLES}
    assert image_size(by_name["icon.ico"].data, "image/x-icon") == (16, 16)
    assert image_size(by_name["layers.psd"].data, "image/vnd.adobe.photoshop") == (30, 20)
