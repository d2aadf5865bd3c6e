"""Simulating a draft or a stored route, sending a real request, and repeating a logged request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from artifacts.library import delete_artifacts, store_bytes
from artifacts.models import Artifact
from capabilities.actors import SYSTEM
from routing_admin.configuration import snapshot
from routing_admin.console.demo import load
from routing_admin.console.simulate.phrases import OUTCOMES
from routing_admin.console.simulate.views import scripted_outcome
from routing_admin.core.fallback.scripts import SCRIPTED
from routing_admin.models import AttemptLog, AuditEvent, RequestLog, Revision, TaskRoute
from routing_admin.request_log.journal import journal
from tests.console.page import Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
DESIGN = ["echo/echo-503", "echo/echo-vision", "echo/echo-text"]
PAGE = "/routes/design/"


def draft_form_data(*order: int, **fields: str) -> dict[str, Any]:
    data: dict[str, Any] = {
        "act": "simulate",
        "preset": "seed",
        "enabled": "on",
        "version": "1",
        "sim-message": "Hello",
    }
    data["card"] = [str(number) for number in (order or (1, 2, 3))]
    for position, name in enumerate(DESIGN, start=1):
        provider, _, model = name.partition("/")
        data |= {f"c-{position}-provider": provider, f"c-{position}-model": model}
    return data | fields


def simulate(client: Client, data: dict[str, Any], address: str = PAGE) -> Any:
    return client.post(address, data).context["panel"].run_view


def test_simulation_offers_every_scripted_outcome() -> None:
    assert set(OUTCOMES) == set(SCRIPTED)


def test_simulated_503_is_retried_before_the_next_candidate_answers(admin: Client) -> None:
    result = simulate(admin, draft_form_data(**{"out-1": "503", "out-2": "200"}))
    assert result.sentence == "Candidate 2, echo/echo-vision, answers"
    assert [stop.code for stop in result.stops] == ["503 ×3", "200", "not asked"]
    assert any("waits" in detail for detail in result.stops[0].details)


def test_raised_error_ends_the_simulation(admin: Client) -> None:
    result = simulate(admin, draft_form_data(**{"out-1": "400"}))
    assert (result.sentence, result.tone) == ("No candidate answers: the caller gets 400 upstream_400", "bad")
    assert [stop.tone for stop in result.stops] == ["bad", "", ""]


def test_simulated_stream_cut_calls_no_further_candidate(admin: Client) -> None:
    result = simulate(admin, draft_form_data(**{"out-1": "cut"}))
    assert result.sentence == "Candidate 1, echo/echo-503, is cut off: the caller keeps what came"


def test_simulation_uses_the_draft_instead_of_the_stored_route(admin: Client) -> None:
    before = Revision.objects.count()
    result = simulate(admin, draft_form_data(3, 1, **{"out-3": "404", "preset": "resilient"}))
    assert [stop.name for stop in result.stops] == ["echo/echo-text", "echo/echo-503"]
    assert result.sentence == "Candidate 2, echo/echo-503, answers"
    assert Revision.objects.count() == before


def test_simulation_shows_the_content_each_candidate_would_receive(admin: Client) -> None:
    load.load_files()
    page = admin.get(PAGE)
    image = next(artifact for artifact in page.context["panel"].artifacts if artifact.kind == "image")
    result = simulate(
        admin, draft_form_data(**{"out-1": "503", "out-2": "503", "sim-artifact": image.pk, "sim-language": "zh"})
    )
    vision, text = result.stops[1], result.stops[2]
    assert "an image as it is" in vision.details
    assert "an image as a description" in text.details
    assert text.text.startswith("请使用中文回答。")
    assert "【收到附件】" in text.text
    assert f"artifact:{image.pk}" in text.text
    assert (vision.described, text.described) == (False, True)
    assert "bytes>" in json.dumps(vision.payload)


def test_missing_key_is_ignored_only_if_chosen_in_the_form(admin: Client) -> None:
    data = {"task": "planning", "sim-message": "Hello", "act": "simulate"}
    skipped = simulate(admin, data, reverse("simulate"))
    assert [stop.code for stop in skipped.stops] == ["skipped: no key", "skipped: no key", "200"]
    usable = simulate(admin, {**data, "sim-usable": "on"}, reverse("simulate"))
    assert usable.sentence == "Candidate 1, openai/gpt-5.6-sol, answers"


def test_htmx_response_to_a_simulation_is_the_editor_with_the_result(admin: Client) -> None:
    editor = Page(admin.post(PAGE, draft_form_data(), headers={"HX-Request": "true"}))
    assert not editor.is_document
    assert editor.control("simulation")


def test_simulating_an_empty_chain_reports_a_missing_candidate(admin: Client) -> None:
    answer = admin.post(reverse("route_new"), {"act": "simulate", "preset": "seed", "sim-message": "x"})
    assert Page(answer).control("simulation").shows("There is no candidate to ask yet")


def test_simulation_with_an_unknown_artifact_returns_404(admin: Client) -> None:
    assert admin.post(PAGE, draft_form_data(**{"sim-artifact": "gone"})).status_code == 404


def test_simulation_shows_a_deleted_artifact_as_missing(admin: Client) -> None:
    row = store_bytes(SYSTEM, b"meet me at noon", filename="diary.txt", declared="text/plain")
    delete_artifacts(SYSTEM, [row.pk])
    simulated = simulate(admin, draft_form_data(**{"sim-artifact": row.pk}))
    assert "文件处理失败: diary.txt" in str(simulated.stops[0].payload)
    assert "noon" not in str([stop.payload for stop in simulated.stops])


def test_real_call_is_recorded_in_the_request_log_and_the_audit_log(admin: Client) -> None:
    result = simulate(admin, draft_form_data(act="send"))
    assert result.real
    assert result.sentence == "Candidate 2, echo/echo-vision, answered"
    assert "Hello" in result.answer
    journal().flush()
    row = RequestLog.objects.get(pk=result.request_id)
    assert (row.surface, row.outcome, row.task_type) == ("page", "ok", "design")
    event = AuditEvent.objects.get(action="request.send")
    assert (event.actor_kind, event.actor, event.object_name) == ("person", "admin", "design")


def test_failed_real_call_shows_every_attempt(admin: Client) -> None:
    result = simulate(admin, draft_form_data(1, act="send"))
    assert result.sentence == "No candidate answers: the caller gets 502 all_providers_failed"
    assert result.stops[0].tone == "bad"


def test_viewer_can_simulate_the_stored_route_but_not_send_real_calls(viewer: Client) -> None:
    page = viewer.post(PAGE, draft_form_data(3, **{"out-1": "503"}))
    assert page.context["panel"].artifacts == []
    assert [stop.name for stop in page.context["panel"].run_view.stops] == DESIGN
    assert simulate(viewer, draft_form_data(act="send")) is None
    assert not AuditEvent.objects.filter(action="request.send").exists()


def test_logged_request_is_simulated_with_the_logged_outcomes(admin: Client) -> None:
    row = RequestLog.objects.create(
        id="req_replay", started_at=timezone.now(), surface="v1", task_type="design", outcome="ok", language="en"
    )
    for position, (model, outcome, status) in enumerate(
        [("echo-503", "http_503", 503), ("echo-vision", "read_timeout", None)]
    ):
        AttemptLog.objects.create(
            request=row,
            position=position,
            provider="echo",
            model=model,
            outcome=outcome,
            status=status,
            at=timezone.now(),
        )
    page = admin.get(reverse("simulate"), {"request": row.pk})
    assert [outcome for _card, _name, outcome in page.context["panel"].outcomes] == ["503", "timeout", "200"]
    assert Page(page).shows("Candidate 3, echo/echo-text, answers")
    assert Page(page).shows("was not recorded")


@pytest.mark.parametrize(
    ("outcome", "status", "expected"),
    [
        ("ok", None, "200"),
        ("http_429", 429, "429"),
        ("http_502", 502, "503"),
        ("skipped_cooling", None, "200"),
        ("connect_refused", None, "refused"),
        ("http_404", 404, "404"),
    ],
)
def test_logged_attempt_is_simulated_with_the_nearest_offered_outcome(
    outcome: str, status: int | None, expected: str
) -> None:
    assert scripted_outcome(AttemptLog(outcome=outcome, status=status)) == expected


def test_unknown_route_is_simulated_as_the_default_route(admin: Client) -> None:
    page = admin.get(reverse("simulate"), {"task": "gone"})
    assert page.context["route"].task_type == "default"
    assert TaskRoute.objects.count() == 6


def test_several_files_can_be_attached_to_a_simulation(admin: Client) -> None:
    load.load_files()
    rows = [row for row in Artifact.objects.living() if row.kind in ("image", "document")]
    result = simulate(admin, draft_form_data(**{"out-1": "503", "sim-artifact": [row.pk for row in rows]}))
    assert sorted(result.stops[1].details) == ["a document converted", "an image as it is"]


def test_placeholder_files_can_be_attached_by_kind_and_size(viewer: Client) -> None:
    data = {"act": "simulate", "task": "design", "sim-message": "Look", "out-1": "503", "out-2": "503"}
    found = simulate(viewer, data | {"sim-image": "200", "sim-audio": "1500, 20", "sim-document": "64"}, "/simulate/")
    assert found.stops[1].details[:2] == ["an image as it is", "an audio file as a description"]
    assert "stand-in-2.mp3" in found.stops[2].text
    assert "<204800 bytes>" in json.dumps(found.stops[1].payload)


@pytest.mark.parametrize("sizes", ["much", "0", "-5", "99999999", "nan", "inf", "1,1,1,1,1,1,1,1,1,1,1"])
def test_invalid_placeholder_size_shows_an_error(viewer: Client, sizes: str) -> None:
    data = {"act": "simulate", "task": "design", "sim-message": "Look", "sim-image": sizes}
    simulation = Page(viewer.post("/simulate/", data)).control("simulation")
    assert simulation.shows("Enter placeholder sizes in KiB, up to 25600")
    assert not simulation.shows("Candidate 1")


def test_placeholder_files_are_never_sent_in_a_real_call(admin: Client) -> None:
    """A placeholder has no content to send. Nothing is logged either."""
    data = {"act": "send", "task": "design", "sim-message": "Look", "sim-image": "20"}
    assert Page(admin.post("/simulate/", data)).control("simulation").shows("A placeholder has no content")
    journal().flush()
    assert not RequestLog.objects.exists()


def test_navigation_contains_the_simulate_page(admin: Client) -> None:
    current = [
        control
        for control in Page(admin.get("/simulate/")).controls
        if control.attributes.get("aria-current") == "page"
    ]
    assert {control.attributes["href"] for control in current} == {"/simulate/"}


@pytest.mark.parametrize(("client", "offers"), [("admin", True), ("viewer", False)])
def test_simulate_page_without_a_route_explains_simulations(
    client: str, offers: bool, request: pytest.FixtureRequest
) -> None:
    TaskRoute.objects.all().delete()
    snapshot.refresh()
    page = Page(request.getfixturevalue(client).get("/simulate/"))
    assert page.shows("A simulation walks a route's fallback chain.")
    assert ("/routes/new/" in page.control("main").link_urls) is offers


def test_simulate_page_opens_with_the_first_candidate_answering(admin: Client) -> None:
    page = Page(admin.get("/simulate/?task=design"))
    assert page.shows("Candidate 1, echo/echo-503, answers")
    assert page.control("simulate-now").attributes["hx-trigger"] == "click, change from:#draft"
