"""Create the large installation: simulate two months, then set everything that depends on the present."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from unittest import mock

from django.core.management import call_command
from django.db.models import Sum
from django.utils import timezone

from artifacts.models import Artifact
from capabilities.actors import AuditedAction
from capabilities.core.prices import NANO
from capabilities.core.services.agent_limits import MONEY, RATES, AgentLimits, Meter, parse_limits
from capabilities.core.services.agents import LabelKind
from capabilities.core.services.limit_holders import agent_holder_id, label_holder_id
from capabilities.models import Agent, AgentKey, Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.configuration.history import newest_configuration
from routing_admin.configuration.revisions import ledger
from routing_admin.console.alerts.actions import claim_next, record_failed, record_sent
from routing_admin.console.alerts.conditions import AlertWatch
from routing_admin.console.demo import load as demo
from routing_admin.console.routes.queries import list_statuses, list_unable
from routing_admin.console.usage.actions import save_budget
from routing_admin.core.limits.shares import PERIODS, Order, window_at
from routing_admin.limits.rows import RowLedger
from routing_admin.models import Alert, AttemptLog, AuditEvent, FireDrill, RequestLog, Revision, UsageSum
from routing_admin.request_log.summed_times import HOURS_UP_TO
from routing_admin.request_log.usage_rollups import FOLD_DELAY, fold, list_starts
from routing_admin.request_log.usage_sums import LENGTHS, day_start
from tests.ui.large.artifacts import Library
from tests.ui.large.configuration import Planned
from tests.ui.large.people import START_DAYS, Event, History, person
from tests.ui.large.provider_behavior import HOUR, ProviderBehavior
from tests.ui.large.requests import DAYS, Traffic

HOURS_READ = 2 * HOURS_UP_TO
"""Hourly roll-ups are made up to this age: twice the period that a page shows, since pages compare two periods."""
PAUSE = timedelta(minutes=30)
"""Changes that follow each other within this time are applied in one transaction."""


@dataclass
class PastClock:
    """The simulated clock that replaces Django's `timezone.now`."""

    moment: datetime

    def __call__(self) -> datetime:
        return self.moment

    @contextmanager
    def patched(self) -> Iterator[None]:
        with mock.patch("django.utils.timezone.now", self):
            yield


def make_installation(planned: Planned, now: datetime) -> None:
    """Fill an empty database after its migration. The simulated time ends at `now`."""
    clock = PastClock(now - timedelta(days=START_DAYS))
    with _without_log_output(), clock.patched():
        bootstrap()
        history, library = History(planned, now), Library(planned, now)
        behavior = ProviderBehavior(planned, now.timestamp())
        events = [*history.events(), *library.events(), *_alert_rounds(behavior, now)]
        events.sort(key=lambda event: event.at)
        begin = now - timedelta(days=DAYS)
        _run_events([event for event in events if event.at < begin], clock)
        traffic = Traffic(planned, now, behavior, history, library)
        for session in group_changes(event for event in events if event.at >= begin):
            traffic.write_until(session[0].at)
            _run_events(session, clock)
            traffic.renew()
        traffic.write_until(now)
        clock.moment = now
        save_budgets_with_usage()
        traffic.write_wide(now)
        traffic.note_evidence()
        AlertWatch().update_alerts(now)
        if planned.size.roll_ups:
            make_roll_ups(now)


