"""Fire drills, which simulate a provider's outage, in the browser: consequences, permissions, progress and result."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from capabilities.acts import SYSTEM
from capabilities.errors import NotFoundError
from routing_admin.configuration import snapshot
from routing_admin.console.drills.actions import DrillRefusedError, note_drill_ends, start_drill, stop_drill
from routing_admin.models import AttemptLog, AuditEvent, FireDrill, RequestLog, Revision
from routing_admin.request_log.drill_results import find_result
from routing_admin.request_log.health import provider_health
from tests.console.visits import text_of

pytestmark = [pytest.mark.django_db(databases=["default", "logs"]), pytest.mark.usefixtures("demo")]

PAGE = "/providers/echo/drill/"
MET = (
    *({"outcome": "ok", "provider": name} for name in ("two", "three", "two")),
    {"outcome": "all_providers_failed", "task_type": "planning"},
    {"outcome": "client_cancelled"},
)


def log_calls(drill: FireDrill) -> None:
    """Log five calls affected by the drill, and an earlier one that the provider answered in 100 ms."""
    started_at = drill.started_at + timedelta(seconds=1)
    for number, columns in enumerate(MET):
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


def test_page_lists_routes_without_a_fallback_before_a_drill(admin: Client) -> None:
    """Before a drill the page shows routes that would fail, recently answered calls, and 60 seconds as default."""
    log_calls(FireDrill(started_at=timezone.now()))
    page = text_of(admin.get(PAGE))
    assert "planning has no model left that can be called." in page
    assert "recently answered calls per minute: 0.1" in page
    html = admin.get(PAGE).content.decode()
    assert 'value="60" checked' in html
    assert 'id="drills"' not in html


def test_drill_is_shown_on_every_page_until_it_ends(admin: Client, viewer: Client) -> None:
    """Every page has a banner with the provider, who started the drill and the seconds left.

    Only an administrator gets the button to end it.
    """
    assert admin.post(PAGE, {"seconds": "30"}).status_code == 302
    for url in ("/", "/routes/", "/providers/echo/"):
        page = text_of(admin.get(url))
        assert "Fire drill by admin:" in page
        assert "fails on purpose." in page
        assert "30 s left" in page or "29 s left" in page
        assert "End now" in page
    assert "Fire drill by admin" in text_of(viewer.get("/drill/"))
    assert "End now" not in text_of(viewer.get("/"))
    assert viewer.post("/drill/end/").status_code == 403
    assert viewer.post(PAGE, {"seconds": "30"}).status_code == 403
    assert "is over" in text_of(admin.post("/drill/end/", follow=True))
    assert "fails on purpose" not in text_of(admin.get("/"))
    acts = AuditEvent.objects.order_by("number").values_list("action", "actor", "object_name")
    assert list(acts)[-2:] == [("provider.drill", "admin", "echo"), ("provider.drill_stop", "admin", "echo")]


def test_drill_is_no_revision_and_not_in_the_configuration(admin: Client) -> None:
    """Starting and stopping a fire drill creates no revision."""
    before = Revision.objects.count()
    start_drill(SYSTEM, "echo", 60)
    stop_drill(SYSTEM)
    assert Revision.objects.count() == before


def test_second_drill_is_refused(admin: Client) -> None:
    """A second drill, an invalid duration, a disabled provider and ending no drill are rejected with a message."""
    start_drill(SYSTEM, "echo", 60)
    page = text_of(admin.post("/providers/openai/drill/", {"seconds": "30"}, follow=True))
    assert "is running a fire drill of echo until" in page
    assert "Only one can run at a time." in page
    stop_drill(SYSTEM)
    assert "lasts 30, 60 or 300 seconds" in text_of(admin.post(PAGE, {"seconds": "7"}, follow=True))
    assert "lasts 30, 60 or 300 seconds" in text_of(admin.post(PAGE, {"seconds": "½"}, follow=True))
    admin.post("/switch/providers/", {"name": "openai", "enabled": "0", "confirmed": "1"})
    with pytest.raises(DrillRefusedError, match="openai is disabled"):
        start_drill(SYSTEM, "openai", 60)
    with pytest.raises(NotFoundError):
        stop_drill(SYSTEM)


def test_result_of_a_drill_is_on_the_page_and_in_the_audit_log(admin: Client) -> None:
    """A drill's result names the providers that answered, the call that failed and the delay.

    The end of the drill is audited once.
    """
    start_drill(SYSTEM, "echo", 60)
    drill = end_drill(FireDrill.objects.get())
    log_calls(drill)
    page = text_of(admin.get(PAGE))
    for expected in (
        "5 calls were affected.",
        "3 were answered by two (2), three (1).",
        "1 failed.",
        "1 was left or refused.",
    ):
        assert expected in page
    assert "Median: 121 ms slower than the provider" in page
    assert 'href="/requests/met3/"' in admin.get(PAGE).content.decode()
    for _ in range(2):
        note_drill_ends()
    event = AuditEvent.objects.get(action="provider.drill_end")
    assert (event.actor_kind, event.object_name, event.details["met"]) == ("system", "echo", 5)
    assert "5 calls were affected. 3 were answered by two (2), three (1). 1 failed." in text_of(
        admin.get("/history/audit/")
    )
    assert snapshot.current().drill is None


def test_calls_of_a_drill_do_not_affect_provider_health() -> None:
    """Calls during a drill do not affect the provider's health, because the provider was not called."""
    drill = FireDrill(provider="echo", started_at=timezone.now() - timedelta(seconds=30))
    log_calls(drill)
    health = provider_health(timezone.now())["echo"]
    assert (health.status, health.calls) == ("ok", 1)


def test_drill_without_calls_says_so(admin: Client) -> None:
    start_drill(SYSTEM, "echo", 30)
    drill: Any = FireDrill.objects.get()
    assert find_result("echo", drill.started_at, drill.ends_at).met == 0
    assert "No call was affected." in text_of(admin.get(PAGE))


def test_an_unknown_provider_has_no_drill(admin: Client) -> None:
    """The page for a drill of an unknown provider returns 404, and the action raises `NotFoundError`."""
    assert admin.get("/providers/unknown/drill/").status_code == 404
    with pytest.raises(NotFoundError, match="no provider unknown"):
        start_drill(SYSTEM, "unknown", 60)
