"""A capability about which catalogue sources disagree counts as missing, and pages name both sources."""

from __future__ import annotations

import pytest
from django.test import Client

from capabilities.actors import SYSTEM
from capabilities.core.vocabulary import Source
from capabilities.models import Provider, Service, ServiceCapability
from routing_admin.console.services.actions import set_cell
from routing_admin.models import Revision
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
CONTEST = "contested: LiteLLM 1.109.1 says yes, models.dev 2026-08-18 says no. Counts as no."


@pytest.fixture
def flash_service() -> Service:
    """A service without capabilities. Two catalogue sources describe its model differently."""
    provider = Provider.objects.create(
        name="deepseek", endpoint="https://api.deepseek.com", default_model="deepseek-v4-flash", key_source="none"
    )
    return Service.objects.create(
        service_id="flash",
        name="Flash",
        provider=provider,
        model="deepseek-v4-flash",
        declares_capabilities=False,
    )


def find_capability(row: Service, side: str, name: str) -> tuple[bool, str]:
    return ServiceCapability.objects.values_list("supported", "source").get(service=row, side=side, name=name)


def test_filling_from_the_catalogue_marks_contested_capabilities_and_leaves_these_off(
    admin: Client, flash_service: Service
):
    admin.post("/matrix/fill/", {"act": "catalogue"})
    assert find_capability(flash_service, "input", "text") == (True, "catalogue")
    assert find_capability(flash_service, "input", "audio") == (False, "catalogue")
    assert find_capability(flash_service, "input", "vision") == (False, "contested")


def test_matrix_and_service_page_name_both_sources_of_a_contested_capability(admin: Client, flash_service: Service):
    admin.post("/matrix/fill/", {"act": "catalogue"})
    row = Page(admin.get("/matrix/")).row("flash")
    cells = [control for control in row.switches if control.attributes.get("data-source") == "contested"]
    assert [cell.attributes["title"] for cell in cells] == [CONTEST]
    page = Page(admin.get("/services/flash/"))
    assert page.text.count(CONTEST) == 2
    assert page.chip("Contested")
    assert page.shows("LiteLLM 1.109.1, models.dev 2026-08-18 agree")


def test_capability_without_a_catalogue_source_stays_unknown(admin: Client):
    provider = Provider.objects.create(
        name="anthropic", endpoint="https://api.anthropic.com/v1", default_model="x", key_source="none"
    )
    row = Service.objects.create(
        service_id="fable", name="F", provider=provider, model="claude-fable-5-1", declares_capabilities=False
    )
    admin.post("/matrix/fill/", {"act": "catalogue"})
    assert find_capability(row, "input", "vision") == (True, "catalogue")
    assert find_capability(row, "input", "audio") == (False, "unknown")
    page = Page(admin.get("/services/fable/"))
    assert page.shows("only LiteLLM 1.109.1")
    assert page.shows("no source mentions it")
    admin.post(f"/matrix/cell/{row.pk}/?side=input&name=audio", {"on": "1"})
    admin.post(f"/undo/{Revision.objects.latest('number').number}/")
    assert find_capability(row, "input", "audio") == (False, "unknown")


def test_administrator_choice_overrides_a_contested_capability(admin: Client, flash_service: Service):
    admin.post("/matrix/fill/", {"act": "catalogue"})
    admin.post(f"/matrix/cell/{flash_service.pk}/?side=input&name=vision", {"on": "1"})
    admin.post("/catalogue/flash/")
    assert find_capability(flash_service, "input", "vision") == (True, "declared")


def test_contested_capability_is_shown_where_models_are_chosen(admin: Client, flash_service: Service):
    url = f"/providers/{flash_service.provider.name}/models/"
    Service.objects.all().delete()
    offer = Page(admin.post(url, {"act": "write", "names": "deepseek-v4-flash"}))
    assert offer.row("deepseek-v4-flash").shows(CONTEST)
    adjust = Page(admin.post(url, {"act": "adjust", "names": "deepseek-v4-flash", "use": "deepseek-v4-flash"}))
    assert adjust.region("Models offered, with what they read and write").shows(CONTEST)


def test_adding_a_model_stores_the_contested_capability_as_contested(admin: Client, flash_service: Service):
    url = f"/providers/{flash_service.provider.name}/models/"
    Service.objects.all().delete()
    admin.post(url, {"act": "add", "names": "deepseek-v4-flash", "use": "deepseek-v4-flash"})
    row = Service.objects.get()
    assert find_capability(row, "input", "vision") == (False, "contested")


def test_undo_restores_a_contested_capability(admin: Client, flash_service: Service):
    admin.post("/matrix/fill/", {"act": "catalogue"})
    admin.post(f"/matrix/cell/{flash_service.pk}/?side=input&name=vision", {"on": "1"})
    assert find_capability(flash_service, "input", "vision") == (True, "declared")
    admin.post(f"/undo/{Revision.objects.latest('number').number}/")
    assert find_capability(flash_service, "input", "vision") == (False, "contested")


def test_probe_resolves_a_contested_capability(admin: Client, flash_service: Service):
    admin.post("/matrix/fill/", {"act": "catalogue"})
    set_cell(SYSTEM, flash_service, ("input", "vision"), supported=True, source=Source.PROBED)
    admin.post("/matrix/fill/", {"act": "catalogue"})
    admin.post("/catalogue/flash/")
    assert find_capability(flash_service, "input", "vision") == (True, "probed")
