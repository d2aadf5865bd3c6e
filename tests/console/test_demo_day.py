"""The demo's requests: they are spread over a day, and are deleted together with the demo."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.utils import timezone

from capabilities.actors import SYSTEM
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.queries import list_agent_ids
from routing_admin.configuration.history import newest_number
from routing_admin.console.alerts.queries import list_budget_uses
from routing_admin.console.demo import day, load
from routing_admin.console.history.actions import undo
from routing_admin.models import Alert, AttemptLog, LimitWindow, RequestLog, UsageSum
from routing_admin.request_log.entries import RequestFacts, build_entry
from routing_admin.request_log.insertion import write
from tests.cast import renew

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def load_demo_with_requests() -> None:
    renew()
    load.load(budget=True)
    load.load_files()
    day.load_day()


def list_requests() -> list[dict[str, object]]:
    return list(RequestLog.objects.order_by("pk").values("pk", "started_at", "outcome", "cost_nanos", "chain"))


def test_demo_requests_have_every_ending_and_known_costs() -> None:
    load_demo_with_requests()
    requests, now = RequestLog.objects.all(), timezone.now()
    assert requests.count() >= 300
    assert set(requests.values_list("ending", flat=True)) == {"answered", "failed", "refused", "cancelled"}
    assert set(requests.values_list("agent", flat=True)) == set(list_agent_ids())
    assert requests.values("provider", "model").distinct().count() >= 6
    assert requests.filter(fell_back=True).count() >= 20
    assert requests.filter(currency="USD", cost_nanos__gt=0).count() >= 100
    assert not requests.exclude(started_at__range=(now - timedelta(hours=24, minutes=5), now)).exists()
    deliveries = [file for attempt in AttemptLog.objects.all() for file in attempt.deliveries]
    assert {"native", "described"} <= {file["outcome"] for file in deliveries}
    routes = {route.task_type for route in snapshot.current().configuration.routes}
    assert set(requests.exclude(task_type="").values_list("task_type", flat=True)) == routes


def test_demo_has_one_nearly_used_up_budget_and_one_ended_alert() -> None:
    load_demo_with_requests()
    (use,) = list_budget_uses(snapshot.current().configuration)
    assert 80 <= use.percent < 100
    alert = Alert.objects.get()
    assert (alert.kind, alert.subject) == ("balance_gone", "openai")
    assert alert.ended_at is not None


def test_demo_requests_are_deterministic_and_log_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load_demo_with_requests()
    first = list_requests()
    day.remove_day()
    day.load_day()
    assert list_requests() == first
    assert [record for record in caplog.records if record.name.startswith("routing_admin")] == []


def test_deleting_the_demo_deletes_its_requests_and_undo_restores_them() -> None:
    load_demo_with_requests()
    facts = RequestFacts("req_own", timezone.now() - timedelta(hours=1), "v1", agent="text-agent")
    write([build_entry(facts)])
    before, sums = list_requests(), UsageSum.objects.count()
    load.remove(SYSTEM)
    assert list(RequestLog.objects.values_list("pk", flat=True)) == ["req_own"]
    assert not AttemptLog.objects.exists()
    assert [(row.span, row.requests) for row in UsageSum.objects.order_by("span")] == [("d", 1), ("h", 1)]
    assert not Alert.objects.exists()
    assert not LimitWindow.objects.exists()
    number = newest_number()
    assert number is not None
    undo(SYSTEM, number)
    assert list_requests() == before
    assert UsageSum.objects.count() == sums
    assert len(list_budget_uses(snapshot.current().configuration)) == 1


def test_undo_of_a_demo_removal_creates_no_requests_if_none_existed() -> None:
    renew()
    load.load()
    load.remove(SYSTEM)
    number = newest_number()
    assert number is not None
    undo(SYSTEM, number)
    assert not RequestLog.objects.exists()
