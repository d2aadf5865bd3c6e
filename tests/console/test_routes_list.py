"""The list of task routes, of which there may be many: pages, search, and each route's traffic."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.models import Candidate, RequestLog, TaskRoute, UsageSum
from routing_admin.request_log.time_ranges import hour_start
from tests.console.page import Page

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    return admin


def add_routes(count: int) -> None:
    echo = Provider.objects.get(name="echo")
    for number in range(count):
        row = TaskRoute.objects.create(task_type=f"more-{number:02}", position=100 + number)
        Candidate.objects.create(route=row, position=1, provider=echo)


def routes_page(admin: Client, query: str) -> Page:
    return Page(admin.get(f"/routes/?{query}"))


def test_route_list_is_paginated(admin: Client) -> None:
    add_routes(30)
    snapshot.refresh()
    first, second = (routes_page(admin, f"page={number}") for number in (1, 2))
    assert first.shows("All 36 task routes are working.")
    assert (len(first.rows), len(second.rows)) == (25, 11)
    assert second.region("Pages").shows("26 to 36 of 36")


def test_route_search_finds_routes_by_name_and_model(admin: Client) -> None:
    add_routes(30)
    snapshot.refresh()
    assert routes_page(admin, "q=MORE-07").rows == ["more-07"]
    assert "design" in routes_page(admin, "q=vision").rows
    assert routes_page(admin, "q=nothing-like-it").shows("No task route matches.")


@pytest.mark.smoke
def test_each_route_shows_and_links_to_the_requests_of_the_last_day(admin: Client) -> None:
    now = timezone.now()
    for number, outcome in enumerate(["ok"] * 8 + ["http_500"] * 2):
        RequestLog.objects.create(
            id=f"r{number}", started_at=now, surface="v1", task_type="design", outcome=outcome, fell_back=number == 0
        )
    RequestLog.objects.create(id="old", started_at=now - timedelta(days=2), surface="v1", task_type="planning")
    routes = routes_page(admin, "")
    requests, failed = routes.row("design").link("10 requests"), routes.row("design").link("20% failed")
    assert requests
    assert requests.attributes["href"] == "/requests/?q=task%3Adesign%20since%3A1d"
    assert failed
    assert routes.row("design").link("10% by a fallback")
    assert sum(bool(routes.row(name).shows("no requests")) for name in routes.rows) == 5


def test_route_list_can_be_sorted_by_name_and_by_requests_of_the_last_day(admin: Client) -> None:
    start = hour_start(timezone.now())
    UsageSum.objects.create(span="h", start=start, task_type="planning", provider="echo", requests=3)
    rows = {sort: routes_page(admin, f"sort={sort}").rows for sort in ("", "name", "-requests")}
    assert rows["name"] == sorted(rows[""]) != rows[""]
    assert rows["-requests"][0] == "planning"
    assert sorted(rows["-requests"]) == rows["name"]
    unable = TaskRoute.objects.create(task_type="zz-unable", position=100)
    Candidate.objects.create(route=unable, position=1, provider=Provider.objects.get(name="openai"))
    snapshot.refresh()
    assert routes_page(admin, "").rows == ["zz-unable", *rows[""]]


def test_long_chain_shows_three_candidates_and_counts_the_others(admin: Client) -> None:
    """A chain of four is shown in full, because a count would take as much space as the fourth candidate."""
    echo = Provider.objects.get(name="echo")
    for name, count in (("long", 7), ("four", 4)):
        row = TaskRoute.objects.create(task_type=name, position=200)
        for position in range(count):
            Candidate.objects.create(route=row, position=position + 1, provider=echo, model=f"{name}-{position}")
    snapshot.refresh()
    chain = routes_page(admin, "q=long").row("long")
    assert [bool(chain.shows(words)) for words in ("long-2", "long-3", "4 more")] == [True, False, True]
    assert routes_page(admin, "q=four").row("four").shows("four-3")


def test_route_that_cannot_answer_has_a_badge_and_other_warnings_are_icons(admin: Client) -> None:
    """Rows therefore stay one or two lines high. Screen readers and the title have the whole sentence."""
    unable = TaskRoute.objects.create(task_type="unable", position=100)
    Candidate.objects.create(route=unable, position=1, provider=Provider.objects.get(name="openai"))
    snapshot.refresh()
    page = Page(admin.get("/routes/"))
    badge = page.row("unable").chip("Cannot answer")
    assert (badge.tone, badge.attributes["title"]) == ("bad", "No candidate can answer: all are skipped")
    icons = [control for control in page.row("design").controls if control.attributes.get("class") == "ink warn"]
    assert [(control.attributes["title"] or "").startswith("Candidate") for control in icons] == [True]
