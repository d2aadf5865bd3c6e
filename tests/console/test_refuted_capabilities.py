"""If a model rejects content that it is supposed to read, its service is flagged, with the request as evidence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.actors import SYSTEM
from capabilities.core.vocabulary import Capabilities
from capabilities.models import Drift, Provider, Service
from capabilities.refused_files import refusal_buffer
from routing_admin.console.providers.actions import save_provider
from routing_admin.console.routes.actions import save_route_as
from routing_admin.console.services.actions import save_service
from routing_admin.core.configuration.specs import CandidateSpec, RouteSpec
from routing_admin.models import AuditEvent
from routing_admin.request_log.journal import journal
from tests.console.page import Page
from tests.console.visits import offered_undo
from tests.gateway.plane import chat_body, image, post
from tests.lab.received_requests import ReceivedRequest
from tests.lab.server import Lab

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

SENTENCE = "eyes should read images, but answered a request containing them with status 400."
REFUSAL = "http_400:message=image input is not supported by this model"


def reject_images(request: ReceivedRequest) -> str:
    return REFUSAL if request.media else "ok"


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(model=reject_images) as lab:
        yield lab


@pytest.fixture
def vision_service(demo: None, lab: Lab) -> Service:
    """A service that is declared to read images and audio, although its model reads neither."""
    provider = Provider(name="lab", protocol="openai", endpoint=lab.url(), default_model="x-1", key_source="none")
    save_provider(SYSTEM, provider)
    row = Service(service_id="eyes", name="eyes", provider=provider, model="x-1")
    save_service(SYSTEM, row, capabilities=Capabilities(("text", "vision", "audio"), ("text",)))
    return row


def reject_one_image(key: str) -> str:
    """Send a request with an image, which the first candidate rejects and a fallback answers.

    Return the request's id once the journal has been written.
    """
    answer = post(key, chat_body({"type": "text", "text": "What is it?"}, image(), model="eyes"))
    assert answer.status_code == 200
    journal().flush()
    refusal_buffer().write()
    return str(answer.headers["x-request-id"])


def test_rejected_image_flags_the_service_with_the_request_as_evidence(
    admin: Client, key: str, vision_service: Service, lab: Lab
) -> None:
    """The service is flagged on its page, on the dashboard and in the matrix.

    Later images are still sent to the model.
    """
    request_id = reject_one_image(key)
    drift = Drift.objects.get()
    assert (drift.capability, drift.kind, drift.request, drift.status) == ("vision", "refused", request_id, 400)
    for address in ("/services/eyes/", "/"):
        doubt = Page(admin.get(address)).shows(SENTENCE)
        assert doubt
        assert doubt.shows("Requests are handled as before until you or a probe decides.")
        request = doubt.link("The request")
        assert request
        assert request.attributes["href"] == f"/requests/{request_id}/"
    cell = Page(admin.get("/matrix/")).switch("eyes reads vision, declared, doubtful")
    assert cell
    assert "data-doubt" in cell.attributes
    lab.requests.clear()
    reject_one_image(key)
    assert [len(request.heard.media) for request in lab.requests] == [1, 0]


def test_route_pages_mark_a_candidate_with_a_capability_in_doubt(
    admin: Client, key: str, vision_service: Service
) -> None:
    save_route_as(SYSTEM, None, RouteSpec("look", (CandidateSpec("lab", "x-1"),)))
    reject_one_image(key)
    sentence = "It is declared to read images, but that is in doubt. See its model service."
    assert Page(admin.get("/routes/")).row("look").shows(f"Candidate 1: {sentence}")
    assert Page(admin.get("/routes/look/")).shows(sentence)


def test_declaring_a_doubted_capability_absent_can_be_undone(admin: Client, key: str, vision_service: Service) -> None:
    reject_one_image(key)
    answer = admin.post("/doubt/eyes/", {"capability": "vision", "act": "off"}, follow=True)
    page = Page(answer)
    assert "eyes no longer reads vision" in page.status
    assert not page.shows(SENTENCE)
    cell = vision_service.capabilities.get(side="input", name="vision")
    assert (cell.supported, cell.source) == (False, "declared")
    admin.post(f"/undo/{offered_undo(admin, answer)}/")
    assert Page(admin.get("/services/eyes/")).shows(SENTENCE)


def test_dismissed_doubt_is_ignored_for_a_week_and_then_raised_again(
    admin: Client, key: str, vision_service: Service
) -> None:
    """The declared capability is kept, and the dismissal is audited."""
    reject_one_image(key)
    answer = admin.post("/doubt/eyes/", {"capability": "vision", "act": "dismiss", "back": "dashboard"})
    assert answer["Location"] == "/"
    assert AuditEvent.objects.filter(action="drift.dismiss", object_name="eyes").exists()
    reject_one_image(key)
    assert not Page(admin.get("/")).shows(SENTENCE)
    assert vision_service.capabilities.get(side="input", name="vision").supported
    Drift.objects.update(dismissed_at=timezone.now() - timedelta(days=8), at=timezone.now() - timedelta(days=8))
    reject_one_image(key)
    assert Page(admin.get("/")).shows(SENTENCE)


def test_requests_without_files_or_with_other_failures_raise_no_doubt(
    key: str, vision_service: Service, lab: Lab
) -> None:
    post(key, chat_body("hello", model="eyes"))
    lab.model = lambda _: "http_400:message=temperature is too high"
    post(key, chat_body({"type": "text", "text": "What is it?"}, image(), model="eyes"))
    journal().flush()
    refusal_buffer().write()
    assert not Drift.objects.exists()


def test_probe_that_contradicts_a_declared_capability_raises_a_doubt(admin: Client, vision_service: Service) -> None:
    admin.post("/probe/eyes/")
    assert dict(Drift.objects.values_list("capability", "kind")) == {"vision": "denied", "audio": "denied"}
    page = Page(admin.get("/services/eyes/"))
    assert page.shows("eyes is declared to read images, but a probe found that it cannot.")
    assert page.button("It does not read images")


def test_viewer_can_see_but_not_resolve_a_doubt(viewer: Client, key: str, vision_service: Service) -> None:
    reject_one_image(key)
    page = Page(viewer.get("/services/eyes/"))
    assert page.shows(SENTENCE)
    assert not page.form("/doubt/eyes/")
    assert viewer.post("/doubt/eyes/", {"capability": "vision", "act": "off"}).status_code == 403
