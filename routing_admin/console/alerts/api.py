# ruff: noqa: N815 - JSON keys are camelCase
"""Alerts: what lasts and what is over, and a test to the webhook."""

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
    """One alert; null is a time not reached yet."""

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
    """Where alerts are sent, as far as it is shown."""

    host: str
    shape: str


class AlertsOut(BaseModel):
    """Active ones first, then the newest."""

    alerts: list[AlertThing]
    webhook: WebhookThing | None


class TestOut(BaseModel):
    """Whether the chat accepted it, and why not."""

    arrived: bool
    error: str | None


def alert_out(line: AlertLine) -> AlertThing:
    """An alert, as the page shows one."""
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
    """Active and resolved alerts, and the host they are sent to."""
    webhook = settings.ALERT_WEBHOOK
    shown = WebhookThing(host=webhook.host, shape=webhook.shape.value) if webhook else None
    return answer(AlertsOut(alerts=[alert_out(line) for line in list_alerts()], webhook=shown))


@router.post("/alerts/test", response=TestOut)
def admin_test_alert(request: HttpRequest) -> HttpResponse:
    """Sends a test to the webhook, and waits for its answer for 15 seconds at most."""
    actor = script_actor(request)
    refusal = send_test(actor.name, timezone.now())
    record_test(actor, settings.ALERT_WEBHOOK, arrived=not refusal)
    return answer(TestOut(arrived=not refusal, error=str(refusal) or None))
