"""The alert watcher detects conditions of each kind, and reports the beginning and end of each once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from capabilities.actors import SYSTEM, Actor
from capabilities.core.providers.catalogue import default_catalogue
from capabilities.core.services.agent_limits import Meter
from capabilities.errors import InvalidError
from capabilities.models import Provider
from capabilities.runtime import renew
from routing_admin.configuration import snapshot
from routing_admin.console.alerts.conditions import watch
from routing_admin.console.alerts.queries import count_open, list_alerts
from routing_admin.console.exchange.actions import import_configuration
from routing_admin.core.alerts.kinds import AlertKind
from routing_admin.core.alerts.webhook import parse_webhook
from routing_admin.dispatch.send import process_run_context
from routing_admin.models import Alert, Candidate, LimitWindow, TaskRoute
from routing_admin.platform.server import store_monitor
from routing_admin.request_log.call_outcomes import call_outcomes
from routing_admin.request_log.journal import journal
from tests.cast import create_key, limit_agent
from tests.engines.webhook import WebhookReceiver, running_receiver
from tests.gateway.plane import chat_body, post

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "logs"])

MODEL = "owl-1"
ANSWER = {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": {"content": "hi"}}]}
SUCCESS = (200, json.dumps(ANSWER).encode())


def error_reply(status: int, message: str = "no", code: str = "") -> tuple[int, bytes]:
    return status, json.dumps({"error": {"message": message, "code": code}}).encode()


@pytest.fixture
def provider(demo: None) -> Iterator[WebhookReceiver]:
    """A provider with scripted answers; it is the only candidate of its route."""
    call_outcomes().take()
    with running_receiver() as server:
        row = Provider.objects.create(
            name="night-owl",
            endpoint=f"{server.base}/v1/chat/completions",
            default_model=MODEL,
            protocol="openai",
            key_source="none",
        )
        route = TaskRoute.objects.create(task_type="night", position=99)
        Candidate.objects.create(route=route, provider=row, model=MODEL, position=1)
        snapshot.refresh()
        yield server


def send_requests(*replies: tuple[int, bytes], provider: WebhookReceiver) -> None:
    provider.replies[:] = replies
    post(create_key("text-agent"), chat_body("hello", model="task:night"))
    journal().flush()


def received_notices(receiver: WebhookReceiver) -> list[tuple[str, str, str]]:
    return [(message.body["event"], message.body["kind"], message.body["subject"]) for message in receiver.received]


@pytest.mark.parametrize(
    ("reply", "kind", "subject"),
    [
        (error_reply(401, "invalid api key"), "key_refused", "night-owl"),
        (error_reply(402, "Insufficient Balance"), "balance_gone", "night-owl"),
        (error_reply(429, "You exceeded your current quota", "insufficient_quota"), "balance_gone", "night-owl"),
        (error_reply(404, "no such model", "model_not_found"), "retired_model", f"night-owl/{MODEL}"),
    ],
)
def test_failed_call_raises_one_alert_that_ends_with_the_next_success(receiver, provider, reply, kind, subject):
    send_requests(*[reply] * 5, provider=provider)
    for _ in range(3):
        watch().round()
    assert received_notices(receiver).count(("begun", kind, subject)) == 1
    renew(process_run_context)  # The new run context has no cooldowns.
    send_requests(SUCCESS, provider=provider)
    watch().round()
    assert [alert.ended_at is not None for alert in list_alerts() if alert.kind == kind] == [True]


def test_unconfigured_model_named_by_a_caller_raises_no_alert(receiver, provider):
    provider.replies[:] = [error_reply(404, "no such model", "model_not_found")]
    post(create_key("text-agent"), chat_body("hello", model="night-owl/owl-xl"))
    journal().flush()
    watch().round()
    assert "retired_model" not in [kind for _, kind, _ in received_notices(receiver)]


def test_routes_without_available_candidates_are_reported_in_one_alert(receiver, provider):
    send_requests(error_reply(402, "Insufficient Balance"), provider=provider)
    watch().round()
    assert ("begun", "all_cooling", "night") in received_notices(receiver)
    TaskRoute.objects.exclude(task_type="night").delete()
    Candidate.objects.create(
        route=TaskRoute.objects.create(task_type="late", position=1),
        provider=Provider.objects.get(name="night-owl"),
        model=MODEL,
        position=1,
    )
    snapshot.refresh()
    watch().round()
    assert ("begun", "all_cooling", "*") in received_notices(receiver)
    assert ("begun", "all_cooling", "late") not in received_notices(receiver)


def set_used_amount(holder: str, meter: Meter, drawn: int) -> None:
    end = timezone.now() + timedelta(hours=1)
    window = {"holder": holder, "meter": meter, "window": "now"}
    LimitWindow.objects.update_or_create(**window, defaults={"drawn": drawn, "ends_at": end})


def test_budget_raises_an_alert_when_low_and_when_exhausted(receiver, demo):
    """A limit per minute does not count as a budget."""
    limits = {"tokensPerDay": 100, "requestsPerMinute": 1}
    limit_agent(**limits)
    key = create_key("vision-agent", terms={"limits": {"tokensPerMonth": 1000}})
    snapshot.refresh()
    for agent_tokens, key_tokens in ((85, 150), (100, 900)):
        set_used_amount("agent:text-agent", Meter.TOKENS_PER_DAY, agent_tokens)
        set_used_amount(f"key:{key[3:11]}", Meter.TOKENS_PER_MONTH, key_tokens)
        watch().round()
    agent, key_subject = "agent:text-agent tokensPerDay", f"key:{key[3:11]} tokensPerMonth"
    assert received_notices(receiver) == [
        ("begun", "budget", agent),
        ("begun", "budget", f"{agent} 100%"),
        ("begun", "budget", key_subject),
    ]
    assert "The agent text-agent has used 85% of its limit “Tokens per day”." in receiver.received[0].body["text"]


def test_exhausted_budget_has_only_one_open_alert(receiver, demo):
    """Once a budget is exhausted, the earlier warning is no longer shown, but it is not reported as resolved either."""
    limit_agent(tokensPerDay=100)
    snapshot.refresh()
    subject = "agent:text-agent tokensPerDay"
    for tokens in (90, 100):
        set_used_amount("agent:text-agent", Meter.TOKENS_PER_DAY, tokens)
        watch().round()
    Alert.objects.filter(subject=subject).update(expires_at=timezone.now() - timedelta(minutes=5))
    watch().round()
    assert [(alert.subject, alert.ended_at) for alert in list_alerts()] == [(f"{subject} 100%", None)]
    assert (count_open().by_kind[AlertKind.BUDGET], count_open().waiting) == (1, 1)
    assert Alert.objects.get(subject=subject).ended_at is None
    Alert.objects.all().delete()
    watch().round()
    assert [alert.subject for alert in Alert.objects.all()] == [f"{subject} 100%"]
    Alert.objects.update(expires_at=timezone.now() - timedelta(minutes=5))
    set_used_amount("agent:text-agent", Meter.TOKENS_PER_DAY, 90)
    watch().round()
    assert [alert.subject for alert in list_alerts() if alert.ended_at is None] == [subject]


def test_nearly_full_disk_is_reported(receiver, demo, monkeypatch):
    monkeypatch.setattr(store_monitor, "LOW_BYTES", 1 << 62)
    watch().round()
    assert received_notices(receiver) == [("begun", "disk", "data directory")]


def test_retired_model_used_by_a_route_is_reported(receiver, demo, monkeypatch):
    endpoint, model = "https://api.anthropic.com/v1", "claude-sonnet-4-5"
    end = default_catalogue().retirement_at("claude", endpoint, model)
    monkeypatch.setattr(timezone, "localdate", lambda: end.day + timedelta(days=1))
    row = Provider.objects.create(
        name="claude", endpoint=endpoint, default_model=model, protocol="anthropic", key_source="none"
    )
    route = TaskRoute.objects.create(task_type="pictures", position=99)
    Candidate.objects.create(route=route, provider=row, model=model, position=1)
    snapshot.refresh()
    watch().round()
    assert ("begun", "retired_model", f"claude/{model}") in received_notices(receiver)


def test_rejected_import_alert_ends_with_a_valid_import(receiver, demo, tmp_path):
    with pytest.raises(InvalidError):
        import_configuration(Actor("person", "ada"), [b'{"routing": {"planning": 7}}'])
    file = tmp_path / "llm-routing.json"
    file.write_text("{")
    with pytest.raises(CommandError):
        call_command("import_config", str(file))
    watch().round()
    assert sorted(kind for _, kind, _ in received_notices(receiver)) == ["configuration_rejected"] * 2
    assert ("begun", "configuration_rejected", "person ada") in received_notices(receiver)
    import_configuration(SYSTEM, [b'{"services": []}'])
    assert all(alert.ended_at for alert in list_alerts() if alert.kind is AlertKind.CONFIGURATION_REJECTED)


def test_alert_without_a_webhook_is_stored_and_sent_once_a_webhook_is_set(settings, demo, monkeypatch):
    settings.ALERT_WEBHOOK = None
    monkeypatch.setattr(store_monitor, "LOW_BYTES", 1 << 62)
    watch().round()
    (alert,) = list_alerts()
    assert (alert.sent_at, alert.tries, alert.error) == (None, 0, "")
    with running_receiver() as server:
        settings.ALERT_WEBHOOK = parse_webhook(server.base + "/hook")
        watch().round()
    assert len(server.received) == 1
