"""The capability matrix: one switch per cell, saved immediately, with the source of each value."""

from __future__ import annotations

import pytest
from django.test import Client

from capabilities.actors import SYSTEM
from capabilities.core.vocabulary import Source
from capabilities.models import Provider, Service, ServiceCapability
from routing_admin.configuration import snapshot
from routing_admin.console.services.actions import fill_from_catalogue, save_service, set_cell
from routing_admin.models import Revision
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import count_queries

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]


def new_service(name: str, model: str, *, declares: bool = False) -> Service:
    """Create a service with unknown capabilities at the echo provider."""
    row = Service(service_id=name, name=name, provider=Provider.objects.get(name="echo"), model=model)
    row.declares_capabilities = declares
    save_service(SYSTEM, row)
    return row


def cell_url(row: Service, side: str = "input", name: str = "vision") -> str:
    return f"/matrix/cell/{row.pk}/?side={side}&name={name}"


def test_switch_saves_the_capability_immediately(admin: Client) -> None:
    row = Service.objects.get(service_id="text-model")
    answer = admin.post(cell_url(row), {"on": "1"}, headers=HTMX)
    switch = Page(answer).switch("text-model reads vision, declared")
    assert switch
    assert switch.is_checked
    assert switch.attributes["data-source"] == "declared"
    assert "/undo/" in answer["HX-Trigger"]
    spec = snapshot.current().configuration.service("text-model")
    assert spec is not None
    assert "vision" in spec.effective_capabilities.input


def test_switching_off_stores_the_capability_as_declared_absent(admin: Client) -> None:
    row = Service.objects.get(service_id="vision-model")
    (switch,) = Page(admin.post(cell_url(row), headers=HTMX)).switches
    assert not switch.is_checked
    cell = ServiceCapability.objects.get(service=row, side="input", name="vision")
    assert (cell.supported, cell.source) == (False, "declared")


def test_undo_restores_the_value_and_source_of_a_capability(admin: Client) -> None:
    row = new_service("gpt", "gpt-4o")
    fill_from_catalogue(SYSTEM, [row])
    admin.post(cell_url(row), headers=HTMX)
    number = Revision.objects.values_list("number", flat=True).first()
    admin.post(f"/undo/{number}/", {"next": "/matrix/"})
    cell = ServiceCapability.objects.get(service__service_id="gpt", side="input", name="vision")
    assert (cell.supported, cell.source) == (True, "catalogue")


def test_unknown_capability_is_shown_as_unknown(admin: Client) -> None:
    """A service that declares nothing counts as text only.

    All its other capabilities are unknown, and a filter finds such services.
    """
    row = new_service("mystery", "unknown-model-1")
    page = Page(admin.get("/matrix/?show=unknown"))
    assert page.rows == ["mystery"]
    assert {switch.attributes["data-source"] for switch in page.switches} == {"unknown"}
    assert len(page.switches) >= 8
    admin.post(cell_url(row, name="audio"), {"on": "1"}, headers=HTMX)
    page = Page(admin.get("/matrix/?q=mystery"))
    assert page.switch("mystery reads vision, unknown")
    assert page.switch("mystery reads audio, declared")


def test_catalogue_fills_only_undeclared_and_unprobed_capabilities(admin: Client) -> None:
    row = new_service("gpt", "gpt-4o")
    set_cell(SYSTEM, row, ("input", "vision"), supported=False, source=Source.PROBED)
    before = Revision.objects.count()
    ids = [str(pk) for pk in Service.objects.values_list("pk", flat=True)]
    admin.post("/matrix/fill/", {"act": "catalogue", "service": ids})
    assert Revision.objects.count() == before + 1
    cells = {(cell.side, cell.name): cell for cell in Service.objects.get(service_id="gpt").capabilities.all()}
    assert (cells["input", "vision"].supported, cells["input", "vision"].source) == (False, "probed")
    assert cells["output", "tool_calling"].source == "catalogue"
    declared = ServiceCapability.objects.filter(service__service_id="vision-model")
    assert {cell.source for cell in declared} == {"declared"}


@pytest.mark.parametrize(("act", "count"), [("on", 6), ("off", 0)])
def test_column_switch_changes_every_shown_service_in_one_revision(admin: Client, act: str, count: int) -> None:
    before = Revision.objects.count()
    ids = [str(pk) for pk in Service.objects.values_list("pk", flat=True)]
    admin.post("/matrix/fill/", {"act": act, "service": ids, "side": "input", "name": "vision"})
    cells = ServiceCapability.objects.filter(side="input", name="vision", supported=True)
    assert cells.count() == count
    assert Revision.objects.count() == before + 1


def test_row_switch_changes_every_capability_of_a_service(admin: Client) -> None:
    row = Service.objects.get(service_id="text-model")
    assert Page(admin.get(f"/matrix/row/{row.pk}/", headers=HTMX)).button("All on")
    admin.post("/matrix/fill/", {"act": "on", "service": [str(row.pk)], "side": "input"})
    assert row.capabilities.filter(side="input", supported=True).count() == 5


