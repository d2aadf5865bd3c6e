"""The pages about artifacts: list, upload, details, permissions and undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings
from django.urls import reverse

from artifacts import library as actions
from artifacts.core.detection.evidence import REASONS
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from capabilities.actors import SYSTEM
from capabilities.core.delivery.model_endpoint import Prepared
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.console.artifacts import receiving
from routing_admin.console.artifacts.phrases import EVIDENCE
from routing_admin.console.requests.send import plan_preview
from routing_admin.console.services.actions import save_service
from routing_admin.core.fallback.chain import Call
from routing_admin.core.planning.params import apply_params
from routing_admin.dispatch.plan import prepare_for
from routing_admin.dispatch.preview import preview
from routing_admin.models import RequestLog
from tests.api.api_samples import png
from tests.artifacts.samples import pdf
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import count_queries, response_text

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]
DEMO = Path(__file__).resolve().parents[2] / "routing_admin" / "console" / "demo"


def store_file(
    name: str = "photo.png", data: bytes | None = None, declared: str = "image/png", **options: Any
) -> Artifact:
    return actions.store_bytes(SYSTEM, png() if data is None else data, filename=name, declared=declared, **options)


def service_id_for(model: str) -> str:
    return next(service.id for service in snapshot.current().configuration.services if service.model == model)


def artifact_page(client: Client, row: Artifact, query: str = "") -> Page:
    response = client.get(reverse("artifact", args=[row.pk]) + query)
    assert response.status_code == 200
    return Page(response)


def list_services(page: Page, prefix: str = "") -> list[str]:
    """Return the ids of the services with this prefix that have a card on an artifact's page."""
    cards = (control.attributes.get("id") or "" for control in page.disclosures)
    return [card.removeprefix("d-") for card in cards if card.startswith(f"d-{prefix}")]


def upload(client: Client, *files: SimpleUploadedFile, **headers: str) -> Any:
    return client.post(reverse("artifact_upload"), {"file": list(files)}, headers=headers)


def test_scan_page_loads_previews_that_need_rendered_pages_separately(viewer: Client, demo: None) -> None:
    """On the first visit, services that receive the pages as images are listed without a preview.

    A second request renders the pages and returns these previews.
    """
    row = store_file("scan.pdf", pdf("", ""), "application/pdf")
    first = viewer.get(reverse("artifact", args=[row.pk])).context
    assert service_id_for("echo-vision") in {endpoint.name for endpoint in first["waiting"]}
    assert "converted" not in [group.badge for group in first["groups"]]
    page = artifact_page(viewer, row, "?language=en")
    waiting = page.region("Not drawn yet")
    assert waiting is page.loading(f"/artifacts/{row.pk}/?language=en&draw=1")
    assert waiting.disclosure("echo-vision")
    assert page.control("lead").text.startswith("Drawing the pages for")
    drawn = viewer.get(reverse("artifact", args=[row.pk]), {"draw": "1"}).context
    assert (drawn["waiting"], drawn["services"]) == ((), first["services"])
    assert drawn["counts"]["converted"] == len(first["waiting"])
    again = viewer.get(reverse("artifact", args=[row.pk])).context
    assert (again["waiting"], again["counts"]) == ((), drawn["counts"])


@pytest.mark.requirement("ABR-1.1")
def test_upload_requesting_json_returns_the_artifact_page_url(admin: Client) -> None:
    response = upload(admin, SimpleUploadedFile("a.png", png(), "image/png"), accept="application/json")
    row = Artifact.objects.get()
    assert (response.status_code, response.json()) == (201, {"url": reverse("artifact", args=[row.pk])})
    assert (row.filename, row.uploaded_by, row.kind) == ("a.png", "admin", "image")


def test_several_files_are_uploaded_together_without_javascript(admin: Client) -> None:
    files = (SimpleUploadedFile("a.txt", b"one"), SimpleUploadedFile("b.txt", b"two"))
    response = upload(admin, *files)
    assert (response.status_code, response["Location"]) == (302, reverse("artifacts"))
    assert set(Artifact.objects.values_list("filename", flat=True)) == {"a.txt", "b.txt"}


@override_settings(MAX_UPLOAD_BYTES=10)
def test_file_above_the_size_limit_is_rejected_and_the_limit_is_named(admin: Client) -> None:
    response = upload(admin, SimpleUploadedFile("big.bin", b"x" * 11), accept="application/json")
    assert response.status_code == 413
    assert "larger than the limit of 10" in response.json()["message"].replace("\xa0", " ")
    assert not Artifact.objects.exists()


