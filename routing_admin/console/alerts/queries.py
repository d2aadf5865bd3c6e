"""Queries for alerts as the pages and the API list them, and for budgets whose usage is above the warning threshold."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from capabilities.core.services.agent_limits import RATES, AgentLimits, Meter, parse_limits
from capabilities.core.services.agents import LabelKind, parse_terms
from capabilities.core.services.limit_holders import (
    LimitHolder,
    agent_holder,
    key_holder,
    label_holder,
)
from capabilities.core.translatable import decode_text, translatable
from capabilities.models import AgentKey, StoredKey
from capabilities.secrets import KeyUnreadableError, open_key
from routing_admin.core.alerts.kinds import KINDS, AlertKind, KindRow, spent_subject
from routing_admin.core.alerts.webhook import Webhook, WebhookAddressError, parse_webhook
from routing_admin.core.configuration.specs import Configuration
from routing_admin.limits.headers import WARN_PERCENT, percentage
from routing_admin.limits.uses import find_uses
from routing_admin.models import Alert, Installation
from routing_admin.platform.server.alert_file import alert_file

log = logging.getLogger(__name__)

MAX_LINES = 200
"""Maximum number of alerts on the alerts page. Active alerts take precedence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLine:
    """An alert as the pages and the API show it.

    `error` says why the last attempt to send the alert failed, or is empty. `id` is None if the alert is not in the
    database.
    """

    kind: AlertKind
    row: KindRow
    subject: str
    sentence: str
    first_seen_at: datetime
    last_seen_at: datetime
    times: int
    ended_at: datetime | None
    sent_at: datetime | None
    end_sent_at: datetime | None
    next_try_at: datetime | None
    tries: int
    error: str
    id: int | None
    acknowledged_at: datetime | None
    acknowledged_by: str
    muted_until: datetime | None

    @property
    def is_muted(self) -> bool:
        return self.muted_until is not None and self.muted_until > timezone.now()

    @property
    def is_given_up(self) -> bool:
        return bool(self.error) and self.next_try_at is None


def list_alerts() -> list[AlertLine]:
    """Return active alerts (first those that are not in the database yet), then resolved alerts, newest first.

    The warning about a budget is omitted once the budget is used up. This takes two queries.
    """
    from_file = [build_line(row) for row in _list_file_alerts()]
    rows = Alert.objects.order_by("ended_at", "-first_seen_at", "-id")
    active = list(rows.filter(ended_at=None)[:MAX_LINES])
    superseded = _superseded((row.kind, row.subject) for row in active)
    lines = [build_line(row) for row in active if (row.kind, row.subject) not in superseded]
    resolved = rows.filter(ended_at__isnull=False).order_by("-ended_at", "-id")[: MAX_LINES - len(lines)]
    return [*from_file, *lines, *(build_line(row) for row in resolved)]


