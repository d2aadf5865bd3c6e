"""The provider pages: key states, changes, conflicts, and adding a provider step by step. No page shows a key."""

from __future__ import annotations

import itertools
import re

import pytest
from django.test import Client

from capabilities.core.providers.presets import BY_NAME
from capabilities.models import Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.models import Alias, AuditEvent, Revision
from tests.cast import HTMX
from tests.console.page import Page
from tests.console.visits import count_queries, offered_undo
from tests.lab import Lab

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]
SECRET = "sk-live-0123456789abcdefa1b2"


def provider_form(row: Provider, **changed: str) -> dict[str, str]:
    return {
        "endpoint": row.endpoint,
        "protocol": row.protocol,
        "default_model": row.default_model,
        "display_name": row.display_name,
        "enabled": "on",
        "proxy": row.proxy,
        "key_act": "keep",
        "version": str(row.version),
        **changed,
    }


def test_provider_list_shows_why_a_provider_cannot_be_called(admin: Client) -> None:
    page = Page(admin.get("/providers/"))
    assert page.link("3 of 4 providers are not ready.").attributes["href"] == "?state=stopped"
    titles = [control.attributes.get("title") for control in page.row("openai").controls]
    assert "Set LLM_PROVIDER_OPENAI_API_KEY in the environment, or store a key here." in titles
    assert page.row("Echo").shows("not needed")


@pytest.mark.parametrize(
    ("query", "expected", "hidden"),
    [
        ("q=anth", "anthropic", "Echo"),
        ("protocol=echo", "Echo", "api.openai.com"),
        ("state=ok", "Echo", "api.anthropic.com"),
        ("state=no_key", "api.anthropic.com", "Echo"),
        ("state=disabled", "No provider matches.", "api.openai.com"),
    ],
)
def test_provider_list_is_filtered_by_words_protocol_and_state(
    admin: Client, query: str, expected: str, hidden: str
) -> None:
    page = Page(admin.get(f"/providers/?{query}", headers=HTMX))
    assert page.shows(expected)
    assert not page.shows(hidden)
    assert not page.is_document


def test_provider_list_query_count_is_the_same_for_three_and_thirty_providers(admin: Client) -> None:
    query_count = count_queries(admin, "/providers/")
    for number in range(27):
        Provider.objects.create(name=f"p{number}", endpoint="https://a.example/v1", default_model="m")
    assert count_queries(admin, "/providers/") == query_count


def test_provider_page_links_to_the_routes_using_the_provider(admin: Client) -> None:
    """The fire drill section is at the end of the page, so that no content moves when the section is loaded."""
    page = Page(admin.get("/providers/echo/"))
    routes, drills = page.region("Task routes"), page.loading("/providers/echo/drill/")
    assert "/routes/design/" in routes.link_urls
    assert drills
    assert page.controls.index(routes) < page.controls.index(drills)


def test_stored_provider_key_is_never_shown_again(admin: Client) -> None:
    row = Provider.objects.get(name="openai")
    answer = admin.post("/providers/openai/", provider_form(row, key_act="set", key=SECRET))
    assert answer.status_code == 302
    for address in ("/providers/openai/", "/providers/"):
        answer = admin.get(address)
        assert Page(answer).shows("…a1b2")
        assert SECRET not in answer.content.decode()
    assert SECRET not in str(list(AuditEvent.objects.values())) + str(list(Revision.objects.values()))


def test_rejected_provider_key_is_not_echoed_in_the_form(admin: Client) -> None:
    row = Provider.objects.get(name="openai")
    answer = admin.post("/providers/openai/", provider_form(row, key_act="set", key="sk-abc****wxyz"))
    assert answer.status_code == 422
    assert "New key: This is not a key" in Page(answer).alert
    assert "sk-abc****wxyz" not in answer.content.decode()


