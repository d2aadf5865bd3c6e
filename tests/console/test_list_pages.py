"""Every list: pages of a chosen size, sorting, search, filters, and what is shown if nothing matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urljoin

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from artifacts.models import Artifact
from capabilities.actors import Actor, AuditedAction
from capabilities.core.services.agent_limits import Meter
from capabilities.core.services.agents import LabelKind
from capabilities.core.services.limit_holders import label_holder_id
from capabilities.models import Agent, Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.audit import write_event
from routing_admin.core.fallback.chain import Attempt
from routing_admin.models import (
    AdminToken,
    Alias,
    Candidate,
    LabelBudget,
    LimitWindow,
    RequestLog,
    Revision,
    TaskRoute,
    UsageSum,
)
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from routing_admin.request_log.usage_sums import day_start
from tests.cast import HTMX
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
MANY, FEW = 60, 3
ADA = Actor("person", "ada")


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    return admin


def add_configuration(count: int = MANY) -> None:
    echo, owner = Provider.objects.get(name="echo"), User.objects.get(username="admin")
    soon = timezone.now() + timedelta(days=1)
    used, names = timezone.now(), [f"many-{number}" for number in range(count)]
    Provider.objects.bulk_create(
        Provider(name=name, endpoint="https://a.example/v1", default_model="m") for name in names
    )
    services = Service.objects.bulk_create(
        Service(service_id=name, name=name, provider=echo, model=name) for name in names
    )
    Agent.objects.bulk_create(Agent(agent_id=service.service_id, service=service) for service in services)
    routes = TaskRoute.objects.bulk_create(TaskRoute(task_type=name, position=100 + n) for n, name in enumerate(names))
    Candidate.objects.bulk_create(Candidate(route=route, position=1, provider=echo) for route in routes)
    Alias.objects.bulk_create(Alias(name=name, target="task:design") for name in names)
    LabelBudget.objects.bulk_create(LabelBudget(label=f"team:{name}", limits={"tokensPerDay": 100}) for name in names)
    User.objects.bulk_create(User(username=name, password="!") for name in names)
    AdminToken.objects.bulk_create(
        AdminToken(owner=owner, name=name, public_id=name, digest="0", expires_at=soon, last_used_at=used)
        for name in names
    )
    snapshot.refresh()


def add_artifacts(count: int = MANY) -> None:
    values = {"sha256": "0" * 64, "kind": "text", "mime_type": "text/plain", "is_binary": False}
    Artifact.objects.bulk_create(
        Artifact(id=f"a{number}", filename=f"many-{number}.txt", size=number, **values) for number in range(count)
    )


def add_history(count: int = MANY) -> None:
    first = Revision.objects.earliest("number").number
    Revision.objects.bulk_create(
        Revision(number=first + 1 + number, actor="ada", message="many", snapshot={}, sha256="x")
        for number in range(count)
    )
    for number in range(count):
        write_event(ADA, AuditedAction("user.invite", "user", f"many-{number}"))


def add_requests(count: int = MANY) -> None:
    now = timezone.now()
    facts = [RequestFacts(f"r{number}", now, "v1", agent=f"many-{number}") for number in range(count)]
    write([build_entry(fact, (Attempt("echo", "echo-text", "ok"),)) for fact in facts])


LISTS: dict[str, Callable[[int], None]] = {
    "/agents/": add_configuration,
    "/providers/": add_configuration,
    "/services/": add_configuration,
    "/matrix/": add_configuration,
    "/routes/": add_configuration,
    "/aliases/": add_configuration,
    "/users/": add_configuration,
    "/tokens/": add_configuration,
    "/usage/budgets/": add_configuration,
    "/artifacts/": add_artifacts,
    "/history/": add_history,
    "/history/audit/": add_history,
    "/requests/": add_requests,
    "/usage/": add_requests,
}
"""Maps the URL of a list to a function that adds a given number of rows to the list."""
NOTHING = {
    **dict.fromkeys(LISTS, "q=no-such-thing"),
    "/history/audit/": "object=no-such-thing",
    "/requests/": "q=agent:no-such-thing",
}
"""Maps the URL of a list to a search without results."""
TIMES = ("/users/", "/tokens/", "/artifacts/", "/history/", "/history/audit/", "/requests/")


def count_rows(page: Page) -> int:
    # The list is the page's last table. Charts contain tables, too.
    tables = [control for control in page.controls if control.tag == "table"]
    return len(tables[-1].rows)


@pytest.mark.parametrize("address", LISTS)
def test_list_page_size_can_be_chosen_and_is_remembered(admin: Client, address: str) -> None:
    """A page has as many rows as the URL says, otherwise as many as last chosen in this browser, otherwise 25."""
    LISTS[address](MANY)
    page = Page(admin.get(address))
    assert count_rows(page) == 25
    for size in ("25", "50", "100"):
        assert page.link(size), size
    assert count_rows(Page(admin.get(f"{address}?rows=50"))) == 50
    assert count_rows(Page(admin.get(f"{address}?rows=7"))) == 50


@pytest.mark.parametrize("address", LISTS)
def test_list_that_fits_on_the_smallest_page_has_no_pagination(admin: Client, address: str) -> None:
    page = Page(admin.get(address))
    assert not [control for control in page.controls if control.attributes.get("rel") == "next"]
    assert page.link("50") is None


def sorting_links(page: Page) -> list[str]:
    """Return the URLs of the links in the column headings."""
    heads = [control for control in page.controls if control.tag == "th"]
    return [address for head in heads for address in head.link_urls if "sort=" in address]


@pytest.mark.parametrize("address", [address for address in LISTS if address not in ("/requests/", "/history/")])
def test_list_can_be_sorted_by_each_sortable_column(admin: Client, address: str) -> None:
    """Assistive technology can find out which column is sorted. Lists of events and the matrix cannot be sorted."""
    LISTS[address](FEW)
    heads = sorting_links(Page(admin.get(address)))
    assert heads or address in ("/history/audit/", "/matrix/")
    for head in heads:
        page = Page(admin.get(urljoin(address, head)))
        assert len([control for control in page.controls if "aria-sort" in control.attributes]) == 1, head


@pytest.mark.parametrize("address", NOTHING)
def test_list_without_a_match_offers_to_clear_the_filters(admin: Client, address: str) -> None:
    LISTS[address](FEW)
    page = Page(admin.get(f"{address}?{NOTHING[address]}"))
    assert page.link("Clear filters")


@pytest.mark.parametrize("address", TIMES)
def test_lists_show_exact_times_with_the_time_zone(admin: Client, address: str) -> None:
    LISTS[address](FEW)
    page = Page(admin.get(address))
    assert [control for control in page.controls if control.tag == "th" and "UTC" in control.text]
    assert [control for control in page.controls if re.fullmatch(r"\d\d-\d\d \d\d:\d\d:\d\d", control.text)]


def test_users_are_filtered_by_role_and_state(admin: Client, editor: Client) -> None:
    User.objects.create(username="left", password="!", is_active=False)
    assert Page(admin.get("/users/?role=administrator")).rows == ["admin"]
    assert Page(admin.get("/users/?state=deactivated")).rows == ["left"]
    assert "left" in Page(admin.get("/users/?sort=-name", headers=HTMX)).rows


@pytest.mark.parametrize(
    ("form", "address", "fields"),
    [
        ("/users/invite/", "/users/", {"username": "ines", "role": "viewer"}),
        ("/tokens/new/", "/tokens/", {"name": "deploy", "days": "90", "scopes": "routes:read"}),
        ("/usage/budgets/save/", "/usage/budgets/", {"kind": "team", "name": "many-1"}),
    ],
)
def test_list_returned_by_a_form_post_links_to_the_url_of_the_list(
    admin: Client, form: str, address: str, fields: dict[str, str]
) -> None:
    """Headings, filters and pages link to the list's own URL, because the form's URL accepts no GET."""
    add_configuration()
    page = Page(admin.post(form, fields))
    assert page.loading(address)
    assert sorting_links(page)
    assert all(head.startswith(f"{address}?") for head in sorting_links(page))


def test_tokens_are_filtered_by_state(admin: Client) -> None:
    owner, now = User.objects.get(username="admin"), timezone.now()
    states: Sequence[tuple[str, dict[str, Any]]] = (
        ("works", {}),
        ("over", {"expires_at": now - timedelta(days=1)}),
        ("gone", {"revoked_at": now}),
    )
    for name, values in states:
        dates = {"expires_at": now + timedelta(days=1), **values}
        AdminToken.objects.create(owner=owner, name=name, public_id=name, digest="0", **dates)
    found = {state: Page(admin.get(f"/tokens/?state={state}")).rows for state in ("valid", "expired", "revoked")}
    assert found == {"valid": ["works"], "expired": ["over"], "revoked": ["gone"]}


def test_budgets_are_filtered_by_label_kind_and_link_to_the_usage(admin: Client) -> None:
    for label in ("team:billing", "project:apollo", "user:text-agent"):
        LabelBudget.objects.create(label=label, limits={"tokensPerDay": 100})
    page = Page(admin.get("/usage/budgets/?kind=team"))
    assert page.rows == ["billing"]
    assert page.row("billing").link_urls[0] == "/usage/?by=agent&team=billing"
    page = Page(admin.get("/usage/budgets/?state=each"))
    assert page.rows == ["text-agent"]
    assert page.row("text-agent").link_urls[0] == "/usage/?by=user"
    assert Page(admin.get("/usage/budgets/?sort=-name")).rows == ["text-agent", "billing", "apollo"]


@pytest.mark.parametrize(("used", "tone"), [(79, None), (80, "warn"), (100, "bad"), (130, "bad")])
def test_budget_bar_has_the_colour_of_the_budget_state(admin: Client, used: int, tone: str | None) -> None:
    LabelBudget.objects.create(label="team:billing", limits={"tokensPerDay": 100})
    end = timezone.now() + timedelta(hours=1)
    window = {"holder": label_holder_id(LabelKind.TEAM, "billing"), "meter": Meter.TOKENS_PER_DAY, "window": "now"}
    LimitWindow.objects.create(**window, drawn=used, ends_at=end)
    bars = [
        control for control in Page(admin.get("/usage/budgets/")).row("billing").controls if control.tag == "progress"
    ]
    assert [bar.attributes.get("class") for bar in bars] == [tone]


def test_large_numbers_of_budgets_have_thousands_separators(admin: Client) -> None:
    money = {"moneyPerMonth": "12500.50", "currency": "USD"}
    for label in ("team:billing", "user:text-agent"):
        LabelBudget.objects.create(label=label, limits=money)
    today = day_start(timezone.now())
    UsageSum.objects.create(span=UsageSum.DAY, start=today, team="billing", requests=1741, unpriced=1741)
    page = Page(admin.get("/usage/budgets/"))
    assert page.row("billing").shows("1,741 calls without a known price")
    assert page.row("text-agent").shows("12,500.50 USD")


def test_deleting_all_matching_artifacts_includes_those_on_other_pages(admin: Client) -> None:
    """Files that do not match the search are kept."""
    add_artifacts()
    Artifact.objects.create(id="other", filename="z.png", kind="image", size=1, sha256="0" * 64, is_binary=True)
    page = Page(admin.get("/artifacts/?sort=-size&kind=text"))
    assert [page.row(name).link_urls for name in page.rows[:2]] == [["/artifacts/a59/"], ["/artifacts/a58/"]]
    page = Page(admin.get("/artifacts/?sort=-name"))
    assert page.row(page.rows[0]).link("z.png")
    assert Page(admin.get("/artifacts/?kind=text")).shows("Select all 60 that match")
    admin.post(reverse("artifacts_delete"), {"all": "1", "kind": "text", "q": "many", "next": "/artifacts/"})
    assert list(Artifact.objects.living().values_list("pk", flat=True)) == ["other"]


def test_long_file_name_is_shortened_in_the_middle(admin: Client) -> None:
    name = "wide" * 50 + ".csv"
    Artifact.objects.create(id="long", filename=name, kind="text", size=1, sha256="0" * 64, is_binary=False)
    link = Page(admin.get("/artifacts/")).link(name)
    assert link
    hidden = [control.text for control in link.controls if control.attributes.get("class") == "mid"]
    assert hidden == [name.removeprefix("widewidewidewide").removesuffix("de.csv")]


def suggested_options(answer: Any) -> list[str]:
    return [control.value for control in Page(answer).controls if control.tag == "option"]


def test_matrix_provider_filter_accepts_a_part_of_a_name_or_an_exact_name(admin: Client) -> None:
    """If the search is a provider's full name, only this provider is shown, even if other names contain it."""
    for name in ("azure-1", "azure-10"):
        provider = Provider.objects.create(name=name, endpoint="https://a.example/v1", default_model="m")
        Service.objects.create(service_id=f"on-{name}", name=name, provider=provider, model="m")
    snapshot.refresh()
    assert Page(admin.get("/matrix/?provider=azure", headers=HTMX)).rows == ["on-azure-1", "on-azure-10"]
    assert Page(admin.get("/matrix/?provider=azure-1", headers=HTMX)).rows == ["on-azure-1"]
    assert suggested_options(admin.get("/options/provider/?provider=azu")) == ["azure-1", "azure-10"]


def test_actor_field_suggests_users_and_agents(admin: Client) -> None:
    assert {"admin", "text-agent"} <= set(suggested_options(admin.get("/options/actor/?actor=a")))


def test_usage_is_searched_by_name_and_each_row_links_to_the_requests(admin: Client) -> None:
    add_requests()
    page = Page(admin.get("/usage/?q=many-59"))
    assert count_rows(page) == 1
    link = page.row("many-59").link("many-59")
    assert link
    assert (link.attributes["href"] or "").startswith("/requests/?q=agent%3Amany-59")
    assert RequestLog.objects.count() == MANY
