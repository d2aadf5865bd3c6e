"""A model service's page: capabilities and their sources, limits, and values from the catalogue."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from capabilities.models import Agent, Provider, Service
from capabilities.runtime import renew
from routing_admin.console.matrix.cells import short_types
from routing_admin.dispatch import send
from routing_admin.dispatch.stored_refusals import StoredRefusals, stored_refusals
from routing_admin.models import Revision
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import count_queries, offered_undo

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]


def service_form(row: Service, **changed: object) -> dict[str, object]:
    """Return the form data that a service's page posts. Switches that are not passed stay unchanged."""
    tags = ", ".join(row.capability_tags)
    facts = {"name": row.name, "provider": row.provider.name, "model": row.model, "description": row.description}
    return {
        **facts,
        "tags": tags,
        "enabled": "on",
        "policy": "",
        "limits_json": "",
        "version": str(row.version),
    } | changed


def test_capabilities_of_a_new_service_are_unknown_until_filled_from_the_catalogue(admin: Client) -> None:
    openai = Provider.objects.get(name="openai")
    new = {"service_id": "gpt", "name": "gpt", "provider": openai.name, "model": "gpt-4o", "enabled": "on"}
    answer = admin.post("/new/service/", new)
    catalogue = Page(admin.get(answer["Location"])).region("What does gpt-4o read?")
    assert catalogue.shows("Catalogue:")
    assert catalogue.button("Apply catalogue")
    admin.post("/catalogue/gpt/")
    cells = {(cell.side, cell.name): cell for cell in Service.objects.get(service_id="gpt").capabilities.all()}
    assert cells["input", "vision"].supported
    assert {cell.source for cell in cells.values()} == {"catalogue"}
    assert Page(admin.get("/services/gpt/")).region("What does gpt-4o read?").shows("This page matches it.")


SWITCHES = [
    *(f"input:{name}" for name in ("text", "vision", "audio", "video", "file")),
    *(f"output:{name}" for name in ("text", "structured_output", "tool_calling")),
]


def supported_capabilities(service_id: str) -> set[tuple[str, str]]:
    cells = Service.objects.get(service_id=service_id).capabilities.all()
    return {(cell.side, cell.name) for cell in cells if cell.supported}


def test_switches_and_fields_are_saved_as_one_revision(admin: Client) -> None:
    row, before = Service.objects.get(service_id="vision-model"), Revision.objects.count()
    sources = dict(row.capabilities.filter(side="output").values_list("name", "source"))
    cells = ["input:text", "output:text", "output:structured_output", "input:audio"]
    switches = {"switch": SWITCHES, "cell": cells, "custom": "smell", "side": "input"}
    answer = admin.post("/services/vision-model/", service_form(row, description="Sees no more.", **switches))
    assert answer.status_code == 302
    assert Service.objects.get(pk=row.pk).description == "Sees no more."
    assert ("input", "vision") not in supported_capabilities("vision-model")
    assert {("input", "audio"), ("input", "smell"), ("output", "structured_output")} <= supported_capabilities(
        "vision-model"
    )
    assert dict(row.capabilities.filter(side="output").values_list("name", "source")) == sources
    assert Revision.objects.count() == before + 1
    admin.post(f"/undo/{offered_undo(admin, answer)}/", {"next": "/services/"})
    assert ("input", "vision") in supported_capabilities("vision-model")
    assert Service.objects.get(service_id="vision-model").description == row.description


def test_timeouts_and_request_fields_of_a_service_are_saved_on_its_page(admin: Client) -> None:
    Service.objects.filter(service_id="vision-model").update(timeouts={"total": 9, "x": 1})
    row = Service.objects.get(service_id="vision-model")
    times = {"timeout_connect": "3", "timeout_total": "", "timeout_between": "0.5"}
    admin.post("/services/vision-model/", service_form(row, extra_body_json='{"seed": 1}', **times))
    row.refresh_from_db()
    assert (row.timeouts, row.extra_body) == ({"x": 1, "connect": 3, "between": 0.5}, {"seed": 1})
    body = Page(admin.get("/services/vision-model/")).field("Additional request fields (JSON)")
    assert body
    assert body.value == '{"seed": 1}'
    admin.post("/services/vision-model/", service_form(row, description="Another."))
    row.refresh_from_db()
    assert (row.timeouts, row.extra_body) == ({"x": 1, "connect": 3, "between": 0.5}, {"seed": 1})
    response = admin.post("/services/vision-model/", service_form(row, extra_body_json='{"seed": NaN}'))
    assert response.status_code == 422
    assert "This is not JSON" in Page(response).error("Additional request fields (JSON)")


def test_capabilities_without_a_switch_on_the_page_stay_unchanged(admin: Client) -> None:
    """A check box that is not posted means "off" only if the page had it."""
    row, before = Service.objects.get(service_id="vision-model"), supported_capabilities("vision-model")
    admin.post(
        "/services/vision-model/", service_form(row, name="renamed", switch=["input:audio"], cell=["input:audio"])
    )
    assert supported_capabilities("vision-model") == before | {("input", "audio")}
    admin.post("/services/vision-model/", service_form(Service.objects.get(pk=row.pk), name="again"))
    assert supported_capabilities("vision-model") == before | {("input", "audio")}


