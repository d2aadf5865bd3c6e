"""Descriptions of files by a model: previews without a call, descriptions on request, caching and the request log."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from artifacts import library as actions
from artifacts.models import Artifact
from capabilities.actors import SYSTEM
from routing_admin.configuration import snapshot
from routing_admin.console.routes.actions import delete_route, save_route
from routing_admin.console.settings.actions import set_content_policy
from routing_admin.dispatch.preview import preview
from routing_admin.models import FileDescription, RequestLog, TaskRoute
from tests.cast import HTMX
from tests.console.page import Page
from tests.describing.describers import DESCRIPTION, POLICY, describing_lab, received_bodies
from tests.gateway.plane import PNG, chat_body, image, logged, post

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", "logs"]), pytest.mark.usefixtures("demo")]


def store_picture() -> Artifact:
    return actions.store_bytes(SYSTEM, PNG, filename="cat.png", declared="image/png")


def enable_description_by_models() -> None:
    set_content_policy(SYSTEM, POLICY)
    snapshot.refresh()


ASK = "Ask seer now Asking …"
"""Both texts of the button that requests a description: idle and busy. The stylesheet shows one of them."""


def get_service_card(client: Client, row: Artifact) -> Page:
    return Page(client.get(reverse("artifact", args=[row.pk]) + "?service=blind&fragment=card&language=en"))


def request_description(client: Client, row: Artifact, **headers: str) -> Page:
    address = reverse("artifact_describe", args=[row.pk])
    return Page(client.post(address, {"service": "blind", "language": "en"}, headers=headers, follow=True))


def test_preview_names_the_describer_without_a_call(admin: Client) -> None:
    with describing_lab() as lab:
        enable_description_by_models()
        page = get_service_card(admin, store_picture())
        assert lab.requests == []
    assert page.shows("Would be described by seer; not cached, tokens unknown")
    assert page.button(ASK)
    assert page.text.count("[Here seer describes the file; it was not asked yet]") == 2


def test_requested_description_is_shown_and_stored(admin: Client) -> None:
    with describing_lab() as lab:
        enable_description_by_models()
        row = store_picture()
        answered = request_description(admin, row, **HTMX)
        next_card = get_service_card(admin, row)
        assert len(received_bodies(lab, "seer")) == 1
        assert received_bodies(lab, "blind") == []
    logged = RequestLog.objects.get(surface="describe")
    assert answered.shows("seer described the file; its words are kept.")
    assert reverse("request", args=[logged.pk]) in answered.link_urls
    for page in (answered, next_card):
        assert page.shows(f"> {DESCRIPTION}")
        assert page.shows("Described by seer; cached")
        assert page.button(ASK) is None


def test_failed_description_is_shown_and_can_be_retried(admin: Client) -> None:
    with describing_lab({"seer": ["http_401", f"say:{DESCRIPTION}"]}) as lab:
        enable_description_by_models()
        row = store_picture()
        answered = request_description(admin, row)
        assert request_description(admin, row, **HTMX).shows("seer described the file")
        assert len(received_bodies(lab, "seer")) == 2
    assert answered.shows("seer did not describe the file (")
    assert answered.shows("seer failed to describe the file")
    assert answered.button(ASK)


def test_viewer_cannot_request_or_read_a_description(admin: Client, viewer: Client) -> None:
    with describing_lab():
        enable_description_by_models()
        row = store_picture()
        assert get_service_card(viewer, row).button(ASK) is None
        assert viewer.post(reverse("artifact_describe", args=[row.pk]), {"service": "blind"}).status_code == 403
        request_description(admin, row)
        assert DESCRIPTION not in get_service_card(viewer, row).text
    assert FileDescription.objects.count() == 1


def test_api_preview_equals_the_preview_on_the_page(admin: Client) -> None:
    with describing_lab():
        enable_description_by_models()
        row = store_picture()
        before = {
            delivery.service_id: delivery.as_json()["description"]
            for delivery in preview(row, language="en").deliveries
        }
        request_description(admin, row)
        after = {
            delivery.service_id: delivery.as_json()["description"]
            for delivery in preview(row, language="en").deliveries
        }
    unknown = {"estimatedTokens": None, "estimatedBy": None, "fault": None}
    assert before["seer"] is None
    assert before["blind"] == {"describer": "seer", "state": "not_asked", "cached": False, **unknown}
    assert after["blind"] == {"describer": "seer", "state": "by_model", "cached": True, **unknown}


def test_request_page_shows_the_describer_call_below_the_attempt(admin: Client, key: str) -> None:
    with describing_lab():
        first = post(key, chat_body(image(), model="task:blind", language="en"))
        second = post(key, chat_body(image(), model="task:blind", language="en"))
    page = Page(admin.get(reverse("request", args=[logged(first.headers["x-request-id"]).pk])))
    describer_call = RequestLog.objects.get(surface="describe")
    texts = [control.text for control in page.controls if control.tag != "html"]
    assert "describes the image" in texts
    assert reverse("request", args=[describer_call.pk]) in page.link_urls
    assert page.shows(f"{describer_call.prompt_tokens} in, {describer_call.completion_tokens} out")
    assert page.shows("describing a file")
    second_page = Page(admin.get(reverse("request", args=[logged(second.headers["x-request-id"]).pk])))
    assert second_page.shows("describes the image") is None
    assert admin.get(reverse("request", args=[describer_call.pk])).status_code == 200


def test_attempt_rows_hide_the_same_columns_on_a_phone(admin: Client, key: str) -> None:
    """Otherwise, cells would move to a wrong column on a phone."""
    with describing_lab():
        answer = post(key, chat_body(image(), model="task:blind", language="en"))
    attempts = Page(admin.get(reverse("request", args=[logged(answer.headers["x-request-id"]).pk]))).region("Attempts")
    table = [control for control in attempts.controls if control.tag == "table"][-1]
    hidden = [
        ["p2" in (cell.attributes.get("class") or "") for cell in row.controls if cell.tag in ("th", "td")]
        for row in table.controls
        if row.tag == "tr"
    ]
    assert len(hidden) == 3
    assert hidden[0] == hidden[1] == hidden[2]


def test_failed_describer_call_has_a_red_row(admin: Client, key: str) -> None:
    with describing_lab({"seer": "http_401"}):
        answer = post(key, chat_body(image(), model="task:blind", language="en"))
    page = Page(admin.get(reverse("request", args=[logged(answer.headers["x-request-id"]).pk])))
    describer = page.region("Attempts").row("seer")
    assert describer.shows("describes the image")
    assert describer.chip(RequestLog.objects.get(surface="describe").outcome).tone == "bad"


def test_simulation_names_the_describer_without_a_call(admin: Client) -> None:
    with describing_lab() as lab:
        form = {"task": "blind", "act": "simulate", "sim-message": "Look!", "sim-artifact": store_picture().pk}
        page = Page(admin.post(reverse("simulate"), {**form, "sim-language": "en"}))
        assert lab.requests == []
    assert page.shows("an image would be described by seer; not cached, tokens unknown")
    assert page.shows("[Here seer describes the file; it was not asked yet]")


def test_route_page_shows_that_the_describer_route_is_missing(admin: Client) -> None:
    with describing_lab():
        row = TaskRoute.objects.get(task_type="describe")
        row.enabled = False
        save_route(SYSTEM, row, expected=row.version)
        for address in (reverse("route", args=["blind"]), reverse("routes")):
            assert Page(admin.get(address)).shows("The task route describe is disabled")
        delete_route(SYSTEM, TaskRoute.objects.get(task_type="describe"))
        page = Page(admin.get(reverse("route", args=["blind"])))
        offer = reverse("route_new") + "?task_type=describe"
        assert page.shows("There is no task route describe")
        assert offer in page.link_urls
        assert "describe" in [control.value for control in Page(admin.get(offer)).controls if control.tag == "input"]


def test_preview_names_the_reason_if_no_model_describes_a_file(admin: Client) -> None:
    with describing_lab():
        enable_description_by_models()
        row = store_picture()
        sound = actions.store_bytes(SYSTEM, b"ID3\x04" + bytes(40), filename="song.mp3", declared="audio/mpeg")
        assert get_service_card(admin, sound).shows("No model describes it: The model does not support")
        delete_route(SYSTEM, TaskRoute.objects.get(task_type="describe"))
        snapshot.refresh()
        reason = "The route describe is missing or disabled, or none of its models can be called."
        assert get_service_card(admin, row).shows(reason)
