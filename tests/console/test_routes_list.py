"""The list of many task routes: pages, search, and the traffic of each route."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.models import Candidate, RequestLog, TaskRoute, UsageSum
from routing_admin.request_log.time_ranges import hour_of
from tests.console.visits import text_of

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    return admin


def add_routes(count: int) -> None:
    echo = Provider.objects.get(name="echo")
    for number in range(count):
        row = TaskRoute.objects.create(task_type=f"more-{number:02}", position=100 + number)
        Candidate.objects.create(route=row, position=1, provider=echo)


def test_many_routes_come_in_pages_and_are_found_by_their_names_and_models(admin: Client) -> None:
    """The list has 25 routes per page. The search matches task types and candidates."""
    add_routes(30)
    snapshot.refresh()
    first, second = (text_of(admin.get(f"/routes/?page={number}")) for number in (1, 2))
    assert "All 36 task routes are working." in first
    assert (first.count('<tr id="route-'), second.count('<tr id="route-')) == (25, 11)
    assert "26 to 36 of 36" in second
    assert text_of(admin.get("/routes/?q=MORE-07")).count('<tr id="route-') == 1
    assert 'id="route-design"' in text_of(admin.get("/routes/?q=vision"))
    assert "No task route matches." in text_of(admin.get("/routes/?q=nothing-like-it"))


@pytest.mark.smoke
def test_each_route_shows_the_traffic_of_its_day_and_leads_to_it(admin: Client) -> None:
    """Each route shows the requests of its last day with a link to them. Older requests are not counted."""
    now = timezone.now()
    for number, outcome in enumerate(["ok"] * 8 + ["http_500"] * 2):
        RequestLog.objects.create(
            id=f"r{number}", started_at=now, surface="v1", task_type="design", outcome=outcome, fell_back=number == 0
        )
    RequestLog.objects.create(id="old", started_at=now - timedelta(days=2), surface="v1", task_type="planning")
    page = " ".join(text_of(admin.get("/routes/")).split())
    assert "10 requests" in page
    assert "20% failed" in page
    assert "10% by a fallback" in page
    assert "/requests/?q=task%3Adesign%20since%3A1d" in page
    assert page.count("no requests") == 5


def test_the_list_is_sorted_by_name_and_by_the_requests_of_the_day(admin: Client) -> None:
    """Without `sort`, routes are in the configuration's order."""
    start = hour_of(timezone.now())
    UsageSum.objects.create(span="h", start=start, task_type="planning", provider="echo", requests=3)
    rows = {
        sort: re.findall(r'<tr id="route-([\w-]+)"', text_of(admin.get(f"/routes/?sort={sort}")))
        for sort in ("", "name", "-requests")
    }
    assert rows["name"] == sorted(rows[""]) != rows[""]
    assert rows["-requests"][0] == "planning"
    assert sorted(rows["-requests"]) == rows["name"]


def test_of_a_long_chain_three_candidates_are_shown_and_the_rest_counted(admin: Client) -> None:
    """A chain of four is shown completely, since the number of hidden candidates would take as much space as the
    fourth.
    """
    echo = Provider.objects.get(name="echo")
    for name, count in (("long", 7), ("four", 4)):
        row = TaskRoute.objects.create(task_type=name, position=200)
        for position in range(count):
            Candidate.objects.create(route=row, position=position + 1, provider=echo, model=f"{name}-{position}")
    snapshot.refresh()
    page = " ".join(text_of(admin.get("/routes/?q=long")).split())
    assert ("long-2" in page, "long-3" in page, "> 4 more <" in page) == (True, False, True)
    assert "four-3" in text_of(admin.get("/routes/?q=four"))
