"""Comparison of what two models receive of one artifact, with the difference and the number of tokens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from artifacts.library import store_bytes
from artifacts.models import Artifact
from capabilities.acts import SYSTEM
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.dispatch.preview import Previewer
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
PICTURE = Path(__file__).resolve().parents[1] / "artifacts" / "files" / "magick.png"


@pytest.fixture
def row(demo: None) -> Artifact:
    return store_bytes(SYSTEM, PICTURE.read_bytes(), filename="photo.png", declared="image/png")


def compare(client: Client, row: Artifact, a: str = "", b: str = "") -> str:
    return client.get(reverse("artifact_compare", args=[row.pk]), {"a": a, "b": b, "language": "en"}).content.decode()


def test_what_differs_between_two_models_is_marked(admin: Client, row: Artifact) -> None:
    """The comparison marks differences in the form of delivery, in the content part and in lines of the payloads."""
    text = compare(admin, row, "vision-model", "text-model")
    assert "the model gets the file" in text
    assert "the model only gets a description" in text
    assert text.count("differs") >= 3
    assert 'class="diff"' in text
    assert "image_url" in text


@pytest.mark.parametrize(
    ("protocol", "part"),
    [
        ("openai", "image_url"),
        ("openai-responses", "input_image"),
        ("anthropic", "image"),
        ("gemini", "inlineData"),
    ],
)
def test_the_place_in_the_message_is_named_in_every_protocol(
    admin: Client, row: Artifact, protocol: str, part: str
) -> None:
    Provider.objects.filter(name="example").update(protocol=protocol)
    snapshot.refresh()
    cell = Page(admin.get(reverse("artifact_compare", args=[row.pk]), {"a": "text-model", "b": "vision-model"}))
    assert cell.row("Place in the message").shows(part)


def test_a_model_beside_itself_differs_in_nothing(admin: Client, row: Artifact) -> None:
    text = compare(admin, row, "text-model", "text-model")
    assert "differs" not in text
    assert "Both get exactly the same." in text
    assert "Tokens: about" in text


def test_names_that_there_are_none_of_give_the_first_two(admin: Client, row: Artifact) -> None:
    """If the names of the models are unknown or missing, the first two models are compared."""
    first, second = (endpoint.name for endpoint in Previewer(row).endpoints[:2])
    assert re.findall(r'name="[ab]" value="([^"]+)', compare(admin, row, "unknown", "")) == [first, second]


def test_a_viewer_compares_without_the_words_of_the_file(viewer: Client, demo: None) -> None:
    """A viewer sees the compared decisions, but not the file's text."""
    row = store_bytes(SYSTEM, b"meet me at noon", filename="a.txt", declared="text/plain")
    text = compare(viewer, row, "text-model", "vision-model")
    assert "How it is received" in text
    assert "meet me at noon" not in text