def test_saving_stores_options_and_timeouts_with_correct_types(admin: Client) -> None:
    row = Provider.objects.get(name="openai")
    options = {"quirk_stream_usage": "false", "quirk_drop_params": "top_p, seed", "timeout_connect": "3.5"}
    admin.post("/providers/openai/", provider_form(row, **options))
    row.refresh_from_db()
    assert row.quirks == {"stream_usage": False, "drop_params": ["top_p", "seed"]}
    assert row.timeouts == {"connect": 3.5}


def test_invalid_provider_form_returns_422_and_keeps_every_value(admin: Client) -> None:
    row = Provider.objects.get(name="openai")
    answer = admin.post("/providers/openai/", provider_form(row, endpoint="api.openai.com", display_name="My OpenAI"))
    assert answer.status_code == 422
    page = Page(answer)
    assert "Must begin with https:// or http://" in page.error("Base URL")
    assert page.field("Display name").value == "My OpenAI"
    assert Provider.objects.get(name="openai").display_name == ""


@pytest.mark.parametrize(
    "endpoint", ["https://[127.0.0.1]/v1", "https://[::1/v1", "https://a:99999/v1", "https://[v1.x]/"]
)
def test_unparsable_base_url_is_a_form_error(admin: Client, endpoint: str) -> None:
    row = Provider.objects.get(name="openai")
    answer = admin.post("/providers/openai/", provider_form(row, endpoint=endpoint, key_act="set", key=SECRET))
    assert (answer.status_code, SECRET in answer.content.decode()) == (422, False)
    assert Page(answer).error("Base URL")


def test_conflicting_save_returns_409_with_both_values(admin: Client) -> None:
    row = Provider.objects.get(name="openai")
    admin.post("/providers/openai/", provider_form(row, default_model="gpt-theirs"))
    answer = admin.post("/providers/openai/", provider_form(row, default_model="gpt-mine"))
    assert answer.status_code == 409
    assert Page(answer).row("Default model").text == "Default model gpt-theirs gpt-mine"
    current_form = provider_form(Provider.objects.get(name="openai"), default_model="gpt-mine")
    assert Page(answer).hidden("version") == str(current_form["version"])
    assert admin.post("/providers/openai/", current_form).status_code == 302


def test_delete_button_of_a_provider_in_use_is_disabled_with_the_number_of_routes(admin: Client) -> None:
    page = Page(admin.get("/providers/echo/"))
    why, show, button = page.control("why-not"), page.link("Show them"), page.button("Delete")
    assert page.heading("Delete provider")
    assert why
    assert re.match(r"\d+ task routes use it\.", why.name)
    assert show
    assert show.attributes["href"] == "/routes/?q=echo"
    assert button
    assert button.is_disabled


def test_provider_in_use_cannot_be_deleted(admin: Client) -> None:
    admin.post("/providers/echo/delete/")
    assert Provider.objects.filter(name="echo").exists()


def test_undoing_a_provider_deletion_restores_the_key(admin: Client) -> None:
    new = {"name": "spare", "endpoint": "https://spare.example/v1", "protocol": "openai", "default_model": "m"}
    admin.post("/new/provider/", {**new, "key": SECRET})
    answer = admin.post("/providers/spare/delete/")
    assert not Provider.objects.filter(name="spare").exists()
    admin.post(f"/undo/{offered_undo(admin, answer)}/", {"next": "/providers/"})
    assert Provider.objects.get(name="spare").key_source == Provider.KeySource.STORED


def test_switching_several_providers_creates_one_revision(admin: Client) -> None:
    before = Revision.objects.count()
    answer = admin.post("/switch/providers/", {"name": ["openai", "anthropic"], "enabled": "0"})
    assert Provider.objects.filter(enabled=False).count() == 2
    assert Revision.objects.count() == before + 1
    admin.post(f"/undo/{offered_undo(admin, answer)}/", {"next": "/providers/"})
    assert not Provider.objects.filter(enabled=False).exists()


