"""The Find dialog: what a search finds for each role and language, and how many database queries it makes."""

from __future__ import annotations

import re

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from artifacts.library import store_bytes
from artifacts.library.queries import find_artifacts_beginning
from artifacts.models import Artifact
from capabilities.actors import SYSTEM
from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.console.find.queries import find_requests
from routing_admin.core.ranking import MAX_OF_KIND, Findable, FoundKind, rank, without_kind_words
from routing_admin.models import RequestLog
from routing_admin.platform.databases.router import LOGS
from tests.cast import HTMX, create_key, open_browser, person
from tests.console.page import Page
from tests.engines.databases import is_postgresql

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

LIST = HTMX | {"HX-Target": "options"}


def findable(name: str, kind: FoundKind = FoundKind.SERVICE, *other_names: str) -> Findable:
    return Findable(kind=kind, label=name, url=f"/{name}/", names=(name, *other_names))


def labels_found(query: str, *findables: Findable) -> list[str]:
    return [candidate.label for candidate in rank(query, findables).shown]


def find(client: Client, query: str) -> Page:
    return Page(client.get("/find/", {"q": query}, headers=LIST))


def selected_options(page: Page) -> list[str | None]:
    return [
        control.attributes["href"] for control in page.controls if control.attributes.get("aria-selected") == "true"
    ]


def log_request(key: str) -> RequestLog:
    return RequestLog.objects.create(id=key, started_at=timezone.now(), surface="v1", outcome="ok", task_type="design")


def test_find_ranks_results_by_kind_of_match() -> None:
    findables = [
        findable("my-flashlight"),
        findable("aflash"),
        findable("gemini-flash"),
        findable("Flash-lite"),
        findable("flash"),
    ]
    assert labels_found("FLASH", *findables) == ["flash", "Flash-lite", "my-flashlight", "gemini-flash", "aflash"]


def test_find_requires_every_query_word_to_match_a_name_or_kind() -> None:
    findables = [
        findable("deepseek", FoundKind.PROVIDER),
        findable("deepseek-chat"),
        findable("other", FoundKind.PROVIDER),
    ]
    assert labels_found("渠道 deep", *findables) == labels_found("channel deep", *findables) == ["deepseek"]
    assert labels_found("deep nothing", *findables) == labels_found("  ", *findables) == []


def test_find_limits_the_number_of_results_per_kind() -> None:
    """Otherwise, a thousand services could hide the only matching route."""
    findables = [*(findable(f"echo-{number}") for number in range(1000)), findable("my echo", FoundKind.ROUTE)]
    assert len(labels_found("echo", *findables)) == MAX_OF_KIND + 1
    assert labels_found("echo", *findables)[-1] == "my echo"


def test_find_returns_configured_entries_artifacts_requests_and_actions(demo: None, admin: Client) -> None:
    file = store_bytes(SYSTEM, b"a plan", filename="Quarter plan.txt")
    log_request("req_6741a2b3c4d5e6f7")
    for query, address in {
        "echo-vis": "/services/echo-vision/",
        "design": "/routes/design/",
        "ECHO": "/providers/echo/",
        "text-agent": "/agents/text-agent/",
        "quarter": f"/artifacts/{file.pk}/",
        file.ref: f"/artifacts/{file.pk}/",
        file.pk[:8]: f"/artifacts/{file.pk}/",
        "req_6741a2": "/requests/req_6741a2b3c4d5e6f7/",
        "exchange": "/settings/#rates",
        "new route": "/routes/new/",
        "test all": "/providers/#test-all",
    }.items():
        assert address in find(admin, query).link_urls, query


def test_find_lists_the_exact_id_first(demo: None, admin: Client) -> None:
    """A user who pastes an id and presses Enter wants to open that request."""
    log_request("req_6741a2b3c4d5e6f7")
    log_request("req_6741a2b3c4d5e6f7b")
    page = find(admin, "req_6741a2b3c4d5e6f7")
    assert selected_options(page) == page.link_urls[:1] == ["/requests/req_6741a2b3c4d5e6f7/"]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("query", ["渠道", "提供商", "providers", "Vendors"])
def test_find_returns_providers_by_each_of_the_provider_names(
    demo: None, admin: Client, query: str, language: str
) -> None:
    answer = admin.get("/find/", {"q": query}, headers=LIST | {"Accept-Language": language})
    assert "/providers/" in Page(answer).link_urls


def test_find_offers_only_permitted_actions(demo: None) -> None:
    acts = {"/routes/new/", "/new/provider/", "/providers/#test-all", "/config/#in", "/users/#invite", "/tokens/"}
    queries = ("new route", "provider", "test all", "import", "invite", "token", "issue")
    offered = {}
    for name, role in {"viewer": {}, "editor": {"is_editor": True}, "administrator": {"is_staff": True}}.items():
        client = open_browser(person(name, **role))
        found = {address for query in queries for address in find(client, query).link_urls}
        offered[name] = acts & found
        assert "/providers/" in found
    assert offered == {"viewer": set(), "editor": {"/routes/new/"}, "administrator": acts}