def test_upload_form_without_a_file_is_rejected_with_an_error(admin: Client) -> None:
    response = upload(admin, accept="application/json")
    assert (response.status_code, "Choose one" in response.json()["message"]) == (422, True)


def test_viewer_can_see_delivery_decisions_but_no_file_content(admin: Client, viewer: Client, demo: None) -> None:
    image = store_file()
    secret = store_file("diary.txt", b"meet me at noon", "text/plain")
    for name in ("artifact_raw", "artifact_thumbnail"):
        assert viewer.get(reverse(name, args=[image.pk])).status_code == 403
    assert artifact_page(admin, image).image(f"Picture of {image.filename}")
    viewer_page = artifact_page(viewer, image)
    assert not viewer_page.image(f"Picture of {image.filename}")
    assert viewer_page.region("Described only").disclosure("text-model")
    assert "meet me at noon" not in response_text(viewer.get(reverse("artifact", args=[secret.pk])))
    assert artifact_page(admin, secret).shows("meet me at noon")


@pytest.mark.parametrize("name", ["artifact_upload", "artifacts_delete", "artifacts_restore"])
def test_viewer_cannot_change_artifacts(viewer: Client, name: str) -> None:
    row = store_file()
    assert viewer.post(reverse(name), {"id": [row.pk]}).status_code == 403
    assert Artifact.objects.living().filter(pk=row.pk).exists()