def test_switching_all_matching_providers_includes_those_on_other_pages(admin: Client) -> None:
    for number in range(40):
        Provider.objects.create(name=f"p{number}", endpoint="https://a.example/v1", default_model="m")
    snapshot.refresh()
    page = Page(admin.get("/providers/?q=a.example"))
    assert page.shows("Select all 40 that match")
    assert len(page.rows) == 25
    answer = admin.post("/switch/providers/", {"q": page.hidden("q"), "all": "1", "name": "p1", "enabled": "0"})
    assert answer["Location"] == "/providers/?q=a.example"
    assert Provider.objects.filter(enabled=False).count() == 40
    assert Provider.objects.get(name="echo").enabled


def test_provider_list_can_be_sorted_by_each_column(admin: Client) -> None:
    page = Page(admin.get("/providers/?sort=-used"))
    assert page.rows[0] == "Echo"
    assert [control.tag for control in page.controls if control.attributes.get("aria-sort") == "descending"] == ["th"]
    page = Page(admin.get("/providers/?sort=name"))
    assert [page.row(name).link_urls[0] for name in page.rows] == [
        f"/providers/{name}/" for name in ("anthropic", "echo", "example", "openai")
    ]


def test_connection_test_shows_result_and_duration(admin: Client) -> None:
    assert Page(admin.post("/providers/echo/test/", headers=HTMX)).shows("echo answered in")
    alert = Page(admin.post("/providers/openai/test/", headers=HTMX)).alert
    assert "key_missing" in alert
    assert "openai was not called." in alert
    assert "LLM_PROVIDER_OPENAI_API_KEY" in alert


def test_earlier_steps_of_adding_a_provider_link_to_the_provider_page(admin: Client) -> None:
    for step in ("Choose an endpoint", "Enter the key"):
        link = Page(admin.get("/providers/openai/models/")).link(step)
        assert link
        assert link.attributes["href"] == "/providers/openai/"


def test_adding_a_provider_from_a_preset_creates_services_and_aliases_in_one_revision(admin: Client) -> None:
    address = Page(admin.get("/new/provider/?preset=deepseek")).field("Base URL")
    assert address
    assert address.value.startswith("https://api.deepseek.com")
    data = {"name": "deepseek", "endpoint": "https://api.deepseek.com", "protocol": "openai"}
    answer = admin.post("/new/provider/", {**data, "default_model": "deepseek-chat", "key": SECRET})
    assert answer["Location"] == "/providers/deepseek/models/"
    offer = Page(admin.post(answer["Location"], {"act": "write", "names": "deepseek-chat\nunknown-model-1"}))
    assert offer.row("unknown-model-1").shows("not in the catalogue: text only until you change it")
    assert not offer.row("deepseek-chat").shows("not in the catalogue")
    before = Revision.objects.count()
    chosen = {"use-0": "on", "id-0": "deepseek-chat", "alias-0": "gpt-4o", "caps-0": ["input:text", "output:text"]}
    fields = {**chosen, "use-1": "on", "id-1": "unknown-1", "caps-1": ["input:text", "output:text"]}
    response = admin.post(answer["Location"], {"act": "make", "model": ["deepseek-chat", "unknown-model-1"], **fields})
    assert response["Location"] == "/matrix/?provider=deepseek"
    assert Revision.objects.count() == before + 1
    assert Alias.objects.get(name="gpt-4o").target == "deepseek-chat"
    known, unknown = Service.objects.filter(provider__name="deepseek")
    assert known.capabilities.get(side="input", name="text").source == "catalogue"
    assert not unknown.declares_capabilities


def test_fetching_models_offers_the_models_listed_by_the_provider(admin: Client) -> None:
    page = Page(admin.post("/providers/echo/models/", {"act": "fetch"}))
    assert page.row("echo-vision").shows("is already echo-vision")


def test_taken_service_id_shows_an_error_in_its_row(admin: Client) -> None:
    form = {"act": "make", "model": "m", "use-0": "on", "id-0": "vision-model", "caps-0": "input:text"}
    answer = admin.post("/providers/echo/models/", form)
    assert answer.status_code == 422
    assert Page(answer).shows("A model service with this id already exists.")


