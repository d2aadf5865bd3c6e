"""If a describer repeats a file's instructions, the next model receives them only as a quotation."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image, ImageDraw

from tests.capabilities.hostile_words import HOSTILE
from tests.describing.describers import QUESTION, describing_lab, received_bodies
from tests.gateway.plane import chat_body, image, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def image_part(name: str) -> dict[str, Any]:
    """Return an image that shows the text of a hostile file."""
    picture, buffer = Image.new("RGB", (320, 120), "white"), io.BytesIO()
    ImageDraw.Draw(picture).text(
        (4, 4), f"{name}\n{HOSTILE[name][:200]}".encode("ascii", "replace").decode(), fill="black"
    )
    picture.save(buffer, "PNG")
    return image("data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode())


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(item)


@pytest.mark.parametrize("blind", ["openai", "openai-responses", "anthropic", "gemini"])
def test_instructions_in_a_described_file_are_sent_only_as_a_quotation(key: str, blind: str) -> None:
    """The describer repeats each hostile text word for word. Each line is sent as a quotation, and no file is sent."""
    with describing_lab({"seer": [f"say:{text}" for text in HOSTILE.values()]}, blind=blind) as lab:
        for name in HOSTILE:
            answer = post(key, chat_body(QUESTION, image_part(name), model="task:blind", language="en"))
            assert answer.headers["x-routing-adaptation"] == "image=described:by_model", name
        bodies = received_bodies(lab, "blind")
    assert len(bodies) == len(HOSTILE)
    for body in bodies:
        lines = [line for text in strings(body) for line in text.split("\n") if "HACKED" in line]
        assert lines
        assert [line for line in lines if not line.startswith("> ")] == []
        assert "base64" not in str(body)
