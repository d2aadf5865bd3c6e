"""Which images are converted stands in a table of the delivery; the decoder is asked whether that is so."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from made_samples import rows
from samples import SAMPLES, Sample

from artifacts.extract import convert_image
from capabilities.core.delivery.decision import CONVERTIBLE
from capabilities.core.message import ConvertTo
from capabilities.core.vocabulary import Kind

TOO_LARGE_A_FORM = {"magick.psb"}
"""Photoshop's form for huge pictures, which its type does not tell from the usual one."""

MADE = {cells[0] for cells in rows()} - TOO_LARGE_A_FORM
WRITTEN = [each for each in SAMPLES if each.kind is Kind.IMAGE and (each.name in MADE or each.made == "Pillow")]
IMAGES = {each.mime: each for each in WRITTEN}
"""One of each type, written by a program."""


@pytest.mark.parametrize("sample", IMAGES.values(), ids=lambda sample: sample.name)
def test_an_image_is_converted_if_its_type_is_said_to_be(sample: Sample, kept) -> None:
    """No other is, so that nobody who could have it is told that it cannot be had."""
    if sample.mime in ("image/heic", "image/heif") and find_spec("pi_heif") is None:
        pytest.skip("HEIC needs the extra")
    converted = convert_image(kept(sample.data), ConvertTo(("image/png",)))
    assert (converted is not None) == (sample.mime in CONVERTIBLE)