def test_viewer_can_see_but_not_change_providers(admin: Client, viewer: Client) -> None:
    page = Page(viewer.get("/providers/echo/"))
    assert page.shows("Only administrators can change this.")
    assert not page.form("/providers/echo/test/")
    assert not page.shows("Test connection")
    for address in ("/providers/echo/", "/providers/echo/test/", "/providers/echo/delete/", "/switch/providers/"):
        assert viewer.post(address).status_code == 403
    assert viewer.get("/new/provider/").status_code == 403


@pytest.mark.parametrize("address", ["/providers/", "/matrix/", "/services/", "/agents/"])
def test_boosted_link_returns_the_whole_page_and_a_search_only_the_fragment(admin: Client, address: str) -> None:
    """A boosted link replaces `#main` and therefore gets the whole page. A search replaces only the list."""
    assert Page(admin.get(address, headers={**HTMX, "HX-Boosted": "true"})).control("main")
    assert not Page(admin.get(address, headers=HTMX)).control("main")


def test_preset_without_a_key_requirement_creates_a_provider_without_a_key(admin: Client) -> None:
    for preset, choice in (("ollama", "none"), ("deepseek", "set")):
        page = Page(admin.get(f"/new/provider/?preset={preset}"))
        chosen = [
            control.value
            for control in page.controls
            if control.attributes.get("name") == "key_act" and control.is_checked
        ]
        assert chosen == [choice]
    new = {"name": "ollama", "endpoint": "http://127.0.0.1:11434/v1", "protocol": "openai", "default_model": "llama3.2"}
    admin.post("/new/provider/?preset=ollama", new)
    assert Provider.objects.get(name="ollama").key_source == Provider.KeySource.NONE


def test_preset_models_are_offered_for_a_new_provider_without_a_call(admin: Client) -> None:
    admin.post(
        "/new/provider/?preset=deepseek",
        {
            "name": "deepseek",
            "endpoint": "https://api.deepseek.com",
            "protocol": "openai",
            "default_model": "deepseek-chat",
            "key": "",
        },
    )
    page = Page(admin.get("/providers/deepseek/models/"))
    assert len(page.rows) > 1
    assert page.rows[0] == "deepseek-chat"
    first = page.field("deepseek-chat")
    assert first
    assert first.is_checked
    form = {"act": "make", "model": ["deepseek-chat"], "use-0": "on", "id-0": "deepseek-chat"}
    assert admin.post("/providers/deepseek/models/", form).status_code == 302
    assert "offer" not in admin.get("/providers/deepseek/models/").context


def test_preset_of_an_existing_provider_without_a_key_offers_to_store_a_key(admin: Client) -> None:
    page = Page(admin.get("/new/provider/?preset=openai"))
    assert page.shows("openai already exists, without a key")
    assert not page.field("Name")
    answer = admin.post("/new/provider/?preset=openai", {"provider": "openai", "key_act": "set", "key": SECRET})
    assert answer["Location"] == "/providers/openai/models/"
    row = Provider.objects.get(name="openai")
    assert (row.key_source, row.endpoint) == (Provider.KeySource.STORED, "https://api.openai.com/v1/chat/completions")
    again = Page(admin.get("/new/provider/?preset=openai"))
    assert again.shows("OpenAI already exists")
    assert again.button("Save key") is None
    another = Page(admin.get("/new/provider/?preset=openai&another=1")).field("Name")
    assert another
    assert another.value == "openai-2"


def test_missing_or_invalid_provider_key_shows_an_error_at_the_field(admin: Client) -> None:
    address = "/new/provider/?preset=openai"
    for fields in ({"key_act": "set"}, {"key_act": "env", "key_variable": "HOME"}, {"key": "sk-abc****wxyz"}):
        answer = admin.post(address, {"provider": "openai", **fields})
        assert answer.status_code == 422
        assert Page(answer).button("Save key")
    assert Provider.objects.get(name="openai").key_source == Provider.KeySource.ENVIRONMENT