def _superseded(alerts: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    active = set(alerts)
    return {(kind, subject) for kind, subject in active if (kind, spent_subject(subject)) in active}


def _list_file_alerts() -> list[Alert]:
    # The file contains alerts that began while the database was unavailable or read-only.
    now = timezone.now()
    return [Alert(**asdict(alert)) for alert in alert_file().read().values() if alert.expires_at > now]


def build_line(row: Alert) -> AlertLine:
    kind = AlertKind(row.kind)
    return AlertLine(
        kind=kind,
        row=KINDS[kind],
        subject=row.subject,
        sentence=decode_text(row.sentence),
        first_seen_at=row.first_seen_at,
        last_seen_at=row.last_seen_at,
        times=row.times,
        ended_at=row.ended_at,
        sent_at=row.sent_at,
        end_sent_at=row.end_sent_at,
        next_try_at=row.next_try_at,
        tries=row.tries,
        error="" if row.error is None else decode_text(row.error),
        id=row.pk,
        acknowledged_at=row.acknowledged_at,
        acknowledged_by=row.acknowledged_by,
        muted_until=row.muted_until,
    )


@dataclass(frozen=True, slots=True)
class AlertCounts:
    """How many alerts of each kind are active, and how many of them are neither acknowledged nor muted (`waiting`)."""

    by_kind: Mapping[AlertKind, int]
    waiting: int


def count_open() -> AlertCounts:
    """Count the active alerts. This takes one query."""
    kept, now = [(row.kind, row.subject, None, None) for row in _list_file_alerts()], timezone.now()
    columns = ("kind", "subject", "acknowledged_at", "muted_until")
    active = [*Alert.objects.filter(ended_at=None).order_by().values_list(*columns), *kept]
    superseded = _superseded(row[:2] for row in active)
    found = [row for row in active if row[:2] not in superseded]
    counts = Counter(row[0] for row in found)
    waiting = sum(acknowledged is None and (muted is None or muted <= now) for *_, acknowledged, muted in found)
    return AlertCounts({kind: counts[kind.value] for kind in AlertKind}, waiting)


def find_webhook() -> Webhook | None:
    """Return the webhook from the environment, else the stored one.

    Return None if there is none or it is unreadable.
    """
    if settings.ALERT_WEBHOOK is not None:
        return settings.ALERT_WEBHOOK
    try:
        return find_stored_webhook()
    except (KeyUnreadableError, WebhookAddressError) as problem:
        _warn_once(str(problem))
        return None


@cache
def _warn_once(problem: str) -> None:
    # The alert watcher calls this every few seconds. Thanks to the cache, each problem is logged only once.
    log.warning("the stored webhook of alerts cannot be used, so none is sent: %s", problem)


def find_stored_webhook() -> Webhook | None:
    """Return the stored webhook. Raise `KeyUnreadableError` if it cannot be decrypted."""
    stored = StoredKey.objects.filter(pk__in=Installation.objects.values("alert_webhook")).first()
    return parse_webhook(open_key(stored, stored.origin)) if stored else None


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """How much of a limit is used, in percent.

    `name` is the display name of the agent, key, team or project that the limit applies to.
    """

    holder: str
    name: str
    meter: Meter
    percent: int


def list_budget_uses(configuration: Configuration) -> list[BudgetUse]:
    """Return the limits of agents, keys, teams and projects whose usage has reached the warning threshold."""
    holders = [*_configured_holders(configuration), *_key_holders()]
    if not holders:
        return []
    uses_by_limit = find_uses(holder.id for holder, _ in holders)
    uses = [
        BudgetUse(holder.id, name, meter, percentage(uses_by_limit.get((holder.id, meter), 0), limit))
        for holder, name in holders
        for meter, limit in holder.limits.maximums.items()
        # Rate limits recover by themselves, so they are not budgets.
        if meter not in RATES
    ]
    return [use for use in uses if use.percent >= WARN_PERCENT]


NamedHolder = tuple[LimitHolder, str]


def _configured_holders(configuration: Configuration) -> Iterator[NamedHolder]:
    for agent in configuration.agents:
        if holder := agent_holder(agent.id, parse_limits(agent.limits)):
            yield holder, translatable("The agent %(name)s", name=agent.id)
    for label, limits in configuration.limits_by_label.items():
        yield from _label_holder(label, limits)


def _label_holder(label: str, limits: AgentLimits | None) -> Iterator[NamedHolder]:
    kind, _, name = label.partition(":")
    # A limit of kind `user` applies to each end user of an agent, so it has no single count.
    if kind != LabelKind.USER and (holder := label_holder(LabelKind(kind), name, limits)):
        yield holder, holder.title


def _key_holders() -> Iterator[NamedHolder]:
    alive = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=timezone.now()))
    for row in AgentKey.objects.filter(alive, terms__has_key="limits"):
        if holder := key_holder(row.public_id, parse_terms(row.terms).limits):
            yield holder, holder.title
