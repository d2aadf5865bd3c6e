"""The nightly probe: enabled on a service's page, run by one process, with results that pages show."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from capabilities.actors import SYSTEM
from capabilities.core.vocabulary import Source
from capabilities.models import Drift, NightlyProbe, Provider, Service
from routing_admin.console.providers.actions import save_provider
from routing_admin.console.routes.actions import save_route_as
from routing_admin.console.services.actions import save_service, set_cell
from routing_admin.console.services.nightly import (
    NightlyProbes,
    claim_due_services,
    current_night,
    probe_nightly,
    set_nightly,
)
from routing_admin.console.services.probing import probe_service
from routing_admin.core.configuration.specs import CandidateSpec, RouteSpec
from routing_admin.models import AuditEvent, Revision
from tests.console.page import Control, Page
from tests.lab.reading_model import word_in
from tests.lab.received_requests import ReceivedRequest
from tests.lab.server import Lab

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

STOPPED = "The nightly probe found that gem no longer reads files."


def make_model(*blind_to: str, unclear_about: str = "") -> Callable[[ReceivedRequest], str | int]:
    """Return a model that reads all types except the given ones, and gives an unclear answer about one type."""

    def model(request: ReceivedRequest) -> str | int:
        if not request.media:
            return "ok"
        media = request.media[0]
        if media.mime_type in blind_to:
            return 400
        return "say:Perhaps." if media.mime_type == unclear_about else f"say:{word_in(media) or 'NONE'}"

    return model


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(model=make_model()) as lab:
        yield lab


@pytest.fixture
def gemini_service(demo: None, lab: Lab) -> Service:
    """A service whose probe found that it reads every kind of content."""
    provider = Provider(name="gem", protocol="gemini", endpoint=lab.url("gemini"), default_model="x-1")
    provider.key_source = "none"
    save_provider(SYSTEM, provider)
    row = Service(service_id="gem", name="gem", provider=provider, model="x-1", declares_capabilities=False)
    save_service(SYSTEM, row)
    probe_service(SYSTEM, row)
    return Service.objects.get(service_id="gem")


def readable_inputs(row: Service) -> set[str]:
    return set(row.capabilities.filter(side="input", supported=True).values_list("name", flat=True))


def probes_region(client: Client, service_id: str) -> Control:
    return Page(client.get(f"/services/{service_id}/")).region("Probes")


def test_nightly_probe_cost_is_estimated_from_the_last_probe(admin: Client, gemini_service: Service) -> None:
    probes = probes_region(admin, "gem")
    assert probes.shows("Nightly probe: off.")
    assert re.search(r"Each probe: up to 13 calls and about \d+ tokens, like the last one\.", probes.text)


def test_nightly_probe_first_runs_on_the_night_after_enabling(admin: Client, gemini_service: Service) -> None:
    assert list(claim_due_services(timezone.now() + timedelta(days=2))) == []
    admin.post("/nightly/gem/", {"on": "1"})
    assert list(claim_due_services(timezone.now())) == []
    assert [row.service_id for row in claim_due_services(timezone.now() + timedelta(days=1))] == ["gem"]


def test_enabling_the_nightly_probe_is_audited_and_can_be_reverted(admin: Client, gemini_service: Service) -> None:
    admin.post("/nightly/gem/", {"on": "1"})
    assert probes_region(admin, "gem").shows("Nightly probe: on, from 3:00.")
    assert probes_region(admin, "gem").button("Stop the nightly probe")
    assert AuditEvent.objects.filter(action="service.nightly", details={"on": True}).exists()
    admin.post("/nightly/gem/")
    assert not NightlyProbe.objects.exists()


def test_nightly_probe_cost_is_estimated_without_an_earlier_probe(admin: Client, demo: None) -> None:
    openai = Provider.objects.get(name="openai")
    save_service(SYSTEM, Service(service_id="four", name="four", provider=openai, model="gpt-4o"))
    text = probes_region(admin, "four").text
    assert re.search(r"Each probe: up to \d+ calls and about [\d,]+ tokens, by the vendor's formulas\.", text)
    assert re.search(r"Tokens unknown for: [\w, ]*audio", text)


def test_probe_cost_is_shown_if_the_model_has_a_price(admin: Client, gemini_service: Service) -> None:
    assert probes_region(admin, "gem").shows("Cost unknown, because the model has no price.")
    gemini_service.price = {"currency": "EUR", "input": 1000, "output": 1000}
    save_service(SYSTEM, gemini_service)
    probe_service(SYSTEM, gemini_service)
    probes = probes_region(admin, "gem")
    tokens = re.search(r"about (\d+) tokens, like the last one", probes.text)
    assert tokens is not None
    assert probes.shows(f"Estimated cost per night: {int(tokens[1]) / 1000:.2f} EUR.")
    assert len(re.findall(r"\d+ tokens in total, as counted by the provider\. 0\.\d+ EUR", probes.text)) == 4


def test_night_of_a_probe_begins_at_three_in_the_configured_time_zone() -> None:
    """A night begins at three o'clock in the installation's time zone. Earlier times belong to the previous night."""
    assert current_night(datetime(2026, 11, 22, 2, 59, tzinfo=UTC)) == date(2026, 11, 21)
    assert current_night(datetime(2026, 11, 22, 3, 0, tzinfo=UTC)) == date(2026, 11, 22)


def test_due_service_is_probed_by_only_one_of_several_processes(gemini_service: Service) -> None:
    for name in ("gem", "echo-vision", "echo-text"):
        NightlyProbe.objects.create(service_id=name, last_night=date(2026, 11, 1))
    now = datetime(2026, 11, 22, 4, 0, tzinfo=UTC)
    first_claim, second_claim = claim_due_services(now), claim_due_services(now)
    claimed = [next(first_claim), next(second_claim), *first_claim, *second_claim]
    assert sorted(row.service_id for row in claimed) == ["echo-text", "echo-vision", "gem"]
    assert list(claim_due_services(now)) == []


def test_capability_lost_in_a_nightly_probe_is_shown_on_every_related_page(
    admin: Client, gemini_service: Service, lab: Lab
) -> None:
    """The history (with an Undo button), the dashboard, the service's page and the chain show the loss.

    Undo removes these messages.
    """
    save_route_as(SYSTEM, None, RouteSpec("look", (CandidateSpec("gem", "x-1"),)))
    lab.model = make_model("application/pdf")
    result = probe_nightly(gemini_service)
    assert readable_inputs(gemini_service) == {"text", "vision", "audio", "video"}
    revision = Revision.objects.get(number=result.revision)
    assert (revision.actor, revision.message) == ("nightly probe", "service.probe_nightly")
    change = Page(admin.get("/history/")).row(str(result.revision))
    assert change.shows("Changed by the nightly probe")
    assert change.shows("no longer reads files")
    for address in ("/", "/services/gem/"):
        line = Page(admin.get(address)).shows(STOPPED)
        assert line
        assert line.link(f"Revision {result.revision}")
    route = Page(admin.get("/routes/")).row("look")
    assert route.shows("Candidate 1: The nightly probe found that it no longer reads files.")
    admin.post(f"/undo/{result.revision}/")
    assert "file" in readable_inputs(gemini_service)
    assert not Page(admin.get("/")).shows(STOPPED)


def test_capability_gained_in_a_nightly_probe_is_reported(admin: Client, gemini_service: Service) -> None:
    set_cell(SYSTEM, gemini_service, ("input", "vision"), supported=False, source=Source.CATALOGUE)
    save_route_as(SYSTEM, None, RouteSpec("look", (CandidateSpec("gem", "x-1"),)))
    probe_nightly(Service.objects.get(service_id="gem"))
    assert "vision" in readable_inputs(gemini_service)
    assert Page(admin.get("/")).shows("The nightly probe found that gem now reads images.")
    assert not Page(admin.get("/routes/")).shows("Candidate 1")
    admin.post("/doubt/gem/", {"capability": "vision", "act": "dismiss"})
    assert not Page(admin.get("/")).shows("gem now reads images")


def test_unclear_nightly_probe_result_changes_nothing(gemini_service: Service, lab: Lab) -> None:
    """The same applies if the model does not even answer a text-only request."""
    lab.model = make_model(unclear_about="application/pdf")
    before = Revision.objects.count()
    assert probe_nightly(gemini_service).unclear == ("file",)
    lab.model = lambda _: 503
    assert probe_nightly(gemini_service).failed is not None
    assert (Revision.objects.count(), Drift.objects.count()) == (before, 0)
    assert "file" in readable_inputs(gemini_service)


def test_nightly_probe_doubts_but_does_not_change_a_declared_capability(gemini_service: Service, lab: Lab) -> None:
    set_cell(SYSTEM, gemini_service, ("input", "file"), supported=True)
    lab.model = make_model("application/pdf")
    probe_nightly(Service.objects.get(service_id="gem"))
    assert "file" in readable_inputs(gemini_service)
    assert Drift.objects.get().kind == "denied"


def test_probe_command_probes_the_enabled_or_the_named_services(gemini_service: Service, lab: Lab) -> None:
    output = io.StringIO()
    call_command("probe_services", stdout=output)
    assert output.getvalue() == ""
    call_command("probe_services", "gem", stdout=output)
    assert output.getvalue() == "gem: reads text, vision, audio, video, file\n"
    set_nightly(SYSTEM, gemini_service, True, timezone.now())
    lab.model = make_model("application/pdf")
    output = io.StringIO()
    call_command("probe_services", stdout=output)
    assert output.getvalue() == "gem: reads text, vision, audio, video; does not read file; changed: file\n"
    with pytest.raises(CommandError, match="There is no enabled model service unknown"):
        call_command("probe_services", "gem", "unknown")


@pytest.mark.django_db(databases=["default", "logs"], transaction=True)
def test_server_probes_due_services(gemini_service: Service, lab: Lab) -> None:
    NightlyProbe.objects.create(service_id="gem", last_night=date(2026, 11, 1))
    lab.requests.clear()
    NightlyProbes().round()
    request_count = len(lab.requests)
    assert request_count == 13  # A probe sends one call with plain text, and three files for each of four types.
    NightlyProbes().round()
    assert len(lab.requests) == request_count
