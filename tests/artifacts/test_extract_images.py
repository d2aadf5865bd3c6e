"""The less common image formats HEIC, PSD and ICNS are converted to PNG."""

from __future__ import annotations

import base64
import io
import zlib
from pathlib import Path

import pytest
from PIL import Image
from samples import be32, draw_picture, psd

from artifacts.extract import convert_image, facts, thumbnail
from capabilities.core.message import ConvertTo

PACKED = (
    "c-"
    "muNV30{GsVvAy%}izhg51nBLl8SRGck>Ufw3kxwIq=N0u(b+a*CjAhJwuG5(YG&l$nzcHpIn&fe{FSfN=qY1_DzcR?f`KO9S&jqM"
    "|@fDif5KQI>27V)7MamgK^f{K+gRDge@VG7FOPfpjTQnKL6ZNN56Bk=zG{KYxGxU|`^9P5|nVaA4$N{Qn=MfElEM8HD6^F*zgxB{"
    "iKG8PQ}GC^WK8d$n%Xvj>U`4m2<@@HBvgTatjP*<2V879Z>c+98~rpHq~VoKpc5<z-+4Dq#@GEG|feddvZeHIj1@K@L-"
    "Zx?KQ7|NsC00gz?_(icE9NW37kA`_&MnS+A^NJ(TC<if%j7;LPKOw6n;K(=jeN+KwX4K*0oODYxwIlPZuy8nOvjQ`$8{|TqO|1ZI"
    "}_Y(J?HK|^=wtiZ4KdoVPS^5`^WpDG=HUI!YY-z9"
)
# This image of 32 x 16 pixels, red on the left and blue on the right, was drawn for this test and encoded with libheif.
HEIC = zlib.decompress(base64.b85decode(PACKED))

PNG = ConvertTo(("image/png",))


def convert_and_open(path: Path) -> Image.Image:
    converted = convert_image(path, PNG)
    assert converted is not None
    return Image.open(io.BytesIO(b"".join(converted.blob.blocks())))


def test_heic_is_converted(write_file) -> None:
    """HEIC conversion needs an optional package."""
    pytest.importorskip("pi_heif")
    path = write_file(HEIC)
    image = convert_and_open(path)
    assert (image.size, image.getpixel((4, 8)), image.getpixel((28, 8))) == ((32, 16), (200, 40, 40), (40, 40, 200))
    assert (facts(path, "image/heic").width, thumbnail(path) is not None) == (32, True)


def test_merged_image_of_a_psd_and_largest_icon_of_an_icns_are_converted(write_file) -> None:
    layers = psd()[:26] + bytes(12) + bytes(2) + b"\x40" * 600 + b"\x80" * 600 + b"\xc0" * 600
    assert convert_and_open(write_file(layers)).getpixel((0, 0)) == (0x40, 0x80, 0xC0)
    png = draw_picture("PNG", (128, 128))
    icon = b"ic07" + be32(8 + len(png)) + png
    assert convert_and_open(write_file(b"icns" + be32(8 + len(icon)) + icon)).size == (128, 128)


@pytest.mark.parametrize(
    "data",
    [
        HEIC[:200],
        HEIC[: HEIC.index(b"ispe") + 8] + be32(65_536) * 2 + HEIC[HEIC.index(b"ispe") + 16 :],
        b"8BPS\0\1" + bytes(6) + b"\0\3" + be32(30_000) * 2 + b"\0\x08\0\3" + bytes(14),
        b"icns" + be32(24) + b"ic07" + be32(1 << 30) + bytes(8),
    ],
    ids=["cut heic", "heic of 4 gigapixels", "psd of 900 megapixels", "icon beyond its end"],
)
def test_damaged_or_giant_image_yields_none(write_file, data: bytes) -> None:
    assert convert_image(write_file(data), PNG) is None
