"""A TIFF's pages and some of an animation's frames are converted to images and keep their order."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image, TiffImagePlugin

from artifacts.extract import convert_image
from artifacts.extract.drawing import draw_pages
from capabilities.core.message import ConvertTo, PageImages

PNG = ConvertTo(("image/png",))


def build_frames(name: str, count: int) -> bytes:
    """Return an image whose frames have the grey levels 10, 20, 30 …."""
    first, *others = (Image.new("L", (9, 7), 10 * number) for number in range(1, count + 1))
    data = io.BytesIO()
    options = {"lossless": True} if name == "WEBP" else {}
    first.save(data, name, save_all=True, append_images=others, **options)
    return data.getvalue()


def draw_frames(path: Path, mime_type: str, count: int = 20) -> PageImages:
    pages = draw_pages(path, PNG, count=count, mime_type=mime_type)
    assert pages is not None
    return pages


def grey_levels(pages: PageImages) -> list[int]:
    images = (Image.open(io.BytesIO(b"".join(image.blob.blocks()))) for image in pages.images.values())
    return [int(image.convert("L").getpixel((0, 0))) for image in images]  # type: ignore[arg-type]


def test_every_page_of_a_tiff_is_converted_in_order(write_file) -> None:
    pages = draw_frames(write_file(build_frames("TIFF", 3)), "image/tiff")
    assert (list(pages.images), pages.total, grey_levels(pages)) == ([1, 2, 3], 3, [10, 20, 30])


def test_no_more_pages_than_requested_are_converted(write_file) -> None:
    pages = draw_frames(write_file(build_frames("TIFF", 5)), "image/tiff", 2)
    assert (list(pages.images), pages.total) == ([1, 2], 5)


@pytest.mark.parametrize(("name", "mime"), [("GIF", "image/gif"), ("PNG", "image/apng"), ("WEBP", "image/webp")])
def test_frames_of_an_animation_are_spread_over_its_length(write_file, name: str, mime: str) -> None:
    pages = draw_frames(write_file(build_frames(name, 12)), mime)
    assert (list(pages.images), pages.total) == ([1, 3, 5, 7, 9, 12], 12)
    assert grey_levels(pages) == [10, 30, 50, 70, 90, 120]


@pytest.mark.parametrize(("name", "count"), [("TIFF", 3), ("GIF", 12), ("PNG", 1), ("TIFF", 1)])
def test_conversion_reports_the_frame_count_of_the_file(write_file, name: str, count: int) -> None:
    converted = convert_image(write_file(build_frames(name, count)), PNG)
    assert converted is not None
    assert converted.frames == count


def test_reduced_copies_in_a_tiff_are_not_counted_as_pages(write_file) -> None:
    smaller = TiffImagePlugin.ImageFileDirectory_v2()
    smaller[254] = 1
    data = io.BytesIO()
    with TiffImagePlugin.AppendingTiffWriter(data, True) as writer:
        for options in ({}, {"tiffinfo": smaller}):
            Image.new("L", (9, 7), 10).save(writer, "TIFF", **options)  # type: ignore[arg-type]
            writer.newFrame()
    converted = convert_image(write_file(data.getvalue()), PNG)
    assert converted is not None
    assert converted.frames == 1
