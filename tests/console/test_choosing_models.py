"""Choosing from a provider's many models: search, select all, adjust before adding."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from capabilities.models import Service
from routing_admin.models import Alias, Revision
from tests.cast import HTMX
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADDRESS = "/providers/echo/models/"
NAMES = [f"model-{number:03}" for number in range(340)]


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    return admin


def post(client: Client, act: str, *chosen: str, names: list[str] = NAMES, **options: Any) -> Any:
    return client.post(
        ADDRESS, {"act": act, "names": "\n".join(names), "use": chosen, **options.pop("data", {})}, **options
    )


def test_selected_model_stays_selected_when_hidden_by_the_search(admin: Client) -> None:
    page = Page(post(admin, "find", "model-001", data={"q": "MODEL-33"}, headers=HTMX))
    assert page.rows == [f"model-33{number}" for number in range(10)]
    assert page.hidden("use") == "model-001"
    assert page.shows("10 of 340 models")


def test_select_all_selects_only_models_shown_by_the_search(admin: Client) -> None:
    page = Page(post(admin, "all", "model-001", data={"q": "model-33"}))
    assert len(page.rows) == 10
    assert all(box.is_checked for name in page.rows if (box := page.field(name)))
    assert page.button("Add 11")
    assert Page(post(admin, "count", "model-001", headers=HTMX)).button("Add 1")
    assert Page(post(admin, "none")).button("Add selected")


def test_select_all_skips_models_that_already_have_a_service(admin: Client) -> None:
    page = Page(post(admin, "all", names=["echo-vision", "new-one"]))
    assert page.row("echo-vision").shows("is already echo-vision")
    chosen = {name: box.is_checked for name in page.rows if (box := page.field(name))}
    assert chosen == {"echo-vision": False, "new-one": True}
    assert page.button("Add 1")


def test_chosen_models_are_added_as_services_in_one_revision(admin: Client) -> None:
    """If an id is taken, the provider's name is put in front of it."""
    before = Revision.objects.count()
    response = post(admin, "add", "new-one", "echo-vision", names=["echo-vision", "new-one", "left-alone"])
    assert response["Location"] == "/matrix/?provider=echo"
    assert Revision.objects.count() == before + 1
    assert Service.objects.filter(service_id__in=["new-one", "echo-echo-vision"]).count() == 2
    assert not Service.objects.filter(model="left-alone").exists()
    assert post(admin, "add").status_code == 422


def test_chosen_models_can_be_adjusted_before_adding(admin: Client) -> None:
    page = Page(post(admin, "adjust", "model-007", data={"q": "nothing"}))
    models = [control.value for control in page.controls if control.attributes.get("name") == "model"]
    assert models == ["model-007"]
    form = {"act": "make", "model": "model-007", "use-0": "on", "id-0": "seven", "alias-0": "james"}
    admin.post(ADDRESS, {**form, "caps-0": ["input:text", "input:vision", "output:text"]})
    assert Service.objects.get(service_id="seven").capabilities.get(side="input", name="vision").supported
    assert Alias.objects.get(name="james").target == "seven"


@pytest.mark.parametrize("act", ["test", "fetch"])
def test_failed_connection_test_keeps_the_offered_models_and_the_selection(admin: Client, demo: None, act: str) -> None:
    chosen = {"names": "model-a\nmodel-b", "use": ["model-b"]}
    first = Page(admin.post("/providers/openai/models/", {**chosen, "act": "find"}))
    button = first.button("Test connection Testing …")
    assert button
    assert button.attributes["form"] == "offer"
    page = Page(admin.post("/providers/openai/models/", {**chosen, "act": act}))
    boxes = {
        control.attributes.get("value"): control.is_checked
        for control in page.controls
        if control.attributes.get("name") == "use"
    }
    assert boxes == {"model-a": False, "model-b": True}
    assert page.control("dialled")