def checked_switches(page: Page) -> set[str]:
    cells = [switch for switch in page.switches if switch.attributes["name"] == "cell"]
    assert len(cells) >= len(SWITCHES)
    return {cell.value for cell in cells if cell.is_checked}


@pytest.mark.parametrize(
    "fields", [{"limits_json": "{"}, {"custom": "x" * 101}, {"name": ""}], ids=["limits", "capability", "name"]
)
def test_rejected_service_form_keeps_every_switch(admin: Client, fields: dict[str, str]) -> None:
    row, before = Service.objects.get(service_id="vision-model"), supported_capabilities("vision-model")
    chosen = ["input:text", "input:audio", "output:text"]
    posted = {"switch": SWITCHES, "cell": chosen, "custom": "smell", "side": "output", "description": "typed"} | fields
    answer = admin.post("/services/vision-model/", service_form(row, **posted))
    assert answer.status_code == 422
    page = Page(answer)
    assert checked_switches(page) == set(chosen)
    description, added = page.field("Description"), page.field("Another capability")
    assert description
    assert description.value == posted["description"]
    assert added
    assert added.value == posted["custom"]
    assert supported_capabilities("vision-model") == before
    assert Service.objects.get(pk=row.pk).description == row.description


def test_conflict_names_the_differing_switches_and_a_second_save_overwrites(admin: Client) -> None:
    row = Service.objects.get(service_id="vision-model")
    other_switches = ["input:text", "input:vision", "input:file", "output:text"]
    own_switches = ["input:text", "output:text"]
    admin.post("/services/vision-model/", service_form(row, switch=SWITCHES, cell=other_switches))
    answer = admin.post("/services/vision-model/", service_form(row, switch=SWITCHES, cell=own_switches))
    assert answer.status_code == 409
    page = Page(answer)
    assert page.row("Reads (input)")
    assert checked_switches(page) == set(own_switches)
    current_form = service_form(Service.objects.get(pk=row.pk), switch=SWITCHES, cell=own_switches)
    assert page.hidden("version") == str(current_form["version"])
    admin.post("/services/vision-model/", current_form)
    assert supported_capabilities("vision-model") == {("input", "text"), ("output", "text")}


def test_limits_are_shown_with_source_and_date_and_can_be_overridden(admin: Client) -> None:
    row = Service.objects.get(service_id="vision-model")
    limits = Page(admin.get("/services/vision-model/")).region("Limits")
    assert limits.shows("OpenAI: images and vision")
    assert not limits.shows("set here")
    answer = admin.post("/services/vision-model/", service_form(row, limits_json='{"image": {"maxBytes": 5242880}}'))
    assert answer.status_code == 302
    limits = Page(admin.get("/services/vision-model/")).region("Limits")
    (row_name,) = (name for name in limits.rows if limits.row(name).shows("5.0 MB"))
    assert limits.row(row_name).shows("set here")


@pytest.mark.parametrize(
    ("text", "error"),
    [("{", "This is not JSON"), ('{"image": {"maxBytes": "5"}}', "limits.image.maxBytes must be a whole number"),
     ('{"picture": {}}', "limits.picture is unknown")],
)  # fmt: skip
def test_invalid_limits_are_reported_with_the_json_path(admin: Client, text: str, error: str) -> None:
    row = Service.objects.get(service_id="vision-model")
    answer = admin.post("/services/vision-model/", service_form(row, limits_json=text))
    assert answer.status_code == 422
    assert error in Page(answer).error("Custom limits (JSON)")
    assert Service.objects.get(pk=row.pk).limits == {}


def test_content_policy_is_stored_as_one_value_or_removed_for_the_default(admin: Client) -> None:
    """The choice "extract and convert" is stored as a single policy, and "as in the settings" as no policy."""
    row = Service.objects.get(service_id="vision-model")
    admin.post("/services/vision-model/", service_form(row, policy="extract+convert"))
    assert Service.objects.get(pk=row.pk).content == {"policy": "extract+convert"}
    admin.post("/services/vision-model/", service_form(Service.objects.get(pk=row.pk), policy=""))
    assert Service.objects.get(pk=row.pk).content == {}


def test_conflicting_service_save_shows_both_versions(admin: Client) -> None:
    row = Service.objects.get(service_id="vision-model")
    admin.post("/services/vision-model/", service_form(row, name="theirs"))
    answer = admin.post("/services/vision-model/", service_form(row, name="mine"))
    assert answer.status_code == 409
    assert Page(answer).row("Name").text == "Name theirs mine"
    assert Service.objects.get(pk=row.pk).name == "theirs"


def test_service_used_by_an_agent_cannot_be_deleted(admin: Client) -> None:
    page = Page(admin.get("/services/vision-model/"))
    why, show = page.control("why-not"), page.link("Show them")
    assert page.heading("Delete model service")
    assert why
    assert why.name.startswith("1 agent uses it.")
    assert show
    assert show.attributes["href"] == "/agents/?q=vision-model"
    admin.post("/delete/service/vision-model/")
    assert Service.objects.filter(service_id="vision-model").exists()
    admin.post("/delete/service/echo-503/")
    assert not Service.objects.filter(service_id="echo-503").exists()


