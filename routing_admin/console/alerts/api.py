# ruff: noqa: N815 - JSON keys are camelCase
"""Administrators' API for alerts: list, acknowledge and mute alerts, and set and test the webhook."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router
from pydantic import AwareDatetime, BaseModel, Field

from routing_admin.api.calls import answer, read_as, takes
from routing_admin.api.errors import Body
from routing_admin.console.alerts.actions import acknowledge, mute, record_test, save_webhook
from routing_admin.console.alerts.queries import AlertLine, build_line, find_webhook, list_alerts
from routing_admin.console.alerts.sending import send_test
from routing_admin.console.base.api import TAG, iso, script_actor

router = Router(tags=[TAG])


class AlertThing(BaseModel):
    """One alert. Times of events that have not occurred are null; `id` is null if the alert is not stored."""

    id: int | None
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
    acknowledged: str | None
    acknowledgedBy: str | None
    mutedUntil: str | None


class WebhookThing(BaseModel):
    """Where alerts are sent. The address is secret except for its host."""

    host: str
    shape: str


class AlertsOut(BaseModel):
    """All listed alerts: active ones first, then resolved ones, newest first."""

    alerts: list[AlertThing]
    webhook: WebhookThing | None


class AlertOut(BaseModel):
    """One alert in its current state."""

    alert: AlertThing


class WebhookOut(BaseModel):
    """Where alerts are sent now; null if nowhere."""

    webhook: WebhookThing | None


class AcknowledgeIn(Body):
    """Whether to mark the alert as acknowledged."""

    acknowledged: bool = True


class MuteIn(Body):
    """The time until which the alert is muted, with its time zone; null unmutes the alert."""

    # JSON has no type for times. Without this, strict validation would reject a time in a string.
    until: Annotated[AwareDatetime, Field(strict=False)] | None


class WebhookIn(Body):
    """The webhook's address with its options after the `#`, as in `ROUTING_ADMIN_ALERT_WEBHOOK`; null deletes it."""

    address: str | None


class TestOut(BaseModel):
    """Whether the chat service accepted the test notice and, if not, why."""

    arrived: bool
    error: str | None


def alert_out(line: AlertLine) -> AlertThing:
    return AlertThing(
        id=line.id,
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
        acknowledged=iso(line.acknowledged_at),
        acknowledgedBy=line.acknowledged_by or None,
        mutedUntil=iso(line.muted_until),
    )


def webhook_out() -> WebhookThing | None:
    webhook = find_webhook()
    return WebhookThing(host=webhook.host, shape=webhook.shape.value) if webhook else None


@router.get("/alerts", response=AlertsOut)
def admin_list_alerts(request: HttpRequest) -> HttpResponse:
    """List active and resolved alerts, and the host they are sent to."""
    return answer(AlertsOut(alerts=[alert_out(line) for line in list_alerts()], webhook=webhook_out()))


@router.post("/alerts/{number}/acknowledge", response=AlertOut, openapi_extra=takes(AcknowledgeIn))
def admin_acknowledge_alert(request: HttpRequest, number: int) -> HttpResponse:
    """Acknowledge an active alert, or withdraw the acknowledgement."""
    body = read_as(request, AcknowledgeIn)
    return answer(
        AlertOut(alert=alert_out(build_line(acknowledge(script_actor(request), number, on=body.acknowledged))))
    )


@router.post("/alerts/{number}/mute", response=AlertOut, openapi_extra=takes(MuteIn))
def admin_mute_alert(request: HttpRequest, number: int) -> HttpResponse:
    """Suppress notices about an active alert until the given time; null ends the suppression."""
    body = read_as(request, MuteIn)
    return answer(AlertOut(alert=alert_out(build_line(mute(script_actor(request), number, body.until)))))


@router.put("/alerts/webhook", response=WebhookOut, openapi_extra=takes(WebhookIn))
def admin_put_webhook(request: HttpRequest) -> HttpResponse:
    """Store the URL that alerts are sent to, or delete it; a URL in the environment takes precedence."""
    save_webhook(script_actor(request), read_as(request, WebhookIn).address or "")
    return answer(WebhookOut(webhook=webhook_out()))


@router.post("/alerts/test", response=TestOut)
def admin_test_alert(request: HttpRequest) -> HttpResponse:
    """Send a test notice to the webhook and wait at most 15 seconds for its response."""
    actor = script_actor(request)
    refusal = send_test(actor.name, timezone.now())
    record_test(actor, find_webhook(), arrived=not refusal)
    return answer(TestOut(arrived=not refusal, error=str(refusal) or None))