def group_changes(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Yield the events in order. Changes that follow each other within `PAUSE` are in one group."""
    session: list[Event] = []
    for event in events:
        follows = session and session[-1].revises and event.revises and event.at - session[-1].at < PAUSE
        if session and not follows:
            yield session
            session = []
        session.append(event)
    if session:
        yield session


def _run_events(events: Sequence[Event], clock: PastClock) -> None:
    # In one transaction, the new configuration is read only once for all events.
    with ledger.exclusive() if len(events) > 1 else nullcontext():
        for event in events:
            clock.moment = event.at
            event.run()


def make_roll_ups(now: datetime) -> None:
    """Create all daily roll-ups and the recent hourly ones, because pages read these.

    The installation's server creates the others.
    """
    for span, length in LENGTHS.items():
        oldest = now - HOURS_READ if span == UsageSum.HOUR else datetime.min.replace(tzinfo=UTC)
        for start in list_starts(span, datetime.min):
            if start >= oldest and start + length + FOLD_DELAY <= now:
                fold(span, start)


@contextmanager
def _without_log_output() -> Iterator[None]:
    # Keep the simulated failures out of this process's log.
    log = logging.getLogger("routing_admin")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def bootstrap() -> None:
    """Set up the installation as on its first start, with the demo."""
    with open(os.devnull, "w") as null_device:
        call_command("bootstrap", "--no-demo", stdout=null_device)
    demo.load()
    demo.load_files()


def _alert_rounds(behavior: ProviderBehavior, now: datetime) -> Iterator[Event]:
    """Yield checks of alerts: one per day, and some during and after each incident in which a key was rejected.

    A real server checks alerts every few seconds.
    """
    for day in range(12, 0, -1):
        yield Event(now - timedelta(days=day), partial(_alert_round, day > 1))
    for incident in behavior.key_incidents():
        for moment in ((incident.begins + incident.ends) / 2, incident.ends + 2 * HOUR):
            if moment < now.timestamp():
                yield Event(datetime.fromtimestamp(moment, UTC), partial(_alert_round, True))


def _alert_round(is_sent: bool) -> None:
    now = timezone.now()
    AlertWatch().update_alerts(now)
    # Deliver the older alerts, some of them unsuccessfully. Today's alerts are still waiting.
    while is_sent and (claimed := claim_next(now)) is not None:
        if claimed.id % 5 == 3:
            record_failed(claimed, "Could not reach chat.example.net: it did not answer within 10 seconds.")
        else:
            record_sent(claimed, now)


# Budgets: the limits are chosen so that the logged usage nearly or completely exhausts some of them.


@dataclass(frozen=True)
class BudgetPlan:
    """A team's or project's budget, how much of it is used up, and further limits (`extra`)."""

    kind: LabelKind
    name: str
    currency: str
    used: float
    extra: Mapping[str, object] = field(default_factory=dict)


SPENT = 1.0
BUDGETS = (
    BudgetPlan(LabelKind.TEAM, "billing", "USD", 0.43),
    BudgetPlan(LabelKind.TEAM, "search", "CNY", 0.94, {"requestsPerMinute": 600}),
    BudgetPlan(LabelKind.TEAM, "support", "USD", 1.0, {"unpriced": "count", "unpricedPrice": "2"}),
    BudgetPlan(LabelKind.PROJECT, "apollo", "CNY", 0.61),
    BudgetPlan(LabelKind.PROJECT, "everest", "USD", 0.91),
    BudgetPlan(LabelKind.PROJECT, "falcon", "USD", 0.18, {"tokensPerDay": 9_000_000}),
)
COLUMNS = {LabelKind.TEAM: "team", LabelKind.PROJECT: "project"}


def save_budgets_with_usage() -> None:
    """Save the budgets. For each limit, record the usage of the logged requests in its period."""
    now, orders = timezone.now(), list[Order]()
    with ledger.change(person("tomasz.nowak"), AuditedAction("budget.save", message="Budgets of teams and projects")):
        for plan in BUDGETS:
            labels = {COLUMNS[plan.kind]: plan.name}
            # Early in a month, there may be no usage yet.
            nanos = max(_spent_nanos(labels, plan.currency, "month"), 8 * NANO)
            limit = Decimal(int(nanos / plan.used / NANO * 100)) / 100
            limits = {"moneyPerMonth": f"{limit}", "currency": plan.currency, **plan.extra}
            save_budget(person("tomasz.nowak"), plan.kind, plan.name, limits)
            stored = parse_limits(limits)
            assert stored is not None
            used = {Meter.MONEY_PER_MONTH: nanos if plan.used < SPENT else stored.maximums[Meter.MONEY_PER_MONTH]}
            orders += _usage_orders(label_holder_id(plan.kind, plan.name), stored, used, labels, now)
    for agent in newest_configuration().agents:
        agent_limits = parse_limits(agent.limits)
        if agent_limits is not None:
            orders += _usage_orders(agent_holder_id(agent.id), agent_limits, {}, {"agent": agent.id}, now)
    RowLedger().exchange("large", orders, now)
    RowLedger().leave("large")


def _usage_orders(
    holder: str, limits: AgentLimits, used: Mapping[Meter, int], labels: Mapping[str, str], now: datetime
) -> Iterator[Order]:
    for meter, limit in limits.maximums.items():
        if meter in RATES or meter is Meter.BYTES_PER_DAY:
            continue
        period = PERIODS[meter]
        if meter in used:
            committed = used[meter]
        elif meter in MONEY:
            committed = _spent_nanos(labels, limits.currency, period.value)
        else:
            committed = _used_tokens(labels, period.value)
        window = window_at(period, now, timezone.get_default_timezone())
        yield Order(holder, meter, window, limit, committed=min(committed, limit))


def _daily_sums(labels: Mapping[str, str], period: str) -> object:
    day = day_start(timezone.now())
    start = day.replace(day=1) if period == "month" else day
    return UsageSum.objects.filter(span=UsageSum.DAY, start__gte=start, **labels).order_by()


def _spent_nanos(labels: Mapping[str, str], currency: str, period: str) -> int:
    rows = _daily_sums(labels, period).values_list("currency").annotate(Sum("cost_nanos"))
    exchange = snapshot.current().exchange
    return sum(exchange.convert(int(nanos), paid, currency) or 0 for paid, nanos in rows if paid)


def _used_tokens(labels: Mapping[str, str], period: str) -> int:
    sums = _daily_sums(labels, period).aggregate(
        read=Sum("prompt_tokens", default=0), written=Sum("completion_tokens", default=0)
    )
    return int(sums["read"] + sums["written"])


# Counts of the created objects.


def count_all(planned: Planned) -> dict[str, Mapping[str, int]]:
    """Return the number of objects by kind and state."""
    configuration, now = newest_configuration(), timezone.now()
    states = Counter(state.value for state in planned.providers.states.values())
    unable = list_unable(list_statuses(snapshot.current()))
    keys = AgentKey.objects
    return {
        "providers": {
            "all": Provider.objects.count(),
            "disabled": Provider.objects.filter(enabled=False).count(),
            **states,
        },
        "services": {
            "all": len(configuration.services),
            "disabled": Service.objects.filter(enabled=False).count(),
            "own price": sum(bool(service.price) for service in configuration.services),
            "overridden": Service.objects.filter(capabilities__source="declared", capabilities__name="vision").count(),
        },
        "routes": {
            "all": len(configuration.routes),
            "cannot answer": len(unable),
            "cannot read": len(set(planned.unable) - set(unable)),
            "disabled": sum(not route.enabled for route in configuration.routes),
            **Counter(f"chain of {len(route.candidates)}" for route in configuration.routes),
        },
        "aliases": {"all": len(configuration.aliases)},
        "agents": {
            "all": Agent.objects.count(),
            "made at run time": Agent.objects.filter(origin="runtime").count(),
            "without a key": Agent.objects.filter(keys=None).count(),
            "with limits": sum(bool(agent.limits) for agent in configuration.agents),
            "own service": sum(bool(agent.service_id) for agent in configuration.agents),
        },
        "keys": {
            "all": keys.count(),
            "revoked": keys.exclude(revoked_at=None).count(),
            "expired": keys.filter(expires_at__lte=now).count(),
            "expiring": keys.filter(expires_at__gt=now).count(),
        },
        "history": {
            "revisions": Revision.objects.count(),
            "undone or restored": Revision.objects.exclude(restores=None).count(),
            "people": Revision.objects.values("actor").distinct().count(),
            "audit entries": AuditEvent.objects.count(),
            "fire drills": FireDrill.objects.count(),
        },
        "alerts": {
            "open": Alert.objects.filter(ended_at=None).count(),
            "open, sent": Alert.objects.filter(ended_at=None).exclude(sent_at=None).count(),
            "over": Alert.objects.exclude(ended_at=None).count(),
        },
        "artifacts": {
            "all": Artifact.objects.count(),
            "expired": Artifact.objects.filter(expires_at__lte=now).count(),
            "deleted": Artifact.objects.exclude(deleted_at=None).count(),
            **_count_by(Artifact.objects, "kind"),
        },
        "requests": {"all": RequestLog.objects.count(), **_count_by(RequestLog.objects, "ending")},
        "outcomes": _count_by(RequestLog.objects, "outcome"),
        "attempts": {"all": AttemptLog.objects.count(), **_count_by(AttemptLog.objects, "outcome")},
        "surfaces": _count_by(RequestLog.objects, "surface"),
    }


def _count_by(objects: object, column: str) -> dict[str, int]:
    return Counter(objects.order_by().values_list(column, flat=True))
