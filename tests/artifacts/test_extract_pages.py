"""PDF pages are rendered as images for vision models, in a sandboxed process."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageStat
from samples import pdf

from artifacts.extract.drawing import draw_pages
from artifacts.extract.process import run
from capabilities.core.message import Converted, ConvertTo, PageImages

JPEG = ConvertTo(("image/jpeg",))


@pytest.fixture
def draw(tmp_path: Path):
    def draw(data: bytes, target: ConvertTo = JPEG, **options: int) -> PageImages | None:
        path = tmp_path / "file"
        path.write_bytes(data)
        return draw_pages(path, target, **options)

    return draw


def open_image(image: Converted) -> Image.Image:
    return Image.open(io.BytesIO(b"".join(image.blob.blocks())))


def scan(pages: int = 1) -> bytes:
    buffer = io.BytesIO()
    photographs = [Image.effect_noise((600, 800), 60).convert("RGB") for _ in range(pages)]
    photographs[0].save(buffer, "PDF", save_all=True, append_images=photographs[1:], resolution=100)
    return buffer.getvalue()


def test_scan_yields_an_image_per_page_in_the_requested_size(draw) -> None:
    page_images = draw(scan(3), ConvertTo(("image/png", "image/jpeg"), None, 500))
    assert (list(page_images.images), page_images.total) == ([1, 2, 3], 3)
    for image in page_images.images.values():
        assert (image.mime_type, image.width, image.height) == ("image/jpeg", 375, 500)
        assert open_image(image).size == (375, 500)


def high_resolution_scan(color: str = "RGB") -> tuple[Image.Image, bytes]:
    """Return an image that is dark at the left and light at the bottom right, and a PDF with this image at 600 dpi."""
    image, buffer = Image.new("RGB", (1200, 1600), (40, 20, 60)).convert(color), io.BytesIO()
    image.paste(Image.new("RGB", (600, 800), (240, 180, 90)).convert(color), (600, 800))
    image.save(buffer, "PDF", resolution=600)
    return image, buffer.getvalue()


def differ_visibly(image: Image.Image, other: Image.Image) -> bool:
    pixels = ImageStat.Stat(ImageChops.difference(image.convert("RGB"), other.convert("RGB").resize(image.size)))
    return max(pixels.mean) > 4


@pytest.mark.parametrize("color", ["RGB", "L"])
def test_high_resolution_scan_is_scaled_with_its_colors(draw, color: str) -> None:
    """If a page consists of a single JPEG, it is scaled while it is decoded. A grey page must stay grey."""
    image, data = high_resolution_scan(color)
    drawn = open_image(draw(data, ConvertTo(("image/jpeg",))).images[1])
    assert (drawn.size, drawn.mode, differ_visibly(drawn, image)) == ((300, 400), color, False)
    drawn = open_image(draw(data, ConvertTo(("image/jpeg",), None, 200)).images[1])
    assert (drawn.size, drawn.mode, differ_visibly(drawn, image)) == ((150, 200), color, False)


def test_color_inversion_by_the_pdf_is_applied_to_a_scanned_page(draw) -> None:
    """A PDF's dictionaries can invert a JPEG's colours, and the JPEG itself does not show it."""
    image, data = high_resolution_scan()
    inverted = data.replace(b"/BitsPerComponent", b"/Decode [1 0 1 0 1 0] /BitsPerComponent")
    drawn = open_image(draw(inverted, ConvertTo(("image/jpeg",))).images[1])
    assert not differ_visibly(drawn, ImageChops.invert(image))


def test_text_is_rendered_dark_on_white(draw) -> None:
    image = open_image(draw(pdf("Hello"), ConvertTo(("image/png",))).images[1]).convert("L")
    assert (image.getextrema()[0] < 80, image.getpixel((0, 0))) == (True, 255)


def test_range_of_pages_can_be_rendered(draw) -> None:
    data = pdf("a", "b", "c", "d")
    assert list(draw(data, first=2, count=2).images) == [2, 3]
    assert draw(data, first=9) is None


def test_page_image_respects_its_size_limit(draw) -> None:
    """The image's quality is reduced first, then its size."""
    page_images = draw(scan(), ConvertTo(("image/jpeg",), 20_000))
    assert page_images.images[1].blob.size <= 20_000
    assert draw(scan(), ConvertTo(("image/jpeg",), 20)) is None
    assert draw(scan(), ConvertTo(("image/heic",))) is None


HUGE = pdf("x").replace(b"[0 0 200 200]", b"[0 0 2e9 2e9]")
ENDLESS = pdf("x").replace(b"/Kids[4 0 R]", b"/Kids[2 0 R]")


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4", pdf("x")[:80], b"\0" * 9999, HUGE, ENDLESS])
def test_hostile_pdf_causes_no_error_and_no_huge_image(draw, data: bytes) -> None:
    page_images = draw(data, ConvertTo(("image/jpeg",), None, 1000))
    assert page_images is None or max(page_images.images[1].width, page_images.images[1].height) <= 1000


def test_encrypted_pdf_is_reported(tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(PdfReader(io.BytesIO(pdf("secret"))))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(tmp_path / "file")
    options = {"mime_types": ["image/png"], "max_bytes": 9999, "max_side": 99, "first": 1, "count": 1}
    result = run(tmp_path / "file", "pages", {**options, "max_total_bytes": 9999}, max_output=9999)
    assert result.reason == "encrypted"
