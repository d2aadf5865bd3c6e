"""Undo reverts exactly the change that its toast reports, even if another process saves at the same time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from capabilities.actors import Actor
from capabilities.errors import ConflictError
from capabilities.models import Provider, Service
from routing_admin.configuration.revisions import ledger
from routing_admin.console.history.actions import undo as act_undo
from routing_admin.console.providers.actions import save_provider
from routing_admin.console.routes.actions import save_alias
from routing_admin.console.services.actions import save_service
from routing_admin.models import Revision, TaskRoute
from tests.console.another_process import AnotherProcess, after_the_change, another_process, before_the_change
from tests.console.page import Page
from tests.console.visits import newest_revision

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
TWO_PROCESSES = pytest.mark.django_db(databases=["default", "logs"], transaction=True)
ADA = Actor("person", "ada")
Post = tuple[str, dict[str, Any]]


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    """A browser in which the administrator is signed in.

    The demo additionally has an unused alias, an unused provider, and a service without capabilities.
    """
    with ledger.exclusive():  # Hold the lock for all changes, so that the new configuration is read only once.
        save_alias(ADA, "spare", "task:default")
        save_provider(ADA, Provider(name="spare", endpoint="https://spare.example/v1", default_model="m"))
        openai = Provider.objects.get(name="openai")
        unknown = Service(service_id="gpt", name="gpt", provider=openai, model="gpt-4o", declares_capabilities=False)
        save_service(ADA, unknown)
    return admin


@pytest.fixture(scope="module")
def bob(django_db_setup: None) -> Iterator[AnotherProcess]:
    with another_process() as running:
        yield running


def offered_revision(client: Client, post: Post) -> int | None:
    """Return the revision that the toast after this POST offers to undo, or None."""
    page = client.post(*post, follow=True)
    assert page.status_code == 200
    actions = (control.attributes.get("action") or "" for control in Page(page).controls if control.tag == "form")
    revisions = [action.split("/")[2] for action in actions if action.startswith("/undo/")]
    assert len(revisions) <= 1
    return int(revisions[0]) if revisions else None


def list_route_names() -> set[str]:
    return set(TaskRoute.objects.values_list("task_type", flat=True))


def change_form(address: str, **changed: str | list[str]) -> Callable[[Client], Post]:
    """Post the page's form with its current values, except for the given fields."""

    def post(client: Client) -> Post:
        form = client.get(address).context["form"]
        values = {name: form[name].value() for name in form.fields} | changed
        return address, {name: value for name, value in values.items() if value not in (None, False)}

    return post


def change_route(**changed: str) -> Callable[[Client], Post]:
    def post(client: Client) -> Post:
        draft = client.get("/routes/design/").context["draft"]
        data = {"act": "save", "preset": "seed", "enabled": "on", "version": draft.version, **changed}
        for card in draft.cards:
            data |= {f"c-{card.id}-provider": card.provider, f"c-{card.id}-model": card.model}
        return "/routes/design/", data | {"card": [card.id for card in draft.cards]}

    return post


def post_data(address: str, **data: Any) -> Callable[[Client], Post]:
    return lambda _client: (address, data)


def set_matrix_cell(_client: Client) -> Post:
    row = Service.objects.get(service_id="text-model")
    return f"/matrix/cell/{row.pk}/?side=input&name=vision", {"on": "1"}


def fill_matrix(**data: str) -> Callable[[Client], Post]:
    return lambda _client: ("/matrix/fill/", {"service": [Service.objects.get(service_id="gpt").pk], **data})


def restore_first_revision(_client: Client) -> Post:
    return f"/history/{Revision.objects.earliest('number').number}/restore/", {"seen": "1"}


def import_route(client: Client) -> Post:
    file = client.get("/config/export/llm-routing/", {"for": "full"}).json()
    file["routing"]["imported"] = {"provider": "echo"}
    return "/config/import/", {
        "text": [json.dumps(file)],
        "mode": "merge",
        "act": "apply",
        "expected": newest_revision(),
    }


