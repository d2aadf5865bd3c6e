"""Probing: the tiny files are real ones, and only an answer that names their content counts as reading."""

from __future__ import annotations

import io
import wave

import pytest
from PIL import Image
from pypdf import PdfReader

from capabilities.core.message import NativePart
from capabilities.core.providers.probes import PROBES, one_page, one_tone, red_square, request_of, verdict
from capabilities.core.wire import Fault


def test_the_image_is_a_red_square_of_64_pixels() -> None:
    """Another library decodes it to nothing but red."""
    image = Image.open(io.BytesIO(red_square()))
    assert image.size == (64, 64)
    assert image.getcolors() == [(64 * 64, (255, 0, 0))]


def test_the_page_is_a_pdf_of_one_page_with_one_word() -> None:
    """Another library finds the word without complaint."""
    reader = PdfReader(io.BytesIO(one_page()), strict=True)
    assert len(reader.pages) == 1
    assert reader.pages[0].extract_text().strip() == "pomegranate"


def test_the_sound_is_one_second_of_wav() -> None:
    """One channel, 8,000 samples, not silent."""
    with wave.open(io.BytesIO(one_tone())) as sound:
        assert (sound.getnchannels(), sound.getnframes(), sound.getframerate()) == (1, 8000, 8000)
        assert any(sound.readframes(8000))


@pytest.mark.parametrize("name", sorted(PROBES))
def test_the_question_does_not_give_the_answer_away(name: str) -> None:
    """A model that only reads the words, the filename included, cannot answer rightly by repeating them."""
    probe = PROBES[name]
    if name != "audio":
        assert verdict(probe, f"{probe.question} {probe.filename}") is False
    file = request_of(probe).messages[0].parts[1]
    assert isinstance(file, NativePart)
    assert file.mime_type == probe.mime_type


@pytest.mark.parametrize(
    ("name", "text", "fault", "reads"),
    [
        ("vision", "Red.", "", True),
        ("vision", "红色", "", True),
        ("vision", "I see no image. NONE", "", False),
        ("vision", "It is rendered in green", "", False),
        ("file", "POMEGRANATE", "", True),
        ("file", "NONE", "", False),
        ("audio", "A steady tone", "", True),
        ("audio", "NONE", "", False),
        ("vision", "", Fault.HTTP_400, False),
        ("vision", "", Fault.CAPABILITY_MISMATCH, False),
        ("vision", "", Fault.HTTP_429, None),
        ("vision", "", Fault.HTTP_401, None),
        ("vision", "", Fault.READ_TIMEOUT, None),
        ("vision", "   ", "", None),
    ],
)
def test_only_an_answer_that_names_the_content_counts(name: str, text: str, fault: str, reads: bool | None) -> None:
    """A silent drop is answered with 200 and still is no reading; trouble on the way says nothing either way."""
    assert verdict(PROBES[name], text, fault) is reads