def test_key_of_a_new_provider_can_come_from_a_named_environment_variable(admin: Client) -> None:
    new = {"name": "spare", "endpoint": "https://spare.example/v1", "protocol": "openai", "default_model": "m"}
    admin.post("/new/provider/?own=1", {**new, "key_act": "env", "key_variable": "LLM_PROVIDER_SPARE_API_KEY"})
    row = Provider.objects.get(name="spare")
    assert (row.key_source, row.key_variable) == (Provider.KeySource.ENVIRONMENT, "LLM_PROVIDER_SPARE_API_KEY")


def test_connection_test_of_an_unknown_host_finds_working_options(admin: Client) -> None:
    """The test leaves out each option that the host rejects, until the host answers.

    The form then suggests the options that worked. Nothing is stored.
    """
    with Lab() as lab:
        row = Provider.objects.create(
            name="own", endpoint=lab.url("openai", "own"), default_model="m", protocol="openai", key_source="none"
        )
        snapshot.refresh()
        lab.play({"own": "parameter:param=max_tokens"})
        page = Page(admin.post("/providers/own/test/", headers=HTMX))
    assert page.shows("It answered with these options: max_tokens_field = max_completion_tokens.")
    parameters_sent = [
        sorted({"max_tokens", "max_completion_tokens"} & request.json.keys()) for request in lab.requests
    ]
    assert parameters_sent == [["max_tokens"], ["max_completion_tokens"]]
    form = Page(admin.get("/providers/own/?quirk_max_tokens_field=max_completion_tokens&quirk_x=y"))
    assert "max_completion_tokens" in [option.value for option in form.controls if "selected" in option.attributes]
    assert Provider.objects.get(pk=row.pk).quirks == {}


def test_preset_in_use_is_marked_with_text_and_can_be_added_again(admin: Client) -> None:
    """With a tick or a colour as its mark, the preset would look selected."""
    assert Page(admin.get("/new/provider/")).link("OpenAI no key")
    admin.post("/new/provider/?preset=openai", {"provider": "openai", "key_act": "set", "key": SECRET})
    page = Page(admin.get("/new/provider/"))
    preset = page.link("OpenAI added")
    assert preset
    assert preset.attributes["class"] == page.link("Another address").attributes["class"]
    assert Page(admin.get("/new/provider/?preset=openai")).link("Add another one")


def test_every_preset_is_listed_under_exactly_one_heading(admin: Client) -> None:
    response = admin.get("/new/provider/")
    groups = {heading: [preset.name for preset, *_more in rows] for heading, rows in response.context["presets"]}
    assert sorted(itertools.chain(*groups.values())) == sorted(BY_NAME)
    assert "ollama" in groups["On your own servers"]
    assert "openrouter" in groups["Models of many makers"]


@pytest.mark.parametrize(
    ("protocol", "host", "model"), [("openai", "api.openai.com", "gpt"), ("anthropic", "api.anthropic.com", "claude")]
)
def test_placeholders_are_examples_from_a_vendor_with_the_same_protocol(
    admin: Client, protocol: str, host: str, model: str
) -> None:
    page = Page(admin.post("/new/provider/?own=1", {"protocol": protocol, "endpoint": "somewhere"}))
    address, default = page.field("Base URL"), page.field("Default model")
    assert address
    assert default
    assert host in (address.attributes["placeholder"] or "")
    assert model in (default.attributes["placeholder"] or "")
    assert host in page.error("Base URL")


def test_further_keys_are_added_in_the_same_card_as_the_first_key(admin: Client) -> None:
    cards = [control for control in Page(admin.get("/providers/openai/")).controls if control.tag == "section"]
    assert [bool(card.button("Add another key")) for card in cards if card.heading("Key")] == [True]