def test_custom_capability_adds_a_column(admin: Client) -> None:
    row = Service.objects.get(service_id="text-model")
    column = "Actions for the column: reads smell"
    assert Page(admin.get("/matrix/?add_name=smell&add_side=input")).button(column)
    assert not Page(admin.get("/matrix/")).button(column)
    admin.post(cell_url(row, name="smell"), {"on": "1"}, headers=HTMX)
    assert Page(admin.get("/matrix/")).button(column)


@pytest.mark.parametrize(
    ("query", "expected", "hidden"),
    [("provider=echo", "echo-vision", "multimodal-model"), ("q=multi", "multimodal-model", "echo-vision"),
     ("show=routed", "echo-text", "multimodal-model")],
)  # fmt: skip
def test_matrix_is_filtered_by_provider_words_and_use_in_routes(
    admin: Client, query: str, expected: str, hidden: str
) -> None:
    rows = Page(admin.get(f"/matrix/?{query}", headers=HTMX)).rows
    assert expected in rows
    assert hidden not in rows


def test_matrix_without_a_match_shows_a_message(admin: Client) -> None:
    page = Page(admin.get("/matrix/?provider=unknown", headers=HTMX))
    assert page.shows("No model service matches.")
    assert page.rows == []


def test_matrix_query_count_is_the_same_for_six_and_sixty_services(admin: Client) -> None:
    query_count = count_queries(admin, "/matrix/")
    provider = Provider.objects.get(name="example")
    for number in range(54):
        Service.objects.create(service_id=f"s{number}", name="s", provider=provider, model="m")
    assert count_queries(admin, "/matrix/") == query_count


def test_viewer_sees_disabled_matrix_switches(admin: Client, viewer: Client) -> None:
    page = Page(viewer.get("/matrix/"))
    assert page.switches
    assert all(switch.is_disabled and "hx-post" not in switch.attributes for switch in page.switches)
    assert page.shows("Only editors and administrators can change this.")
    row = Service.objects.get(service_id="text-model")
    assert viewer.post(cell_url(row), {"on": "1"}).status_code == 403


@pytest.mark.parametrize("query", ["side=sideways&name=vision", "side=input&name="])
def test_invalid_capability_side_or_name_is_rejected(admin: Client, query: str) -> None:
    row = Service.objects.get(service_id="text-model")
    before = Revision.objects.count()
    assert admin.post(f"/matrix/cell/{row.pk}/?{query}", {"on": "1"}).status_code == 400
    assert Revision.objects.count() == before


def test_names_with_html_and_url_characters_are_escaped_and_usable(admin: Client) -> None:
    row = new_service('<b>"x"</b>', "m")
    name = 'a&b <i>"c"</i> +#'
    set_cell(SYSTEM, row, ("input", name), supported=True)
    switch = Page(admin.get("/matrix/?provider=echo")).row('<b>"x"</b>').switch(f'<b>"x"</b> reads {name}, declared')
    assert switch
    admin.post(switch.attributes["hx-post"], headers=HTMX)
    assert not row.capabilities.get(side="input", name=name).supported


def test_matrix_pages_have_the_same_columns(admin: Client) -> None:
    for number in range(60):
        new_service(f"more-{number:02}", f"m{number}", declares=True)
    last = Service.objects.get(service_id="more-59")
    set_cell(SYSTEM, last, ("input", "smell"), supported=True)
    first, second = (Page(admin.get(f"/matrix/?rows=50&page={number}")) for number in (1, 2))
    assert len(first.rows) == 50
    assert first.button("Actions for the column: reads smell")
    assert "more-59" in second.rows
    assert second.region("Pages").shows("51 to 66 of 66")


def test_filling_without_a_selection_includes_every_page_of_the_filtered_list(admin: Client) -> None:
    for name in ("mine-a", "mine-b", "other"):
        new_service(name, "gpt-4o")
    admin.post("/matrix/fill/", {"act": "catalogue", "back": "q=mine-"})
    known = ServiceCapability.objects.filter(source="catalogue").values_list("service__service_id", flat=True)
    assert set(known) == {"mine-a", "mine-b"}


def test_probing_a_row_returns_the_updated_row(admin: Client) -> None:
    row = Service.objects.get(service_id="echo-vision")
    answer = Page(admin.post(f"/matrix/probe/{row.pk}/", headers=HTMX))
    assert answer.rows == ["echo-vision"]
    assert answer.row("echo-vision").attributes["id"] == f"row-{row.pk}"
    assert answer.shows("echo-vision reads:")
    assert admin.post(f"/matrix/probe/{row.pk}/").status_code == 302


def test_shown_rows_are_probed_one_after_the_other(admin: Client, viewer: Client) -> None:
    """After the page has loaded, each row requests its own probe. A viewer's rows request none."""
    page = Page(admin.get("/matrix/?provider=echo&probe=1"))
    assert len(page.rows) > 1
    assert all(page.row(name).attributes["hx-sync"] == "closest table:queue all" for name in page.rows)
    page = Page(viewer.get("/matrix/?probe=1"))
    assert not any("hx-post" in page.row(name).attributes for name in page.rows)
