"""Request counters in `/metrics`: by route, provider, model, outcome and token kind. Each request counts once."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from capabilities.core.operations.table import OPERATIONS
from capabilities.core.wire import Usage
from capabilities.models import Agent, Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import Attempt, Try
from routing_admin.models import UsageSum
from routing_admin.platform.server.metrics import OTHER
from routing_admin.request_log.entries import Entry, RequestFacts, build_entry
from routing_admin.request_log.journal import Journal
from routing_admin.request_log.usage_sums import OTHERS
from tests.server.metric_samples import read_samples

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.fixture(autouse=True)
def configured_services(db: None) -> None:
    shared = {"endpoint": "https://a.example/v1", "key_source": "none"}
    first = Provider.objects.create(name="first", default_model="m", **shared)
    Provider.objects.create(name="second", default_model="n", **shared)
    for name in ("counted", "paid", "chat", "embeddings", "text_completion", "generate_content"):
        Service.objects.create(service_id=name, name=name, provider=first, model="m")
    snapshot.refresh()


def entry(name: str, route: str, surface: str = "v1") -> Entry:
    """Return the log entry of a request whose first candidate failed and whose second took 1.5 seconds."""
    tried = (Try(0.0, 1.0, "ok", None),)
    facts = RequestFacts(name, timezone.now(), surface, task_type=route, usage=Usage(1000, 100, cached_tokens=400))
    down = Attempt("first", "m", "http_503", 503, tries=tried)
    return build_entry(facts, (down, Attempt("second", "n", "ok", duration_ms=1500, tries=tried)))


def sample_value(name: str, **labels: str) -> float:
    return read_samples().get((name, frozenset(labels.items())), 0.0)


def test_logged_request_is_counted_once():
    journal = Journal()
    for name in ("counted-a", "counted-b"):
        journal.record(entry(name, "counted"))
    assert (
        sample_value("routing_admin_requests_total", route="counted", surface="v1", outcome="ok", ending="answered")
        == 0
    )
    journal.flush()
    assert (
        sample_value("routing_admin_requests_total", route="counted", surface="v1", outcome="ok", ending="answered")
        == 2
    )
    down = {"route": "counted", "provider": "first", "model": "m", "outcome": "http_503"}
    assert sample_value("routing_admin_attempts_total", **down) == 2
    labels = {"route": "counted", "provider": "second", "model": "n"}
    tokens = {
        kind: sample_value("routing_admin_tokens_total", **labels, kind=kind)
        for kind in ("input", "cache_read", "output")
    }
    assert tokens == {"input": 2000, "cache_read": 800, "output": 200}
    call = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": "second", "gen_ai_request_model": "n"}
    assert sample_value("gen_ai_client_operation_duration_seconds_sum", **call, error_type="") >= 3.0
    assert sample_value("gen_ai_client_token_usage_count", **call, gen_ai_token_type="input") >= 2


def test_costs_are_counted_by_currency():
    host = Provider.objects.create(
        name="host", endpoint="https://api.openai.com/v1", default_model="gpt-4o", key_source="none"
    )
    price = {"currency": "CNY", "input": 2, "output": 2}
    Service.objects.create(service_id="yuan", name="yuan", provider=host, model="own", price=price)
    snapshot.refresh()
    silent = (Try(0.0, 1.0, "empty_content", 200, usage=Usage(1_000_000, 0)),)
    facts = RequestFacts("paid", timezone.now(), "v1", task_type="paid", usage=Usage(1_000_000, 0))
    facts.first_content_ms = 30.0
    attempts = (Attempt("host", "gpt-4o", "empty_content", tries=silent), Attempt("unknown-model", "m", "http_503"))
    journal = Journal()
    journal.record(build_entry(facts, (*attempts, Attempt("host", "own", "ok", started_ms=10.0))))
    journal.flush()
    labels = {"route": "paid", "provider": "host"}
    assert sample_value("routing_admin_cost_total", **labels, model="gpt-4o", currency="USD") == 2.5
    assert sample_value("routing_admin_cost_total", **labels, model="own", currency="CNY") == 2.0
    assert sample_value("routing_admin_tokens_total", **labels, model="gpt-4o", kind="input") == 1_000_000
    first = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": "host", "gen_ai_request_model": "own"}
    assert sample_value("gen_ai_client_operation_time_to_first_chunk_seconds_sum", **first) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("surface", "operation"),
    [
        ("v1", "chat"),
        ("v1/embeddings", "embeddings"),
        ("v1/completions", "text_completion"),
        ("v1/images", "generate_content"),
    ],
)
def test_opentelemetry_operation_name_depends_on_the_surface(surface: str, operation: str):
    assert surface == "v1" or surface.removeprefix("v1/") in {operation_row.name for operation_row in OPERATIONS}
    journal = Journal()
    journal.record(entry(f"work-{operation}", operation, surface))
    journal.flush()
    call = {"gen_ai_operation_name": operation, "gen_ai_provider_name": "second", "gen_ai_request_model": "n"}
    assert sample_value("gen_ai_client_operation_duration_seconds_count", **call, error_type="") >= 1


def test_metrics_of_the_installation_and_the_process_are_reported():
    names = {name for name, _ in read_samples()}
    assert {"routing_admin_revision", "routing_admin_connections", "routing_admin_chat_requests_refused_total"} <= names
    assert not [name for name in names if name.endswith("_created")]


def test_unconfigured_names_share_one_time_series():
    journal = Journal()
    journal.record(entry("known", "counted"))
    journal.flush()
    before = set(read_samples()), set(UsageSum.objects.values_list("task_type", "model"))
    for number in range(50):
        journal.record(unconfigured_entry(f"made-{number}", f"second/x{number}", f"x{number}"))
    journal.flush()
    added = [dict(labels) for _, labels in read_samples().keys() - before[0]]
    assert added
    assert [labels for labels in added if OTHER not in labels.values()] == []
    sums = set(UsageSum.objects.values_list("task_type", "model")) - before[1]
    assert sums == {(OTHERS, OTHERS)}
    assert sample_value("routing_admin_attempts_total", route=OTHER, provider="second", model=OTHER, outcome="ok") >= 50
    Service.objects.create(service_id="later", name="later", provider=Provider.objects.get(name="second"), model="x7")
    snapshot.refresh()
    journal.record(unconfigured_entry("made-later", "later", "x7"))
    journal.flush()
    assert sample_value("routing_admin_attempts_total", route="later", provider="second", model="x7", outcome="ok") == 1


def test_time_series_of_a_removed_service_return_when_the_service_is_restored():
    third = Provider.objects.create(name="third", endpoint="https://a.example/v1", key_source="none")
    Service.objects.create(service_id="gone", name="gone", provider=third, model="g")
    snapshot.refresh()
    facts = RequestFacts("gone-1", timezone.now(), "v1", task_type="gone", usage=Usage(10, 1))
    journal = Journal()
    journal.record(build_entry(facts, (Attempt("third", "g", "ok", tries=(Try(0.0, 1.0, "ok", None),)),)))
    journal.flush()
    series = {"route": "gone", "provider": "third", "model": "g", "outcome": "ok"}
    assert sample_value("routing_admin_attempts_total", **series) == 1
    Service.objects.filter(service_id="gone").delete()
    third.delete()
    snapshot.refresh()
    assert [labels for _, labels in read_samples() if {"gone", "third"} & set(dict(labels).values())] == []
    third = Provider.objects.create(name="third", endpoint="https://a.example/v1", key_source="none")
    Service.objects.create(service_id="gone", name="gone", provider=third, model="g")
    snapshot.refresh()
    assert sample_value("routing_admin_attempts_total", **series) == 1


def test_number_of_agents_with_time_series_is_limited(settings: Any):
    """Agents created at run time never have a time series."""
    limits = {"requestsPerMinute": 4}
    Agent.objects.create(agent_id="a-made", origin=Agent.Origin.RUNTIME)
    for name in ("b-kept", "c-kept"):
        Agent.objects.create(agent_id=name, limits=limits)
    journal = Journal()

    def call(name: str) -> None:
        journal.record(build_entry(RequestFacts(f"{name}-{len(read_samples())}", timezone.now(), "v1", agent=name), ()))
        journal.flush()

    snapshot.refresh()
    call("b-kept")
    assert not [name for name, _ in read_samples() if name.startswith("routing_admin_agent_")]
    settings.METRICS_AGENTS = 1
    Agent.objects.filter(agent_id="c-kept").update(name="changed")
    snapshot.refresh()
    for name in ("a-made", "b-kept", "c-kept"):
        call(name)
    ends = {"ending": "answered"}
    assert sample_value("routing_admin_agent_requests_total", agent="b-kept", **ends) == 1
    assert sample_value("routing_admin_agent_requests_total", agent=OTHER, **ends) == 2
    remaining = {labels for name, labels in read_samples() if name == "routing_admin_agent_limit_remaining_ratio"}
    assert remaining == {frozenset({("agent", "b-kept"), ("limit", "requestsPerMinute")})}
    assert sample_value("routing_admin_agent_limit_remaining_ratio", agent="b-kept", limit="requestsPerMinute") == 1


def unconfigured_entry(name: str, route: str, model: str) -> Entry:
    """Return the log entry of a request for a route and a model that do not exist."""
    facts = RequestFacts(name, timezone.now(), "v1", task_type=route, usage=Usage(10, 1))
    return build_entry(facts, (Attempt("second", model, "ok", tries=(Try(0.0, 1.0, "ok", None),)),))