SAVES: dict[str, Callable[[Client], Post]] = {
    "route": change_route(retries="4"),
    "route switch": post_data("/routes/design/enabled/"),
    "alias": post_data("/aliases/", name="gpt-4o", target="task:default"),
    "alias removed": post_data("/aliases/", remove="spare"),
    "provider": change_form("/providers/openai/", display_name="Ours"),
    "provider switch": post_data("/switch/providers/", name=["openai"], enabled="0"),
    "service": change_form("/services/text-model/", description="Ours"),
    "service switches": change_form("/services/text-model/", switch=["input:audio"], cell=["input:audio"]),
    "catalogue": post_data("/catalogue/gpt/"),
    "matrix switch": set_matrix_cell,
    "matrix column": fill_matrix(act="on", side="input", name="vision"),
    "matrix catalogue": fill_matrix(act="catalogue"),
    "agent": change_form("/agents/text-agent/", name="Ours"),
    "default language": change_form("/settings/", default_language="en"),
    "language": post_data("/settings/language/", code="pt", directive="Responda em português."),
    "restore": restore_first_revision,
    "import": import_route,
    "demo": post_data("/settings/demo/remove/"),
}
DELETES = ("/routes/design/delete/", "/providers/spare/delete/", "/delete/service/gpt/", "/delete/agent/text-agent/")


@pytest.mark.parametrize("page", SAVES)
def test_saving_offers_undo_of_its_own_revision_and_none_without_a_change(admin: Client, page: str) -> None:
    before = newest_revision()
    assert offered_revision(admin, SAVES[page](admin)) == newest_revision() != before
    revision = newest_revision()
    assert offered_revision(admin, SAVES[page](admin)) is None
    assert newest_revision() == revision


@pytest.mark.parametrize("address", DELETES)
def test_deleting_offers_undo_of_its_own_revision(admin: Client, address: str) -> None:
    before = newest_revision()
    assert offered_revision(admin, (address, {})) == newest_revision() != before


@TWO_PROCESSES
@pytest.mark.parametrize("page", ["route", "route switch", "alias", "alias removed"])
def test_saving_without_a_change_offers_no_undo_of_another_process_revision(
    admin: Client, bob: AnotherProcess, page: str
) -> None:
    """The other process saves between the page's query and its own save."""
    assert offered_revision(admin, SAVES[page](admin)) == newest_revision()
    post = SAVES[page](admin)
    with before_the_change(lambda: bob.save_route("bobs")):
        undo = offered_revision(admin, post)
    assert Revision.objects.latest("number").actor == "bob"
    assert undo is None


@TWO_PROCESSES
@pytest.mark.parametrize("page", ["route", "route switch", "alias", "alias removed", "restore", "provider"])
def test_saving_offers_undo_of_its_own_revision_even_if_a_later_revision_exists(
    admin: Client, bob: AnotherProcess, page: str
) -> None:
    before = newest_revision()
    post = SAVES[page](admin)
    with after_the_change(lambda: bob.save_route("bobs")):
        undo = offered_revision(admin, post)
    own, other = Revision.objects.filter(number__gt=before).order_by("number")
    assert (own.actor, other.actor, undo) == ("admin", "bob", own.number)
    refused = admin.post(f"/undo/{undo}/", follow=True)
    assert Page(refused).shows("Choose the version to restore in History.")
    assert "bobs" in list_route_names()


@TWO_PROCESSES
def test_undo_reverts_only_its_own_change(admin: Client, bob: AnotherProcess) -> None:
    post = SAVES["route"](admin)
    with before_the_change(lambda: bob.save_route("bobs")):
        undo = offered_revision(admin, post)
    assert TaskRoute.objects.get(task_type="design").retries == 4
    assert "Undone: " in Page(admin.post(f"/undo/{undo}/", follow=True)).status
    assert TaskRoute.objects.get(task_type="design").retries is None
    assert "bobs" in list_route_names()


@TWO_PROCESSES
def test_undo_is_rejected_if_another_process_saves_first(admin: Client, bob: AnotherProcess) -> None:
    """The undo transaction checks that the revision is still the newest, so no other change can be made in between."""
    with before_the_change(lambda: bob.save_route("bobs")), pytest.raises(ConflictError):
        act_undo(ADA, newest_revision())
    assert "bobs" in list_route_names()


@TWO_PROCESSES
def test_outdated_route_switch_is_rejected_after_another_process_saved_the_route(
    admin: Client, bob: AnotherProcess
) -> None:
    """A switch on a page that was rendered before another save is rejected, since it could overwrite newer fields."""
    with before_the_change(lambda: bob.save_route("design")):
        page = admin.post("/routes/design/enabled/", {}, follow=True)
    assert Page(page).shows("Someone else changed this in the meantime.")
    row = TaskRoute.objects.get(task_type="design")
    assert (row.enabled, row.retries) == (True, 9)