def test_find_without_results_offers_other_searches(demo: None, admin: Client) -> None:
    """The first suggested search is selected, so pressing Enter continues the search there."""
    page = find(admin, "nothing <is> called so")
    assert "No match for “nothing <is> called so”" in page.text
    assert selected_options(page) == ["/artifacts/?q=nothing+%3Cis%3E+called+so"]
    assert not any(address.startswith("/requests/?q=") for address in page.link_urls)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Design", "task%3Adesign"),
        ("echo", "provider%3Aecho"),
        ("text-agent", "agent%3Atext-agent"),
        ("req_67", "req_67"),
        ("status:429 since:1h", "status%3A429+since%3A1h"),
    ],
)
def test_find_links_to_a_log_search_with_the_key_for_the_matching_kind(
    demo: None, admin: Client, query: str, expected: str
) -> None:
    assert f"/requests/?q={expected}" in find(admin, query).link_urls


def test_find_works_as_a_page_without_javascript(demo: None, admin: Client) -> None:
    page = Page(admin.get("/find/?q=echo"))
    assert page.heading("Find")
    assert "/providers/echo/" in page.link_urls
    assert not [control for control in page.controls if control.attributes.get("role") == "option"]
    assert Page(admin.get("/find/")).shows("Try a provider")


@pytest.mark.parametrize("query", ["\0", "%", "ra_", "a" * 5000, "'", "\U0010ffff", "req_\0", "artifact:"])
def test_find_accepts_any_query(demo: None, admin: Client, query: str) -> None:
    assert admin.get("/find/", {"q": query}, headers=LIST).status_code == 200


def test_find_returns_the_agent_of_a_pasted_key(demo: None, admin: Client) -> None:
    key = create_key("text-agent")
    assert "/agents/text-agent/#keys" in find(admin, key).link_urls


@pytest.mark.skipif(is_postgresql(), reason="plans are read as SQLite writes them")
def test_find_queries_requests_and_artifacts_through_an_index(demo: None) -> None:
    reads = {LOGS: lambda: find_requests("req_6741"), "default": lambda: find_artifacts_beginning("abcd")}
    for alias, run_queries in reads.items():
        with_plans = connections[alias]
        with_plans.force_debug_cursor = True
        with_plans.queries_log.clear()
        run_queries()
        statements = [query["sql"] for query in with_plans.queries_log]
        with_plans.force_debug_cursor = False
        assert statements
        for sql in statements:
            with with_plans.cursor() as cursor:
                cursor.execute("EXPLAIN QUERY PLAN " + sql.replace("%", "%%"))
                plan = " ".join(row[-1] for row in cursor.fetchall())
            assert re.search("SEARCH .* INDEX", plan), plan
            assert not re.search("SCAN|TEMP B-TREE", plan), plan


def test_find_ignores_case_in_non_latin_scripts(demo: None) -> None:
    """Chinese names contain Latin letters too. The database decides which letters match regardless of case."""
    file = store_bytes(SYSTEM, b"x", filename="设计稿 Final.png")
    assert find_artifacts_beginning("设计稿 FINAL") == [Artifact.objects.get(pk=file.pk)]


def test_shortened_result_list_shows_the_total_and_links_to_the_rest(demo: None, admin: Client) -> None:
    Provider.objects.bulk_create(
        Provider(name=f"farm-{number}", endpoint="echo://local", protocol="echo", default_model="m", key_source="none")
        for number in range(MAX_OF_KIND + 4)
    )
    snapshot.refresh()
    for query in ("farm", "provider farm"):
        for page in (find(admin, query), Page(admin.get("/find/", {"q": query}))):
            assert page.shows("6 of 10")
            rest = next(address for address in page.link_urls if address.startswith("/providers/?"))
            assert sum("/providers/farm-" in address for address in Page(admin.get(rest)).link_urls) >= MAX_OF_KIND + 4
    assert not find(admin, "farm-3").shows(" of ")


def test_find_shows_a_plus_sign_if_more_requests_match_than_are_read(demo: None, admin: Client) -> None:
    """Requests are not counted: if there are more than are shown, the total has a plus sign."""
    for number in range(MAX_OF_KIND + 3):
        log_request(f"req_6741a2b3c4d5e6f{number}")
    assert find(admin, "req_6741").shows(f"{MAX_OF_KIND} of {MAX_OF_KIND + 1}+ found")
    assert not find(admin, "req_6741a2b3c4d5e6f1").shows(" of ")


def test_kind_name_is_removed_from_the_query_for_the_list_of_this_kind() -> None:
    assert without_kind_words("Provider vllm", FoundKind.PROVIDER) == "vllm"
    assert without_kind_words("渠道", FoundKind.PROVIDER) == ""


def test_not_found_page_offers_the_search_to_signed_in_users(admin: Client) -> None:
    answer = admin.get("/no-such-page/")
    assert answer.status_code == 404
    link = Page(answer).link("Find it by its name")
    assert link
    assert link.attributes["href"] == "/find/"
    assert not Page(Client().get("/no-such-page/")).link("Find it by its name")
