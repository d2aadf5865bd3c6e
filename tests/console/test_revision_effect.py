"""The effect of a revision on requests, shown on the revision's page and as a line in the history."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from capabilities.actors import Actor
from capabilities.models import Provider
from routing_admin.console.history import queries as effects
from routing_admin.console.providers.actions import save_provider
from routing_admin.console.routes.actions import save_alias, save_route
from routing_admin.core.configuration.specs import CandidateSpec
from routing_admin.models import RequestLog, Revision, TaskRoute
from routing_admin.platform.databases.router import LOGS
from tests.console.page import Control, Page
from tests.console.visits import count_queries

pytestmark = pytest.mark.django_db(databases=["default", "logs"])
ADA = Actor("person", "ada")
HOUR = timedelta(hours=1)


def change_design(model: str = "echo-text", hours_ago: float = 2) -> int:
    """Change the route `design`, date the revision back by `hours_ago`, and return its number."""
    save_route(ADA, TaskRoute.objects.get(task_type="design"), [CandidateSpec("echo", model)])
    row = Revision.objects.latest("number")
    Revision.objects.filter(number=row.number).update(created_at=timezone.now() - hours_ago * HOUR)
    return row.number


def log_requests(
    number: int, before: int, after: int, *, failures: int = 0, task: str = "design", **columns: Any
) -> None:
    """Log requests before and after a revision. The first `failures` requests after it failed."""
    moment = Revision.objects.get(number=number).created_at
    for position in range(before + after):
        is_later = position >= before
        outcome = "http_503" if is_later and position - before < failures else "ok"
        started_at = moment + (timedelta(seconds=position + 1) if is_later else -timedelta(seconds=position + 1))
        values = {"task_type": task, "surface": "v1", "outcome": outcome, "duration_ms": 100, "started_at": started_at}
        revision = number if is_later else number - 1
        key = f"{task}-{number}-{position}"
        RequestLog.objects.create(id=key, **{**values, "revision": revision, **columns})


def revision_page(admin: Client, number: int) -> Page:
    return Page(admin.get(reverse("revision", args=[number])))


def outcomes_region(admin: Client, number: int) -> Control:
    return revision_page(admin, number).region("Request outcomes")


def test_revision_followed_by_failures_shows_the_effect_and_offers_undo(admin: Client, demo: None) -> None:
    number = change_design()
    log_requests(number, 40, 50, failures=20)
    log_requests(number, 5, 5, task="planning")
    outcomes = outcomes_region(admin, number)
    assert outcomes.shows("Requests of the routes it touches: 40 before, 50 after.")
    assert outcomes.row("failed").text.startswith("failed 0 % 40 %")
    assert outcomes.form(reverse("undo", args=[number]))
    assert outcomes.button("Undo this revision")
    admin.post(reverse("undo", args=[number]), {"next": reverse("history")})
    assert str(TaskRoute.objects.get(task_type="design").candidates.all()[0]) == "echo/echo-503"


def test_effect_of_a_revision_with_too_few_requests_is_undecided(admin: Client, demo: None) -> None:
    number = change_design()
    log_requests(number, 4, 4, failures=4)
    outcomes = outcomes_region(admin, number)
    assert outcomes.shows("4 before, 4 after. Too few to tell.")
    assert outcomes.rows == []
    assert not revision_page(admin, number).form(reverse("undo", args=[number]))


def test_comparison_window_ends_at_the_next_revision_of_the_same_routes(admin: Client, demo: None) -> None:
    """The page of the first revision offers to restore the revision before it, which reverts both changes."""
    first = change_design(hours_ago=3)
    save_route(ADA, TaskRoute.objects.get(task_type="planning"), [CandidateSpec("echo", "echo-text")])
    second = change_design("echo-vision", hours_ago=2)
    log_requests(first, 30, 30, failures=30)
    moment = Revision.objects.get(number=second).created_at + timedelta(minutes=1)
    RequestLog.objects.create(id="later", task_type="design", surface="v1", outcome="ok", started_at=moment)
    outcomes = outcomes_region(admin, first)
    assert outcomes.shows("30 before, 30 after")
    assert outcomes.shows("60 minutes before and after")
    assert outcomes.shows(f"revision {second} changed the same routes")
    link = outcomes.link(f"revision {second}")
    assert link
    assert link.attributes["href"] == reverse("revision", args=[second])
    assert outcomes.link(f"Restore revision {first - 1}")


def test_requests_served_with_the_previous_revision_after_a_change_are_not_counted(admin: Client, demo: None) -> None:
    number = change_design()
    log_requests(number, 0, 25, revision=number - 1)
    assert outcomes_region(admin, number).shows("0 before, 0 after")


def test_revisions_that_change_no_route_show_no_effect(admin: Client, demo: None) -> None:
    save_alias(ADA, "gpt-4o", "task:default")
    number = Revision.objects.latest("number").number
    assert not revision_page(admin, number).heading("Request outcomes")
    address = reverse("revision", args=[number]) + "?effect"
    assert not Page(admin.get(reverse("history"))).loading(address)
    assert Page(admin.get(address)).controls == []


def test_history_line_shows_and_links_to_a_significant_effect(admin: Client, demo: None) -> None:
    number = change_design()
    address = reverse("revision", args=[number]) + "?effect"
    line = Page(admin.get(reverse("history"))).row(str(number)).loading(address)
    assert line
    assert line.attributes["hx-trigger"] == "revealed"
    log_requests(number, 40, 50, failures=20)
    page = Page(admin.get(address))
    badge = page.link("failed 0 % → 40 %")
    assert badge
    assert badge.attributes["href"] == f"{reverse('revision', args=[number])}#effect"
    assert not page.is_document
    RequestLog.objects.all().delete()
    log_requests(number, 40, 50)
    assert Page(admin.get(address)).text == ""


def test_viewer_is_offered_no_undo_of_a_harmful_revision(viewer: Client, demo: None) -> None:
    number = change_design()
    log_requests(number, 40, 50, failures=20)
    assert outcomes_region(viewer, number).row("failed").shows("40 %")
    assert not revision_page(viewer, number).form(reverse("undo", args=[number]))


def test_number_of_compared_requests_of_busy_routes_is_limited(
    admin: Client, demo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many requests there are, the page makes a single log query."""
    monkeypatch.setattr(effects, "MAX_REQUESTS", 25)
    number = change_design()
    address = reverse("revision", args=[number])
    log_requests(number, 1, 1)
    query_counts = count_queries(admin, address), count_queries(admin, address, using=LOGS)
    RequestLog.objects.all().delete()
    log_requests(number, 40, 50)
    assert (count_queries(admin, address), count_queries(admin, address, using=LOGS)) == query_counts
    assert query_counts[1] == 1
    outcomes = outcomes_region(admin, number)
    assert outcomes.shows("25 before, 25 after")
    assert outcomes.shows("only requests closest")


def test_effect_of_a_revision_of_many_routes_names_five_and_counts_the_others(
    admin: Client, demo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "MAX_ROUTES", 6)
    for number in range(7):
        row = TaskRoute.objects.create(task_type=f"many-{number}", position=100 + number)
        save_route(ADA, row, [CandidateSpec("echo", "echo-text")])
    provider = Provider.objects.get(name="echo")
    provider.default_model = "echo-vision"
    save_provider(ADA, provider)
    outcomes = outcomes_region(admin, Revision.objects.latest("number").number)
    assert outcomes.shows("and 1 more")
    assert re.search(r"[1-9]\d* further routes? that it touches (is|are) not compared\.", outcomes.text)
