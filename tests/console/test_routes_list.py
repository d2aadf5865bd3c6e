"""The list of many task routes: pages, search, and the traffic of each route."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.models import Candidate, RequestLog, TaskRoute
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
    """The list has 20 routes per page. The search matches task types and candidates."""
    add_routes(30)
    snapshot.refresh()
    first, second = (text_of(admin.get(f"/routes/?page={number}")) for number in (1, 2))
    assert "All 36 task routes are working." in first
    assert (first.count('<tr id="route-'), second.count('<tr id="route-')) == (20, 16)
    assert "21 to 36 of 36" in second
    assert text_of(admin.get("/routes/?q=MORE-07")).count('<tr id="route-') == 1
    assert 'id="route-design"' in text_of(admin.get("/routes/?q=vision"))
    assert "No task route matches." in text_of(admin.get("/routes/?q=nothing-like-it"))


@pytest.mark.smoke
def test_each_route_shows_the_traffic_of_its_day_and_leads_to_it(admin: Client) -> None:
    """Each route shows the requests of its last day with a link to them. Older requests do not count."""
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
    assert "/requests/?q=task%3Adesign%20since%3A24h" in page
    assert page.count("no requests") == 5
