# ruff: noqa: N815 - JSON keys are camelCase
"""The administrators' API for alerts: the list, and a test of the webhook."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router
from pydantic import BaseModel

from routing_admin.api.calls import answer
from routing_admin.console.alerts.actions import record_test
from routing_admin.console.alerts.queries import AlertLine, list_alerts
from routing_admin.console.alerts.sending import send_test
from routing_admin.console.base.api import TAG, iso, script_actor

router = Router(tags=[TAG])


class AlertThing(BaseModel):
    """One alert; a time is null if it has not been reached."""

    kind: str
    severity: str
    subject: str
    message: str
    page: str
    since: str
    lastSeen: str
    times: int
    ended: str | None
    sent: str | None
    endSent: str | None
    error: str | None


class WebhookThing(BaseModel):
    """Where alerts are sent; the rest of the address is secret."""

    host: str
    shape: str


class AlertsOut(BaseModel):
    """Active alerts first, then resolved ones, newest first."""

    alerts: list[AlertThing]
    webhook: WebhookThing | None


class TestOut(BaseModel):
    """Whether the chat accepted the test, and if not, why."""

    arrived: bool
    error: str | None


def alert_out(line: AlertLine) -> AlertThing:
    return AlertThing(
        kind=line.kind.value,
        severity=line.row.severity.value,
        subject=line.subject,
        message=line.sentence,
        page=line.row.page,
        since=iso(line.first_seen_at),
        lastSeen=iso(line.last_seen_at),
        times=line.times,
        ended=iso(line.ended_at),
        sent=iso(line.sent_at),
        endSent=iso(line.end_sent_at),
        error=line.error or None,
    )


@router.get("/alerts", response=AlertsOut)
def admin_list_alerts(request: HttpRequest) -> HttpResponse:
    """List active and resolved alerts, and the host they are sent to."""
    webhook = settings.ALERT_WEBHOOK
    shown_webhook = WebhookThing(host=webhook.host, shape=webhook.shape.value) if webhook else None
    return answer(AlertsOut(alerts=[alert_out(line) for line in list_alerts()], webhook=shown_webhook))


@router.post("/alerts/test", response=TestOut)
def admin_test_alert(request: HttpRequest) -> HttpResponse:
    """Send a test to the webhook and wait for its answer, at most 15 seconds."""
    actor = script_actor(request)
    refusal = send_test(actor.name, timezone.now())
    record_test(actor, settings.ALERT_WEBHOOK, arrived=not refusal)
    return answer(TestOut(arrived=not refusal, error=str(refusal) or None))
