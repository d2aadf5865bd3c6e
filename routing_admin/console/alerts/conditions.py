"""Detect problems from this process's state, record them as alerts, and send the alerts that are due.

The detection calls no provider, and no request waits for it.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from artifacts.storage.content import byte_store
from capabilities.core.services.agent_limits import Meter
from capabilities.core.translatable import translatable
from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.configuration.audit import list_runs
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.alerts import actions as rows
from routing_admin.console.alerts import sending
from routing_admin.console.alerts.actions import (
    RESOLVE_DELAY,
    ExistingSubjects,
    KnownAlerts,
    end_alerts,
    import_file_alerts,
    list_known_alerts,
    record_condition,
)
from routing_admin.console.alerts.queries import find_webhook, list_budget_uses
from routing_admin.console.alerts.sending import AlertLedger, send_due
from routing_admin.console.catalogue.queries import list_endings
from routing_admin.console.routes.queries import list_ready
from routing_admin.core.alerts.kinds import (
    KINDS,
    STATE,
    AlertKind,
    Condition,
    Stage,
    build_condition,
    is_overdue,
    spent_subject,
)
from routing_admin.core.alerts.webhook import Webhook
from routing_admin.core.configuration.specs import Configuration, RouteSpec
from routing_admin.core.fallback.cooldown import Cooldowns
from routing_admin.dispatch.send import process_run_context
from routing_admin.platform.databases.explaining import check_writable
from routing_admin.platform.databases.router import renew_connections
from routing_admin.platform.databases.unavailable import DatabaseFault, classify_error
from routing_admin.platform.redis.link import link
from routing_admin.platform.server.alert_file import alert_file
from routing_admin.platform.server.draining import process_marker
from routing_admin.platform.server.repeating_thread import RepeatingThread
from routing_admin.platform.server.store_monitor import low_disk_space
from routing_admin.request_log.call_outcomes import CallOutcomes, call_outcomes, evaluate
from routing_admin.request_log.journal import journal

MIB = 1024 * 1024
USED_UP_PERCENT = 100
ALL_ROUTES = "*"
"""Subject of the alert that is raised if no route at all has an available candidate."""
# Shorter outages, such as restarts of the database or Redis, are not reported.
OUTAGE_DELAY = timedelta(seconds=10)
BACKLOG = timedelta(minutes=1)
"""How long log entries may wait to be written, or the configuration may be unreadable, before an alert begins."""
HOST_NAME = socket.gethostname()

METERS: Mapping[Meter, str] = {
    Meter.BYTES_PER_DAY: translatable("Request bytes per day"),
    Meter.TOKENS_PER_DAY: translatable("Tokens per day"),
    Meter.TOKENS_PER_MONTH: translatable("Tokens per month"),
    Meter.MONEY_PER_DAY: translatable("Spend per day"),
    Meter.MONEY_PER_MONTH: translatable("Spend per month"),
}
"""Display names of the limits that count as budgets."""


def find_conditions(state: Snapshot) -> Iterator[Condition]:
    """Yield the conditions that hold now, except those that `find_outages` detects."""
    return chain(find_cooling(state), find_budgets(state), find_retired())


def find_outages(now: datetime) -> Iterator[Condition]:
    """Yield the conditions that this process can detect without querying the database."""
    yield from find_low_disk()
    store, redis = byte_store().outage, link().outage
    if store is not None and now - store.since >= OUTAGE_DELAY:
        yield build_condition(AlertKind.ARTIFACT_STORE, "artifact store")
    if redis is not None and now - redis.since >= OUTAGE_DELAY:
        yield build_condition(AlertKind.REDIS, "Redis", problem=redis.sentence)
    backlogs = {AlertKind.LOG_WAITING: journal().behind_since, AlertKind.CONFIGURATION_STALE: snapshot.unread_since()}
    for kind, since in backlogs.items():
        if since is not None and now - since >= BACKLOG:
            yield build_condition(kind, HOST_NAME, seconds=int((now - since).total_seconds()))
    if journal().disk_is_full:
        count = len(journal().waiting)
        yield build_condition(
            AlertKind.LOG_WAITING, f"{HOST_NAME} memory", Stage.IN_MEMORY, server=HOST_NAME, count=count
        )


def find_overdue(now: datetime) -> Iterator[Condition]:
    """Yield a condition for each regular job (backup or pruning) that last ran more than two usual intervals ago."""
    jobs = {AlertKind.BACKUP_OVERDUE: "installation.backup", AlertKind.PRUNE_OVERDUE: "installation.prune"}
    for kind, action in jobs.items():
        runs = list_runs(action)
        if is_overdue(runs, now):
            yield build_condition(kind, KINDS[kind].subject, day=f"{runs[0]:%Y-%m-%d}")


def find_cooling(state: Snapshot) -> Iterator[Condition]:
    """Yield a condition for each route whose candidates are all in cooldown.

    If that applies to every route, yield a single condition instead.
    """
    cooldowns = process_run_context().cooldowns
    routes = [route for route in state.configuration.routes if route.enabled and route.candidates]
    cooling = [route.task_type for route in routes if _is_cooling(state, route, cooldowns)]
    if len(cooling) > 1 and len(cooling) == len(routes):
        yield build_condition(AlertKind.ALL_COOLING, ALL_ROUTES, Stage.EVERY_PROVIDER)
        return
    for task_type in cooling:
        yield build_condition(AlertKind.ALL_COOLING, task_type)


def _is_cooling(state: Snapshot, route: RouteSpec, cooldowns: Cooldowns) -> bool:
    endpoints = (
        (candidate.provider, candidate.model or _default_model(state, candidate.provider))
        for candidate in route.candidates
    )
    # This check is cheap. Only routes with a candidate in cooldown need a full plan.
    if not any(cooldowns.look(*endpoint) for endpoint in endpoints):
        return False
    ready = list_ready(state, route)
    return bool(ready) and all(cooldowns.look(candidate.provider, candidate.model) for candidate in ready)


def _default_model(state: Snapshot, provider: str) -> str:
    spec = state.configuration.provider(provider)
    return spec.default_model if spec else ""


def find_budgets(state: Snapshot) -> Iterator[Condition]:
    """Yield a condition for each budget of which at least 80 % is used: `SPENT` if it is used up, else `WARNED`."""
    for use in list_budget_uses(state.configuration):
        subject, name, meter = f"{use.holder} {use.meter}", use.name, METERS[use.meter]
        if use.percent >= USED_UP_PERCENT:
            yield build_condition(AlertKind.BUDGET, spent_subject(subject), Stage.SPENT, name=name, meter=meter)
        else:
            yield build_condition(AlertKind.BUDGET, subject, Stage.WARNED, name=name, meter=meter, percent=use.percent)


def find_low_disk() -> Iterator[Condition]:
    free = low_disk_space()
    if free is not None:
        yield build_condition(AlertKind.DISK, "data directory", free=free // MIB)


def find_retired() -> Iterator[Condition]:
    for ending in list_endings():
        if ending.is_over:
            subject = f"{ending.end.provider}/{ending.end.model}"
            day = ending.end.retirement.day.isoformat()
            yield build_condition(AlertKind.RETIRED_MODEL, subject, lasts=STATE, day=day)


# Every few seconds, each process's alert watcher records conditions and sends the alerts that are due. It has two
# threads. One uses the database, whose statements may hang. The other detects hanging statements and then sends alerts
# about the outage without using the database.

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 5.0
# Interval at which the audit log is searched for the last runs of jobs. The log may be long, so the alert watcher does
# not search it in every round.
JOB_CHECK_INTERVAL = timedelta(minutes=10)

STAGES: Mapping[DatabaseFault | None, Stage] = {
    DatabaseFault.READ_ONLY: Stage.READ_ONLY,
    DatabaseFault.FORBIDDEN: Stage.FORBIDDEN,
    DatabaseFault.FULL: Stage.FULL,
    DatabaseFault.OUTDATED: Stage.OUTDATED,
}
"""Maps database faults to variants of the database alert; any other fault means that the database is unavailable."""


@dataclass(slots=True)
class AlertWatch:
    """Checks conditions and sends alerts in its own threads, so that a slow webhook or database delays nothing else.

    `querying_since` is the time at which the oldest unanswered database query began, or None while the database
    responds.
    """

    outcomes: CallOutcomes = field(default_factory=call_outcomes)
    querying_since: datetime | None = None
    _stage: Stage = Stage.USUAL
    _known: KnownAlerts = field(default_factory=dict)
    _webhook: Webhook | None = None
    _lost: int = 0
    _events: list[tuple[Condition, datetime]] = field(default_factory=list)
    _jobs_due: datetime | None = None
    _threads: tuple[RepeatingThread, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._threads = (
            RepeatingThread("alerts", INTERVAL_SECONDS, self.round, connections.close_all),
            RepeatingThread("alerts-offline", INTERVAL_SECONDS, self.offline_round, lambda: None),
        )

    def start(self) -> None:
        """Start the threads. Call this once per process."""
        process_marker().place()
        with alert_file().edit():  # Allocate the file while the disk still has space.
            pass
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        for thread in self._threads:
            thread.stop()
        process_marker().remove()

    def round(self) -> None:
        """Record conditions and send due alerts. During a database outage, `offline_round` replaces this."""
        try:
            with self._database_guard():
                renew_connections()
                check_writable()
                self.update_alerts(timezone.now())
                self._webhook = find_webhook()
            if self._webhook is not None:
                send_due(self._webhook, timezone.now(), guard=self._database_guard)
            with self._database_guard():
                self._known = list_known_alerts(timezone.now(), only_sent=self._webhook is not None)
        except (DatabaseError, InterfaceError) as error:  # Alerts cannot be stored now, whatever the cause.
            self._stage = STAGES.get(classify_error(error), Stage.USUAL)
            log.debug("the alerts wait for the database: %s", error)

    @contextmanager
    def _database_guard(self) -> Iterator[None]:
        self.querying_since = self.querying_since or timezone.now()
        try:
            yield
        # `querying_since` remains set, because the database has not responded. Other exceptions are not outages.
        except (DatabaseError, InterfaceError):
            raise
        except Exception:
            self.querying_since = None
            raise
        self.querying_since = None

    def offline_round(self) -> None:
        """During a database outage, detect conditions without the database.

        Store them in a file and send alerts about them.
        """
        now, since = timezone.now(), self.querying_since
        if since is None or now - since < OUTAGE_DELAY:
            return
        troubles = [build_condition(AlertKind.DATABASE, "database", self._stage, server=HOST_NAME), *find_outages(now)]
        self._note_events(sending, now)
        for condition in troubles:
            if not self._is_known(condition, since):
                sending.record_condition(condition, now)
        # During the outage, a stored webhook is known only if an earlier round has read it.
        webhook = settings.ALERT_WEBHOOK or self._webhook
        if webhook is not None:
            send_due(webhook, now, sending)

    def _is_known(self, condition: Condition, since: datetime) -> bool:
        # The chat still shows this alert as active, because the notice of its end is sent only after `RESOLVE_DELAY`
        # and never during an outage.
        key = (condition.kind.value, condition.subject)
        ended_at = self._known.get(key)
        return key in self._known and (ended_at is None or since - ended_at <= RESOLVE_DELAY)

    def update_alerts(self, now: datetime) -> None:
        """Begin, refresh and end alerts. On failure, keep the call outcomes for the next round and re-raise."""
        import_file_alerts()
        state, outcomes = snapshot.current(), self.outcomes.take()
        try:
            findings, existing = evaluate(outcomes), list_subjects(state)
            for condition, at in findings.conditions:
                # A call may end after its provider was deleted. Such a call must not cause an alert.
                if condition.subject in existing[condition.kind]:
                    record_condition(condition, at)
            self._note_events(rows, now)
            for condition in (*find_conditions(state), *find_outages(now), *self._find_overdue(now)):
                record_condition(condition, now)
            end_alerts(findings.resolved, existing, now)
        except Exception:
            # The next round evaluates these call outcomes again.
            self.outcomes.put_back(outcomes)
            raise

    def _note_events(self, ledger: AlertLedger, now: datetime) -> None:
        if crashes := process_marker().count_crashes():
            log.error("processes of this server that ended without shutting down: %s", crashes)
            self._events.append((build_condition(AlertKind.PROCESS_CRASHED, HOST_NAME), now))
        if journal().lost > self._lost:
            self._lost = journal().lost
            self._events.append((build_condition(AlertKind.LOG_LOST, HOST_NAME, count=self._lost), now))
        # An event is removed only after it has been recorded, so that a failure loses no event.
        for event in tuple(self._events):
            ledger.record_condition(*event)
            self._events.remove(event)

    def _find_overdue(self, now: datetime) -> Iterator[Condition]:
        if self._jobs_due is None or self._jobs_due <= now:
            yield from find_overdue(now)
            self._jobs_due = now + JOB_CHECK_INTERVAL


def list_subjects(state: Snapshot) -> ExistingSubjects:
    """Return the subjects that alerts about providers, keys and models may have: what is enabled or in use.

    Alerts about anything else must end.
    """
    providers = {provider.name for provider in state.configuration.providers if provider.enabled}
    keys = {f"{name} ({key.name})" for name, keys in state.provider_keys.items() for key in keys.pool}
    subjects = providers | keys
    return {
        AlertKind.KEY_REFUSED: subjects,
        AlertKind.BALANCE_GONE: subjects,
        AlertKind.RETIRED_MODEL: set(models_in_use(state.configuration)),
    }


def models_in_use(configuration: Configuration) -> Iterator[str]:
    """Yield the models of enabled routes and services, as `provider/model`."""
    defaults = {spec.name: spec.default_model for spec in configuration.providers if spec.enabled}
    for route in configuration.routes:
        if route.enabled:
            for candidate in route.candidates:
                yield f"{candidate.provider}/{candidate.model or defaults.get(candidate.provider, '')}"
    for service in configuration.services:
        if service.enabled:
            yield f"{service.provider}/{service.model}"


watch = owned(AlertWatch)
