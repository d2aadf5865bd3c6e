"""The page of alerts, with a button that sends a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from capabilities.access import actor_of
from routing_admin.configuration import snapshot
from routing_admin.console.alerts.actions import record_test
from routing_admin.console.alerts.queries import AlertLine, list_alerts
from routing_admin.console.alerts.sending import send_test
from routing_admin.core.alerts.kinds import AlertKind
from routing_admin.core.alerts.webhook import ShapeName

SHAPES = {
    ShapeName.JSON: _("plain JSON"),
    ShapeName.WECOM: _("WeCom"),
    ShapeName.DINGTALK: _("DingTalk"),
    ShapeName.FEISHU: _("Feishu"),
    ShapeName.SLACK: "Slack",
}
"""Display names of the webhook's formats."""

PLACES: Mapping[AlertKind, tuple[str | Promise, str, str]] = {
    AlertKind.KEY_REFUSED: (_("Providers"), "providers", ""),
    AlertKind.BALANCE_GONE: (_("Providers"), "providers", ""),
    AlertKind.ALL_COOLING: (_("Dashboard"), "dashboard", ""),
    AlertKind.BUDGET: (_("Budgets"), "budgets", ""),
    AlertKind.DISK: (_("Settings"), "settings", "#retention"),
    AlertKind.RETIRED_MODEL: (_("Dashboard"), "dashboard", ""),
    AlertKind.CONFIGURATION_REJECTED: (_("Import, export"), "config", ""),
    AlertKind.DATABASE: (_("Dashboard"), "dashboard", ""),
    AlertKind.ARTIFACT_STORE: (_("Dashboard"), "dashboard", ""),
    AlertKind.REDIS: (_("Dashboard"), "dashboard", ""),
    AlertKind.LOG_WAITING: (_("Dashboard"), "dashboard", ""),
    AlertKind.LOG_LOST: (_("Requests"), "requests", ""),
    AlertKind.CONFIGURATION_STALE: (_("Dashboard"), "dashboard", ""),
    AlertKind.WEBHOOK_FAILING: (_("Delivery"), "alerts", "#webhook"),
    AlertKind.BACKUP_OVERDUE: (_("Settings"), "settings", ""),
    AlertKind.PRUNE_OVERDUE: (_("Settings"), "settings", "#retention"),
    AlertKind.PROCESS_CRASHED: (_("Requests"), "requests", ""),
}
"""The page that helps with each kind of alert: its title, its URL name and its anchor."""


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert and the page on which its cause can be fixed."""

    line: AlertLine

    @property
    def place(self) -> str:
        return str(PLACES[self.line.kind][0])

    @property
    def url(self) -> str:
        _name, page, part = PLACES[self.line.kind]
        # The subject of such an alert is a provider, which may have been deleted in the meantime.
        if page == "providers" and self.line.subject in snapshot.current().provider_keys:
            return reverse("provider", args=[self.line.subject])
        return reverse(page) + part


@require_GET
def alerts(request: HttpRequest) -> HttpResponse:
    return render(request, "alerts/alerts.html", page_context())


@require_POST
def alert_test(request: HttpRequest) -> HttpResponse:
    """Send a test and show whether it was accepted. This may take seconds."""
    actor = actor_of(request)
    refusal = send_test(actor.name, timezone.now())
    record_test(actor, settings.ALERT_WEBHOOK, arrived=not refusal)
    template = "alerts/webhook.html" if getattr(request, "htmx", None) else "alerts/alerts.html"
    context = {**page_context(), "is_tested": True, "refusal": refusal}
    return render(request, template, context)


def page_context() -> dict[str, Any]:
    lines, webhook = list_alerts(), settings.ALERT_WEBHOOK
    return {
        "lasting": [AlertRow(line) for line in lines if line.ended_at is None],
        "over": [AlertRow(line) for line in lines if line.ended_at is not None],
        "webhook": webhook,
        "shape": SHAPES[webhook.shape] if webhook else "",
    }