def test_deletion_error_counts_the_using_agents_and_names_five(admin: Client, demo: None) -> None:
    service = Service.objects.get(service_id="vision-model")
    Agent.objects.bulk_create(Agent(agent_id=f"z-{n}", name="", service=service) for n in range(300))
    assert Page(admin.get("/services/vision-model/")).region("Delete model service").shows("301 agents use it.")
    answer = admin.post("/delete/service/vision-model/", follow=True)
    assert re.search(r"still use this service: (\S+, ){5}296 more\. Give", Page(answer).status)


def test_page_of_a_service_id_with_a_slash_works(admin: Client) -> None:
    """A service id may be any text, such as `deepseek-ai/DeepSeek-V3`."""
    echo = Provider.objects.get(name="echo")
    new = {"service_id": "deepseek-ai/DeepSeek-V3", "name": "d", "provider": echo.name, "model": "m"}
    answer = admin.post("/new/service/", new)
    assert admin.get(answer["Location"]).status_code == 200
    assert admin.post("/catalogue/deepseek-ai/DeepSeek-V3/").status_code == 302


def test_duplicate_service_id_shows_an_error_at_the_field(admin: Client) -> None:
    new = {
        "service_id": "vision-model",
        "name": "again",
        "provider": "echo",
        "model": "m",
    }
    answer = admin.post("/new/service/", new)
    assert answer.status_code == 422
    assert "already exists" in Page(answer).error("Id")


def test_service_list_query_count_is_the_same_for_six_and_sixty_services(admin: Client) -> None:
    query_count = count_queries(admin, "/services/")
    provider = Provider.objects.get(name="example")
    for number in range(54):
        Service.objects.create(service_id=f"s{number}", name="s", provider=provider, model="m")
    assert count_queries(admin, "/services/") == query_count
    assert set(Page(admin.get("/services/?q=s5", headers=HTMX)).rows) == {"s5", "s50", "s51", "s52", "s53"}


def test_service_list_is_filtered_by_state(admin: Client) -> None:
    Service.objects.filter(service_id="vision-model").update(enabled=False)
    assert Page(admin.get("/services/?state=disabled")).rows == ["vision-model"]
    working = Page(admin.get("/services/?state=ok")).rows
    assert "echo-text" in working
    assert not {"vision-model", "text-model"} & set(working)


def test_service_list_can_be_sorted_by_each_column(admin: Client) -> None:
    Agent.objects.update(service=Service.objects.get(service_id="text-model"))
    page = Page(admin.get("/services/?sort=-agents"))
    assert page.rows[0] == "text-model"
    assert [control.name for control in page.controls if control.attributes.get("aria-sort") == "descending"] == [
        "Agents"
    ]


def test_rejected_parameter_is_shown_until_an_administrator_deletes_the_entry(admin: Client) -> None:
    renew(send.process_run_context)
    assert not Page(admin.get("/services/vision-model/")).heading("Refused parameters")
    row = Service.objects.get(service_id="vision-model")
    memory, provider_and_model = StoredRefusals().begin(), (row.provider.name, row.model)
    memory.refuse(*provider_and_model, "max_completion_tokens", "max_tokens")
    memory.refuse(*provider_and_model, "temperature")
    memory.refuse(*provider_and_model, "reasoning_effort", value_only=True)
    stored_refusals().look()
    refused = Page(admin.get("/services/vision-model/")).region("Refused parameters")
    assert refused.shows("max_completion_tokens is sent as max_tokens.")
    assert refused.shows("temperature is left out.")
    assert re.search(r"reasoning_effort is left out until \d\d:\d\d", refused.text)
    assert refused.button("Delete temperature")
    assert not Page(admin.get("/services/text-model/")).heading("Refused parameters")
    answer = admin.post("/forget/vision-model/", {"name": "temperature"})
    assert answer.status_code == 302
    refused = Page(admin.get(answer["Location"])).region("Refused parameters")
    assert not refused.code("temperature")
    assert refused.code("max_completion_tokens")
    renew(send.process_run_context)
    StoredRefusals().look()
    assert send.process_run_context().memory.lasting(*provider_and_model) == {"max_completion_tokens": "max_tokens"}
    renew(send.process_run_context)


def test_viewer_can_see_but_not_change_a_service(admin: Client, viewer: Client) -> None:
    assert viewer.get("/services/vision-model/").status_code == 200
    for address in ("/services/", "/catalogue/", "/forget/", "/delete/service/"):
        assert viewer.post(f"{address}vision-model/").status_code == 403


def test_mime_types_are_shown_as_file_extensions() -> None:
    """The name `vnd.openxmlformats-officedocument.wordprocessingml.document` would make a row seven lines high."""
    docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    assert short_types([docx, "application/pdf", "image/x-own", "image/png"]) == ["docx", "pdf", "png", "x-own"]
