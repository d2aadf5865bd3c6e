"""The dashboard and the pages about services and routes name models that will be retired, and their successors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.actors import Actor, AuditedAction
from capabilities.core.providers.catalogue import default_catalogue
from capabilities.models import Provider, Service, ServiceCapability
from routing_admin.configuration import snapshot
from routing_admin.configuration.revisions import ledger
from routing_admin.models import AuditEvent, Candidate, TaskRoute
from tests.console.page import Page
from tests.console.visits import offered_undo

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
PRICE = {"currency": "USD", "input": 1, "output": 1}
ENDPOINT, MODEL = "https://api.anthropic.com/v1", "claude-sonnet-4-5"


@pytest.fixture
def retiring_model(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A route with only one model that reads images. This model will be retired in ten days."""
    retirement = default_catalogue().retirement_at("claude", ENDPOINT, MODEL)
    assert retirement is not None
    monkeypatch.setattr(timezone, "localdate", lambda: retirement.day - timedelta(days=10))
    with ledger.change(Actor("user", "admin"), AuditedAction("service.add", "service", "sonnet")):
        row = Provider.objects.create(
            name="claude", endpoint=ENDPOINT, default_model=MODEL, protocol="anthropic", key_source="none"
        )
        service = Service.objects.create(service_id="sonnet", name="sonnet", provider=row, model=MODEL, price=PRICE)
        for position, (name, source) in enumerate([("text", "declared"), ("vision", "declared"), ("video", "probed")]):
            ServiceCapability.objects.create(
                service=service, side="input", name=name, supported=True, source=source, position=position
            )
        route = TaskRoute.objects.create(task_type="pictures", position=99)
        Candidate.objects.create(route=route, provider=row, model=MODEL, position=1)
        Candidate.objects.create(route=route, provider=Provider.objects.get(name="echo"), model="echo-text", position=2)
    snapshot.refresh()
    return retirement


def test_dashboard_shows_which_capability_a_route_loses_when_a_model_retires(
    admin: Client, viewer: Client, retiring_model: Any
) -> None:
    retired = Page(admin.get("/")).region("Models being retired")
    assert retired.code(f"claude/{MODEL}")
    assert retired.shows(f"served until {retiring_model.day}")
    assert retired.shows("pictures loses its last model that reads images")
    assert retired.button(f"Use {retiring_model.successor} instead")
    assert not Page(viewer.get("/")).button(f"Use {retiring_model.successor} instead")


def test_route_and_service_pages_show_the_model_retirement(admin: Client, retiring_model: Any) -> None:
    assert Page(admin.get("/routes/pictures/")).shows(f"Its vendor recommends {retiring_model.successor} instead.")
    assert Page(admin.get("/routes/")).row("pictures").shows(f"{MODEL} is served until {retiring_model.day}")
    retirement = Page(admin.get("/services/sonnet/")).region("Retirement")
    assert retirement.shows(f"The vendor serves this model until {retiring_model.day}")


def test_route_and_service_pages_show_losses_and_successor_of_a_retiring_model(
    admin: Client, retiring_model: Any
) -> None:
    for address, kind in (("/routes/pictures/", "route"), ("/services/sonnet/", "service")):
        page = Page(admin.get(address))
        assert page.shows("pictures loses its last model that reads images")
        assert page.button(f"Use {retiring_model.successor} instead")
        form = {"model": MODEL, "successor": "another", kind: address.split("/")[2]}
        assert admin.post("/successor/claude/", form)["Location"] == address


def test_route_unaffected_by_a_model_retirement_shows_no_notice(admin: Client, retiring_model: Any) -> None:
    assert not Page(admin.get("/routes/planning/")).shows("Models being retired")


def test_button_replaces_a_retired_model_by_its_successor_and_can_be_undone(admin: Client, retiring_model: Any) -> None:
    """Replacing a retired model changes services, candidates and the provider's default.

    Declared capabilities are kept, while probed capabilities and the price are removed. Undo restores all of this.
    """
    answer = admin.post("/successor/claude/", {"model": MODEL, "successor": retiring_model.successor})
    number = offered_undo(admin, answer)
    service = Service.objects.get(service_id="sonnet")
    models = (service.model, Candidate.objects.get(route__task_type="pictures", position=1).model)
    assert (*models, Provider.objects.get(name="claude").default_model) == (retiring_model.successor,) * 3
    sources = {cell.name: cell.source for cell in service.capabilities.filter(side="input")}
    assert (sources["vision"], sources.get("video") == "probed") == ("declared", False)
    assert service.price == {}
    assert AuditEvent.objects.filter(action="model.replace", object_name="claude").exists()
    assert not Page(admin.get("/")).code(f"claude/{MODEL}")
    admin.post(f"/undo/{number}/")
    service = Service.objects.get(service_id="sonnet")
    assert (service.model, service.price) == (MODEL, PRICE)


@pytest.mark.parametrize(
    "form", [{"model": MODEL, "successor": "my-own"}, {"model": "other", "successor": "x"}, {"model": MODEL}]
)
def test_replacing_a_model_by_anything_but_the_catalogue_successor_is_rejected(
    admin: Client, retiring_model: Any, form: dict[str, str]
) -> None:
    page = Page(admin.post("/successor/claude/", form, follow=True))
    assert "The catalogue does not name this successor." in page.status
    assert Service.objects.get(service_id="sonnet").model == MODEL
