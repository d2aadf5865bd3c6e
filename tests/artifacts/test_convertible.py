"""The table of convertible image types contains exactly the types that the decoder can read."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from made_samples import rows
from samples import SAMPLES, Sample

from artifacts.extract import convert_image
from capabilities.core.delivery.decision import CONVERTIBLE
from capabilities.core.message import ConvertTo
from capabilities.core.vocabulary import Kind

# Photoshop's large document format (PSB) has the same MIME type as PSD but is not converted.
UNSUPPORTED = {"magick.psb"}

MADE = {cells[0] for cells in rows()} - UNSUPPORTED
WRITTEN_IMAGES = [
    sample for sample in SAMPLES if sample.kind is Kind.IMAGE and (sample.name in MADE or sample.made == "Pillow")
]
# One sample image of each type, which another program wrote.
IMAGES = {sample.mime: sample for sample in WRITTEN_IMAGES}


@pytest.mark.parametrize("sample", IMAGES.values(), ids=lambda sample: sample.name)
def test_image_is_converted_if_and_only_if_its_type_is_in_the_table(sample: Sample, write_file) -> None:
    if sample.mime in ("image/heic", "image/heif") and find_spec("pi_heif") is None:
        pytest.skip("HEIC needs the extra")
    converted = convert_image(write_file(sample.data), ConvertTo(("image/png",)))
    assert (converted is not None) == (sample.mime in CONVERTIBLE)
