"""The page that compares what two models receive for an artifact, with the differences and token counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from artifacts.library import store_bytes
from artifacts.models import Artifact
from capabilities.actors import SYSTEM
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.dispatch.preview import Previewer
from tests.console.page import Page
from tests.console.visits import response_text

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
PICTURE = Path(__file__).resolve().parents[1] / "artifacts" / "files" / "magick.png"


@pytest.fixture
def row(demo: None) -> Artifact:
    return store_bytes(SYSTEM, PICTURE.read_bytes(), filename="photo.png", declared="image/png")


def compare(client: Client, row: Artifact, a: str = "", b: str = "") -> Page:
    return Page(client.get(reverse("artifact_compare", args=[row.pk]), {"a": a, "b": b, "language": "en"}))


def list_differing_rows(page: Page) -> list[str]:
    summary = page.region("Summary")
    return [name for name in summary.rows if summary.row(name).shows("differs")]


def test_differences_between_two_models_are_marked(admin: Client, row: Artifact) -> None:
    page = compare(admin, row, "vision-model", "text-model")
    assert list_differing_rows(page)[:3] == ["How it is received", "Why", "Place in the message"]
    received = page.region("Summary").row("How it is received")
    assert received.shows("the model gets the file")
    assert received.shows("the model only gets a description")
    assert page.region("Payload").shows("image_url")


@pytest.mark.parametrize(
    ("protocol", "part"),
    [
        ("openai", "image_url"),
        ("openai-responses", "input_image"),
        ("anthropic", "image"),
        ("gemini", "inlineData"),
    ],
)
def test_comparison_names_the_message_part_in_each_protocol(
    admin: Client, row: Artifact, protocol: str, part: str
) -> None:
    Provider.objects.filter(name="example").update(protocol=protocol)
    snapshot.refresh()
    cell = Page(admin.get(reverse("artifact_compare", args=[row.pk]), {"a": "text-model", "b": "vision-model"}))
    assert cell.row("Place in the message").shows(part)


def test_comparing_a_model_with_itself_shows_no_difference(admin: Client, row: Artifact) -> None:
    page = compare(admin, row, "text-model", "text-model")
    assert list_differing_rows(page) == []
    assert page.shows("Both get exactly the same.")
    assert page.region("Summary").row("Tokens").shows("≈")


def test_first_two_models_are_compared_if_names_are_unknown_or_missing(admin: Client, row: Artifact) -> None:
    first, second = (endpoint.name for endpoint in Previewer(row).endpoints[:2])
    page = compare(admin, row, "unknown", "")
    assert [page.field(name).value for name in ("First model service", "Second model service")] == [first, second]


def test_viewer_can_compare_models_but_not_see_the_file_text(viewer: Client, demo: None) -> None:
    row = store_bytes(SYSTEM, b"meet me at noon", filename="a.txt", declared="text/plain")
    address = reverse("artifact_compare", args=[row.pk])
    answer = viewer.get(address, {"a": "text-model", "b": "vision-model", "language": "en"})
    assert "How it is received" in Page(answer).region("Summary").rows
    assert "meet me at noon" not in response_text(answer)
