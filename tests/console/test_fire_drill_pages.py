"""Fire drills (simulated outages of a provider) in the browser: consequences, permissions, progress and result."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.actors import SYSTEM
from capabilities.errors import NotFoundError
from routing_admin.configuration import snapshot
from routing_admin.console.drills.actions import DrillRefusedError, record_drill_ends, start_drill, stop_drill
from routing_admin.models import AttemptLog, AuditEvent, FireDrill, RequestLog, Revision
from routing_admin.request_log.drill_results import find_result
from routing_admin.request_log.health import provider_health
from tests.console.page import Page

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]

PAGE = "/providers/echo/drill/"
AFFECTED_CALLS = (
    *({"outcome": "ok", "provider": name} for name in ("two", "three", "two")),
    {"outcome": "all_providers_failed", "task_type": "planning"},
    {"outcome": "client_cancelled"},
)


def log_calls(drill: FireDrill) -> None:
    """Log five calls affected by the drill, and an earlier one that the provider answered in 100 ms."""
    started_at = drill.started_at + timedelta(seconds=1)
    for number, columns in enumerate(AFFECTED_CALLS):
        row = RequestLog.objects.create(
            id=f"met{number}", started_at=started_at, surface="v1", duration_ms=220 + number, fell_back=True, **columns
        )
        AttemptLog.objects.create(request=row, position=0, provider="echo", outcome="fire_drill", at=started_at)
    before = drill.started_at - timedelta(minutes=5)
    row = RequestLog.objects.create(id="before", started_at=before, surface="v1", outcome="ok", provider="echo")
    AttemptLog.objects.create(request=row, position=0, provider="echo", outcome="ok", duration_ms=100, at=before)


def end_drill(drill: FireDrill) -> FireDrill:
    """Move the drill's start and end back by 100 seconds."""
    drill.started_at -= timedelta(seconds=100)
    drill.ends_at -= timedelta(seconds=100)
    drill.save()
    snapshot.refresh()
    return drill


def test_drill_page_lists_routes_without_a_fallback(admin: Client) -> None:
    """The page also shows how many calls were recently answered, and suggests a duration of 60 seconds."""
    log_calls(FireDrill(started_at=timezone.now()))
    page = Page(admin.get(PAGE))
    assert page.shows("planning has no model left that can be called.")
    assert page.shows("recently answered calls per minute: 0.1")
    choices = {name: page.field(name) for name in ("30 s", "60 s", "300 s")}
    assert [name for name, choice in choices.items() if choice and choice.is_checked] == ["60 s"]
    assert not page.heading("Fire drills so far")


def test_active_drill_is_shown_on_every_page(admin: Client) -> None:
    assert admin.post(PAGE, {"seconds": "30"}).status_code == 302
    for url in ("/", "/routes/", "/providers/echo/"):
        page = Page(admin.get(url))
        assert re.fullmatch(r"Fire drill by admin: \w+ fails on purpose\.", page.status)
        assert page.shows("30 s left") or page.shows("29 s left")
        assert page.button("End now")
    assert "is over" in Page(admin.post("/drill/end/", follow=True)).status
    assert not Page(admin.get("/")).shows("fails on purpose")


def test_viewer_sees_a_drill_but_can_neither_start_nor_end_one(viewer: Client) -> None:
    assert viewer.post(PAGE, {"seconds": "30"}).status_code == 403
    start_drill(SYSTEM, "echo", 60)
    assert "Fire drill by" in Page(viewer.get("/drill/")).status
    assert not Page(viewer.get("/")).button("End now")
    assert viewer.post("/drill/end/").status_code == 403


def test_drill_start_and_end_are_audited(admin: Client) -> None:
    admin.post(PAGE, {"seconds": "30"})
    admin.post("/drill/end/")
    acts = AuditEvent.objects.order_by("number").values_list("action", "actor", "object_name")
    assert list(acts)[-2:] == [("provider.drill", "admin", "echo"), ("provider.drill_stop", "admin", "echo")]


def test_drill_creates_no_revision_and_is_not_part_of_the_configuration(admin: Client) -> None:
    before = Revision.objects.count()
    start_drill(SYSTEM, "echo", 60)
    stop_drill(SYSTEM)
    assert Revision.objects.count() == before


def test_second_simultaneous_drill_is_rejected(admin: Client) -> None:
    start_drill(SYSTEM, "echo", 60)
    toast = Page(admin.post("/providers/openai/drill/", {"seconds": "30"}, follow=True)).status
    assert "is running a fire drill of echo until" in toast
    assert "Only one can run at a time." in toast


@pytest.mark.parametrize("seconds", ["7", "½"])
def test_drill_with_an_unsupported_duration_is_rejected(admin: Client, seconds: str) -> None:
    assert "lasts 30, 60 or 300 seconds" in Page(admin.post(PAGE, {"seconds": seconds}, follow=True)).status


def test_drill_of_a_disabled_provider_is_rejected(admin: Client) -> None:
    admin.post("/switch/providers/", {"name": "openai", "enabled": "0", "confirmed": "1"})
    with pytest.raises(DrillRefusedError, match="openai is disabled"):
        start_drill(SYSTEM, "openai", 60)


def test_stopping_a_drill_without_an_active_drill_raises_not_found() -> None:
    with pytest.raises(NotFoundError):
        stop_drill(SYSTEM)


@pytest.fixture
def ended_drill(demo: None) -> None:
    start_drill(SYSTEM, "echo", 60)
    log_calls(end_drill(FireDrill.objects.get()))


@pytest.mark.usefixtures("ended_drill")
def test_provider_page_shows_the_result_of_a_drill(admin: Client) -> None:
    (result,) = Page(admin.get(PAGE)).region("Fire drills so far").items
    for expected in (
        "5 calls were affected.",
        "3 were answered by two (2), three (1).",
        "1 failed.",
        "1 was left or refused.",
        "Median: 0.12 s slower than the provider",
    ):
        assert result.shows(expected)
    failed = result.link("planning")
    assert failed
    assert failed.attributes["href"] == "/requests/met3/"


@pytest.mark.usefixtures("ended_drill")
def test_drill_end_is_audited_once_with_the_result(admin: Client) -> None:
    for _ in range(2):
        record_drill_ends()
    event = AuditEvent.objects.get(action="provider.drill_end")
    assert (event.actor_kind, event.object_name, event.details["met"]) == ("system", "echo", 5)
    audit_log = Page(admin.get("/history/audit/"))
    assert audit_log.shows("5 calls were affected. 3 were answered by two (2), three (1). 1 failed.")
    assert snapshot.current().drill is None


def test_calls_during_a_drill_do_not_affect_provider_health() -> None:
    """The provider is not called during a drill, so these calls say nothing about its health."""
    drill = FireDrill(provider="echo", started_at=timezone.now() - timedelta(seconds=30))
    log_calls(drill)
    health = provider_health(timezone.now())["echo"]
    assert (health.status, health.calls) == ("ok", 1)


def test_result_of_a_drill_without_calls_says_that_no_call_was_affected(admin: Client) -> None:
    start_drill(SYSTEM, "echo", 30)
    drill: Any = FireDrill.objects.get()
    assert find_result("echo", drill.started_at, drill.ends_at).met == 0
    assert Page(admin.get(PAGE)).region("Fire drills so far").shows("No call was affected.")


def test_drill_of_an_unknown_provider_returns_404(admin: Client) -> None:
    assert admin.get("/providers/unknown/drill/").status_code == 404
    with pytest.raises(NotFoundError, match="no provider unknown"):
        start_drill(SYSTEM, "unknown", 60)
