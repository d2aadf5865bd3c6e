"""What is wrong at this moment, by what the process knows already: nothing is called, and no call waits for it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain

from artifacts.storage.content import byte_store
from capabilities.core.services.agent_limits import Meter
from capabilities.core.worded import worded
from routing_admin.configuration import snapshot
from routing_admin.configuration.audit import list_runs
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.alerts.queries import list_budget_uses
from routing_admin.console.catalogue.endings import list_endings
from routing_admin.console.routes.standings import list_ready
from routing_admin.core.alerts.kinds import KINDS, STATE, AlertKind, Condition, Stage, trouble_of
from routing_admin.core.alerts.overdue import is_overdue
from routing_admin.core.configuration.specs import RouteSpec
from routing_admin.core.fallback.cooldown import Cooldowns
from routing_admin.dispatch.send import process_run_context
from routing_admin.platform.redis.link import link
from routing_admin.platform.server.disk_space import low_disk_space
from routing_admin.request_log.journal import journal

MIB = 1024 * 1024
SPENT = 100
EVERYWHERE = "*"
"""The subject where no route at all has anybody left."""
SETTLED = timedelta(seconds=10)
"""How long an outage lasts before it is told: a restart of the database or of Redis is none."""
BACKLOG = timedelta(minutes=1)
"""How long entries wait, or the configuration cannot be read, before that is told by itself."""
SERVER = socket.gethostname()

METERS: Mapping[Meter, str] = {
    Meter.BYTES_PER_DAY: worded("Request bytes per day"),
    Meter.TOKENS_PER_DAY: worded("Tokens per day"),
    Meter.TOKENS_PER_MONTH: worded("Tokens per month"),
    Meter.MONEY_PER_DAY: worded("Spend per day"),
    Meter.MONEY_PER_MONTH: worded("Spend per month"),
}
"""What the limits are called that are budgets."""


def find_troubles(state: Snapshot) -> Iterator[Condition]:
    """Every trouble that is a state of this moment, but for those of `find_outages`."""
    return chain(find_cooling(state), find_budgets(state), find_retired())


def find_outages(now: datetime) -> Iterator[Condition]:
    """What this process cannot reach or do, by what it remembers: the database is not asked."""
    yield from find_low_disk()
    store, redis = byte_store().outage, link().outage
    if store is not None and now - store.since >= SETTLED:
        yield trouble_of(AlertKind.ARTIFACT_STORE, "artifact store")
    if redis is not None and now - redis.since >= SETTLED:
        yield trouble_of(AlertKind.REDIS, "Redis", problem=redis.sentence)
    waiting = {AlertKind.LOG_WAITING: journal().behind_since, AlertKind.CONFIGURATION_STALE: snapshot.unread_since()}
    for kind, since in waiting.items():
        if since is not None and now - since >= BACKLOG:
            yield trouble_of(kind, SERVER, seconds=int((now - since).total_seconds()))


def find_overdue(now: datetime) -> Iterator[Condition]:
    """Backups and prunes that ran before, and no longer do."""
    jobs = {AlertKind.BACKUP_OVERDUE: "installation.backup", AlertKind.PRUNE_OVERDUE: "installation.prune"}
    for kind, action in jobs.items():
        runs = list_runs(action)
        if is_overdue(runs, now):
            yield trouble_of(kind, KINDS[kind].subject, day=f"{runs[0]:%Y-%m-%d}")


def find_cooling(state: Snapshot) -> Iterator[Condition]:
    """The routes all of whose candidates are left alone; one trouble where that is so of every route."""
    cooldowns = process_run_context().cooldowns
    routes = [route for route in state.configuration.routes if route.enabled and route.candidates]
    cooling = [route.task_type for route in routes if _is_cooling(state, route, cooldowns)]
    if len(cooling) > 1 and len(cooling) == len(routes):
        yield trouble_of(AlertKind.ALL_COOLING, EVERYWHERE, Stage.EVERY_PROVIDER)
        return
    for task_type in cooling:
        yield trouble_of(AlertKind.ALL_COOLING, task_type)


def _is_cooling(state: Snapshot, route: RouteSpec, cooldowns: Cooldowns) -> bool:
    """Whether nobody is left to ask. A look tells nearly every route apart; only the others are planned."""
    places = ((each.provider, each.model or _default_model(state, each.provider)) for each in route.candidates)
    if not any(cooldowns.look(*place) for place in places):
        return False
    ready = list_ready(state, route)
    return bool(ready) and all(cooldowns.look(each.provider, each.model) for each in ready)


def _default_model(state: Snapshot, provider: str) -> str:
    spec = state.configuration.provider(provider)
    return spec.default_model if spec else ""


def find_budgets(state: Snapshot) -> Iterator[Condition]:
    """Budgets of which 80 % are used, and once more where nothing is left."""
    for use in list_budget_uses(state.configuration):
        subject, name, meter = f"{use.holder} {use.meter}", use.name, METERS[use.meter]
        percent = min(use.percent, SPENT)
        yield trouble_of(AlertKind.BUDGET, subject, Stage.WARNED, name=name, meter=meter, percent=percent)
        if use.percent >= SPENT:
            yield trouble_of(AlertKind.BUDGET, f"{subject} {SPENT}%", Stage.SPENT, name=name, meter=meter)


def find_low_disk() -> Iterator[Condition]:
    """The data directory's disk, where little is left on it."""
    free = low_disk_space()
    if free is not None:
        yield trouble_of(AlertKind.DISK, "data directory", free=free // MIB)


def find_retired() -> Iterator[Condition]:
    """Models in use whose last day has come."""
    for ending in list_endings():
        if ending.is_over:
            subject = f"{ending.end.provider}/{ending.end.model}"
            day = ending.end.retirement.day.isoformat()
            yield trouble_of(AlertKind.RETIRED_MODEL, subject, lasts=STATE, day=day)