def test_served_bytes_cannot_run_in_the_browser(admin: Client) -> None:
    row = store_file(
        "evil.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "image/svg+xml"
    )
    raw = admin.get(reverse("artifact_raw", args=[row.pk]))
    assert raw["Content-Disposition"].startswith("attachment")
    small = admin.get(reverse("artifact_thumbnail", args=[store_file().pk]))
    assert small["Content-Type"] == "image/png"
    for response in (raw, small):
        assert response["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in response["Content-Security-Policy"]


def test_thumbnail_is_generated_once_and_undecodable_images_have_none(admin: Client) -> None:
    """A thumbnail is cached in the data directory, and served from there even if the original bytes are missing."""
    decodable, undecodable = store_file(), store_file("broken.png", png()[:45], "image/png")
    first = admin.get(reverse("artifact_thumbnail", args=[decodable.pk]))
    byte_store().delete(decodable.sha256)
    repeated = admin.get(reverse("artifact_thumbnail", args=[decodable.pk]))
    assert (first.status_code, first.content) == (repeated.status_code, repeated.content)
    # The list requests a thumbnail for every image, so a missing thumbnail must not be a 404.
    assert admin.get(reverse("artifact_thumbnail", args=[undecodable.pk])).status_code == 204
    assert admin.get(reverse("artifact_thumbnail", args=["unknown"])).status_code == 404


def test_undo_restores_all_artifacts_deleted_by_one_action(admin: Client) -> None:
    deleted_before, first, second = store_file("0.png"), store_file("1.png"), store_file("2.png")
    admin.post(reverse("artifacts_delete"), {"id": [deleted_before.pk]})
    response = admin.post(reverse("artifacts_delete"), {"id": [first.pk, second.pk]}, follow=True)
    assert not Artifact.objects.living().exists()
    page = Page(response)
    assert "2 artifacts deleted" in page.status
    toasts = (
        control
        for control in page.controls
        if control.text.startswith("2 artifacts deleted") and control.button("Undo")
    )
    (undo,) = (control for control in next(toasts).controls if control.tag == "form")
    admin.post(undo.attributes["action"], {"next": reverse("artifacts")})
    assert set(Artifact.objects.living().values_list("pk", flat=True)) == {first.pk, second.pk}


def test_artifact_list_is_filtered_by_name_and_kind(admin: Client) -> None:
    store_file("cat.png")
    store_file("notes.txt", b"words", "text/plain")
    list_page = Page(admin.get(reverse("artifacts"), {"q": "CAT"}))
    assert list_page.shows("cat.png")
    assert list_page.shows("notes.txt") is None
    assert Page(admin.get(reverse("artifacts"), {"kind": "text"})).shows("notes.txt")
    assert Page(admin.get(reverse("artifacts"), {"q": "dog"})).link("Clear filters")
    assert Page(admin.get(reverse("artifacts"), {"kind": "nonsense"})).shows("cat.png")


def test_artifact_list_query_count_is_the_same_for_three_and_thirty_artifacts(admin: Client) -> None:
    for number in range(3):
        store_file(f"{number}.txt", f"{number}".encode(), "text/plain")
    assert count_queries(admin, reverse("artifacts")) == 6
    for number in range(3, 30):
        store_file(f"{number}.txt", f"{number}".encode(), "text/plain")
    assert count_queries(admin, reverse("artifacts")) == 6


@pytest.mark.requirement("ABR-8.2")
def test_contradicted_declared_type_is_shown_beside_the_detected_type(admin: Client, demo: None) -> None:
    data = b"%PDF-1.4\n" + b"1 0 obj\n<<>>\nendobj\nxref\n0 1\ntrailer\n<<>>\n%%EOF\n"
    file = artifact_page(admin, store_file("photo.png", data)).region("The file")
    assert file.fact("Declared type").code("image/png")
    assert file.fact("Type used").code("application/pdf")
    assert file.shows("Declared as image/png, but the content is application/pdf. The content decides")


@pytest.mark.requirement("MCR-2.1", "ABR-4.1")
def test_artifact_page_groups_services_by_delivery_form(admin: Client, demo: None) -> None:
    page = artifact_page(admin, store_file(), "?language=en")
    unchanged = page.region("As it is").disclosure("vision-model")
    assert "bytes>" in unchanged.region("Payload").text
    described = page.region("Described only").disclosure("text-model")
    assert described.shows("The model does not support vision.")
    assert described.region("What the model sees").shows("[Attachment received]")


def test_texts_for_models_are_shown_in_the_requested_language(admin: Client, demo: None) -> None:
    row = store_file()
    for query, language, words in (
        ("?language=zh", "zh-Hans", "工件ID: "),
        ("?language=en", "en", "[Attachment received]"),
        ("", "en", "[Attachment received]"),
    ):
        card = artifact_page(admin, row, query).disclosure("text-model")
        text = card.region("What the model sees").shows(words)
        assert text, query
        assert text.attributes["lang"] == language


def test_services_used_by_no_route_can_be_hidden(admin: Client, demo: None) -> None:
    row = store_file()
    assert "text-model" in list_services(artifact_page(admin, row))
    assert "text-model" not in list_services(artifact_page(admin, row, "?routed=1"))


def test_single_service_card_is_returned_as_a_fragment(admin: Client, demo: None) -> None:
    row = store_file()
    address = reverse("artifact", args=[row.pk])
    card = Page(admin.get(address, {"service": "text-model", "fragment": "card"}))
    assert card.region("get_artifact")
    assert not card.is_document
    assert admin.get(address, {"service": "none", "fragment": "card"}).status_code == 404


def add_services(count: int) -> None:
    echo = Provider.objects.get(name="echo")
    for number in range(count):
        row = Service(service_id=f"more-{number:02}", name="more", provider=echo, model=f"m{number}")
        save_service(SYSTEM, row)


def test_artifact_page_shows_few_services_per_delivery_form_and_search_finds_the_others(
    admin: Client, demo: None
) -> None:
    add_services(50)
    row = store_file()
    first = artifact_page(admin, row)
    assert len(list_services(first, "more-")) < receiving.FEW
    assert "?form=described" in first.link_urls
    pages = [artifact_page(admin, row, query) for query in ("?form=described", "?form=described&page=2")]
    assert sum(len(list_services(page, "more-")) for page in pages) == 50
    assert len(list_services(artifact_page(admin, row, "?q=MORE-4"), "more-")) == receiving.FEW
    assert artifact_page(admin, row, "?service=more-49").disclosure("more-49").is_open
    assert artifact_page(admin, row, "?q=nothing-like-it").shows("No model service matches.")


def test_only_open_service_cards_contain_the_content_sent_to_the_model(admin: Client, demo: None) -> None:
    page = artifact_page(admin, store_file())
    cards = [page.disclosure(name) for name in list_services(page)]
    assert {card.is_open for card in cards} == {True, False}
    for card in cards:
        assert bool(card.shows("What the model sees")) is card.is_open
        assert card.attributes.get("hx-trigger") == (None if card.is_open else "toggle once")
    row = store_file("table.csv", b"one line of a long table\n" * 1000, "text/csv")
    assert not artifact_page(admin, row).shows("What the model sees")
    page = artifact_page(admin, row, "?service=text-model")
    assert [name for name in list_services(page) if page.disclosure(name).shows("Payload")] == ["text-model"]


def test_artifact_with_missing_bytes_is_reported_and_its_download_returns_410(admin: Client, demo: None) -> None:
    row = store_file()
    byte_store().delete(row.sha256)
    assert "missing from the store" in artifact_page(admin, row).control("lead").text
    assert admin.get(reverse("artifact_raw", args=[row.pk])).status_code == 410


def test_sending_a_file_to_a_model_shows_the_answer_in_place_and_logs_the_request(admin: Client, demo: None) -> None:
    row = store_file()
    address = reverse("artifact_send", args=[row.pk])
    response = admin.post(address, {"service": service_id_for("echo-vision")}, headers=HTMX)
    answer = Page(response)
    logged = RequestLog.objects.get()
    assert (response.status_code, answer.is_document) == (200, False)
    assert reverse("request", args=[logged.pk]) in answer.link_urls
    assert (logged.surface, logged.outcome, logged.adaptation) == ("page", "ok", "image=native")
    assert Page(admin.post(address, {"service": service_id_for("echo-vision")})).is_document


def test_model_without_a_key_shows_why_sending_is_impossible(admin: Client, demo: None) -> None:
    response = admin.post(reverse("artifact_send", args=[store_file().pk]), {"service": "text-model"})
    assert Page(response).shows("has no key")


def test_sending_returns_403_for_a_viewer_and_404_for_an_unknown_service(
    admin: Client, viewer: Client, demo: None
) -> None:
    address = reverse("artifact_send", args=[store_file().pk])
    assert viewer.post(address, {"service": "text-model"}).status_code == 403
    assert admin.post(address, {"service": "none"}).status_code == 404
    assert not RequestLog.objects.exists()


@pytest.mark.parametrize("service", ["echo-vision", "echo-text"])
def test_artifact_preview_equals_the_payload_sent(demo: None, service: str) -> None:
    row, state = store_file(), snapshot.current()
    spec = state.configuration.service(service_id_for(service))
    assert spec is not None
    planned = plan_preview(state, row, spec, "en")
    call = Call(planned.plan.candidates[0], 1, planned.plan.timeouts)
    prepared = prepare_for(planned, apply_params(planned.chat, call), planned.endpoint(0), call)
    delivered = next(delivery for delivery in preview(row, language="en").deliveries if delivery.service_id == spec.id)
    assert isinstance(prepared, Prepared)
    assert (delivered.payload, delivered.bytes) == (prepared.request.elide(), prepared.request.content_length)


def test_every_type_detection_reason_has_a_message() -> None:
    assert {code: str(text) for code, text in EVIDENCE.items()} == dict(REASONS)


def test_guessed_encoding_is_marked_as_a_guess(admin: Client) -> None:
    """Short text may be valid in several encodings, so the page marks the chosen one as a guess."""
    guess = store_file("note.txt", "Müller\n".encode("cp1252"), "text/plain")
    sure = store_file("note.txt", "Müller\n".encode(), "text/plain")
    assert (guess.encoding_certain, sure.encoding_certain) == (False, True)
    file = artifact_page(admin, guess).region("The file")
    assert file.fact("Encoding").shows("guessed")
    assert file.shows("is a guess; another one fits nearly as well")
    certain = artifact_page(admin, sure).region("The file")
    assert not certain.fact("Encoding").shows("guessed")
    assert not certain.shows("is a guess")
    admin.cookies["django_language"] = "zh-hans"
    assert artifact_page(admin, guess).shows("只是推测")


def test_undecodable_image_is_shown_as_an_icon_instead_of_a_broken_picture(admin: Client, viewer: Client) -> None:
    """An icon is shown even if the file's type was corrected to an image type."""
    row = store_file("odd.bin", b"\x00\x01\x02 no picture at all" * 9, "application/octet-stream")
    actions.correct_artifact(SYSTEM, row, mime_type="image/x-odd")
    thumbnail = reverse("artifact_thumbnail", args=[row.pk])
    for page in (artifact_page(admin, row), Page(admin.get(reverse("artifacts")))):
        assert thumbnail not in [control.attributes.get("src") for control in page.controls]
    file = artifact_page(admin, row).region("The file")
    (blank,) = (control for control in file.controls if "sheet" in (control.attributes.get("class") or "").split())
    assert [control.tag for control in blank.controls] == ["svg", "use"]
    actions.correct_artifact(SYSTEM, Artifact.objects.get(), mime_type="image/png")
    assert [control for control in artifact_page(admin, row).controls if control.tag == "img"] == []


@pytest.mark.parametrize(("name", "tag"), [("sine.mp3", "audio"), ("film.webm", "video")])
def test_audio_and_video_players_are_shown_only_to_users_allowed_to_download(
    admin: Client, viewer: Client, name: str, tag: str
) -> None:
    data = (Path(__file__).resolve().parents[1] / "artifacts" / "files" / name).read_bytes()
    row = store_file(name, data, "")
    for client, players in ((admin, [f"Player of {name}"]), (viewer, [])):
        assert [control.name for control in artifact_page(client, row).controls if control.tag == tag] == players
