"""The page of alerts, with actions for acknowledging and muting them, and the webhook's form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from capabilities.access import request_actor
from capabilities.core.services.limit_holders import agent_holder_id, key_holder_id
from capabilities.errors import InvalidError
from capabilities.secrets import KeyUnreadableError
from capabilities.sentences import translate_refusal
from routing_admin.configuration import snapshot
from routing_admin.console.alerts.actions import MUTE_HOURS, acknowledge, mute, record_test, save_webhook
from routing_admin.console.alerts.queries import AlertLine, find_stored_webhook, find_webhook, list_alerts
from routing_admin.console.alerts.sending import send_test
from routing_admin.console.base.page_responses import add_toast
from routing_admin.console.docs.rules import document_url
from routing_admin.core.alerts.kinds import KINDS, AlertKind, KindRow, Severity
from routing_admin.core.alerts.webhook import ShapeName, WebhookAddressError

SHAPE_LABELS = {
    ShapeName.JSON: _("plain JSON"),
    ShapeName.WECOM: _("WeCom"),
    ShapeName.DINGTALK: _("DingTalk"),
    ShapeName.FEISHU: _("Feishu"),
    ShapeName.SLACK: "Slack",
}
"""Display names of the webhook formats."""

HELP_PAGES: Mapping[AlertKind, tuple[str | Promise, str, str]] = {
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
"""Maps each kind of alert to the page on which its cause can be fixed: title, URL name and anchor."""


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert, and the page on which its cause can be fixed."""

    line: AlertLine

    @property
    def is_quiet(self) -> bool:
        """Return whether the alert is acknowledged or muted."""
        return self.line.acknowledged_at is not None or self.line.is_muted

    @property
    def place(self) -> str:
        return str(_("Agents and keys") if self._is_of_agent else HELP_PAGES[self.line.kind][0])

    @property
    def url(self) -> str:
        _name, page, part = HELP_PAGES[self.line.kind]
        # The provider may have been deleted after the alert began.
        if page == "providers" and self.line.subject in snapshot.current().provider_keys:
            return reverse("provider", args=[self.line.subject])
        if self._is_of_agent:
            holder = self.line.subject.removesuffix(" 100%").rpartition(" ")[0]
            names = (agent.id for agent in snapshot.current().configuration.agents)
            found = next((name for name in names if agent_holder_id(name) == holder), "")
            return reverse("agent", args=[found]) if found else reverse("agents")
        return reverse(page) + part

    @property
    def _is_of_agent(self) -> bool:
        return self.line.kind is AlertKind.BUDGET and self.line.subject.startswith(
            (agent_holder_id(""), key_holder_id(""))
        )


MAX_SHOWN = 5
"""Maximum number of alerts of one kind that the page shows without a click."""


@dataclass(frozen=True, slots=True)
class AlertGroup:
    """The active alerts of one kind. Those that are neither acknowledged nor muted are first."""

    kind: AlertKind
    alerts: Sequence[AlertRow]

    @property
    def row(self) -> KindRow:
        return KINDS[self.kind]

    @property
    def document_url(self) -> str:
        return document_url(self.row.page)

    @property
    def first(self) -> Sequence[AlertRow]:
        return self.alerts[:MAX_SHOWN]

    @property
    def others(self) -> Sequence[AlertRow]:
        return self.alerts[MAX_SHOWN:]

    @property
    def waiting(self) -> int:
        return sum(not alert.is_quiet for alert in self.alerts)


def group_alerts(alerts: Iterable[AlertRow]) -> list[AlertGroup]:
    """Group alerts by kind.

    Groups with alerts that are neither acknowledged nor muted are first, then critical kinds, then kinds with many
    alerts.
    """
    by_kind: dict[AlertKind, list[AlertRow]] = {}
    for alert in alerts:
        by_kind.setdefault(alert.line.kind, []).append(alert)
    groups = [AlertGroup(kind, sorted(rows, key=lambda row: row.is_quiet)) for kind, rows in by_kind.items()]
    return sorted(
        groups,
        key=lambda group: (not group.waiting, group.row.severity is not Severity.CRITICAL, -len(group.alerts)),
    )


@require_GET
def alerts(request: HttpRequest) -> HttpResponse:
    return render(request, "alerts/alerts.html", page_context())


@require_POST
def alert_acknowledge(request: HttpRequest, number: int) -> HttpResponse:
    acknowledge(request_actor(request), number, on="withdraw" not in request.POST)
    return redirect("alerts")


@require_POST
def alert_mute(request: HttpRequest, number: int) -> HttpResponse:
    """Mute an alert for one of `MUTE_HOURS`. Any other posted value ends the mute."""
    hours = next((hours for hours in MUTE_HOURS if str(hours) == request.POST.get("hours")), 0)
    mute(request_actor(request), number, timezone.now() + timedelta(hours=hours) if hours else None)
    return redirect("alerts")


@require_POST
def alert_webhook(request: HttpRequest) -> HttpResponse:
    """Store the webhook's URL, or delete it if `delete` is posted."""
    address = "" if "delete" in request.POST else request.POST.get("address", "").strip()
    if not address and "delete" not in request.POST:
        return _show_webhook(request, 422, address_problem=_("Enter an address, such as https://host/path."))
    try:
        save_webhook(request_actor(request), address)
    except InvalidError as refusal:
        return _show_webhook(request, 422, address_problem=translate_refusal(refusal))
    add_toast(request, gettext("Webhook saved. Test it.") if address else gettext("Webhook deleted"))
    return _show_webhook(request) if getattr(request, "htmx", None) else redirect(reverse("alerts") + "#webhook")


@require_POST
def alert_test(request: HttpRequest) -> HttpResponse:
    """Send a test notice and show whether it was accepted. This may take seconds."""
    actor = request_actor(request)
    refusal = send_test(actor.name, timezone.now())
    record_test(actor, find_webhook(), arrived=not refusal)
    return _show_webhook(request, is_tested=True, refusal=refusal)


def _show_webhook(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    if getattr(request, "htmx", None):
        return render(request, "alerts/webhook.html", {**webhook_context(), **more}, status=status)
    return render(request, "alerts/alerts.html", {**page_context(), **more}, status=status)


def page_context() -> dict[str, Any]:
    rows = [AlertRow(line) for line in list_alerts()]
    active = [row for row in rows if row.line.ended_at is None]
    return {
        "active": active,
        "quiet": sum(row.is_quiet for row in active),
        "groups": group_alerts(active),
        "over": [row for row in rows if row.line.ended_at is not None],
        "mute_choices": [(hours, describe_hours(hours)) for hours in MUTE_HOURS],
        **webhook_context(),
    }


def describe_hours(hours: int) -> str:
    if hours % 24:
        return ngettext("%(number)s hour", "%(number)s hours", hours) % {"number": hours}
    return ngettext("%(number)s day", "%(number)s days", hours // 24) % {"number": hours // 24}


def webhook_context() -> dict[str, Any]:
    """Return template context: the webhook in use, and whether the stored webhook cannot be decrypted."""
    is_unreadable = False
    try:
        webhook = settings.ALERT_WEBHOOK or find_stored_webhook()
    except (KeyUnreadableError, WebhookAddressError):
        webhook, is_unreadable = None, True
    return {
        "webhook": webhook,
        "shape": SHAPE_LABELS[webhook.shape] if webhook else "",
        "is_from_environment": settings.ALERT_WEBHOOK is not None,
        "is_unreadable": is_unreadable,
    }
