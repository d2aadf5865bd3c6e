"""Metrics of the current state, which are served at `/metrics`. Pages in docs/runbook refer to them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, connections

from artifacts.library import count_used_bytes
from artifacts.models import Artifact
from artifacts.storage.content import byte_store
from routing_admin.configuration import snapshot
from routing_admin.configuration.audit import list_runs
from routing_admin.configuration.installation import read_retention_settings
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.alerts.queries import count_open
from routing_admin.console.people.queries import list_outdated_tokens
from routing_admin.console.providers.stored_keys import list_outdated_agents
from routing_admin.console.routes.queries import list_statuses, list_unable
from routing_admin.console.usage.queries import find_agent_uses
from routing_admin.core.fallback.cooldown import Cooldowns
from routing_admin.dispatch.send import process_run_context
from routing_admin.limits.reservations import keeper
from routing_admin.paths import program_version
from routing_admin.platform.databases.explaining import check_writable
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.platform.databases.schema import newest_migration
from routing_admin.platform.databases.unavailable import WAIT_SECONDS
from routing_admin.platform.redis.link import link
from routing_admin.platform.server.metrics import OTHER, MetricFamily, number
from routing_admin.request_log.counting import current_names
from routing_admin.request_log.journal import journal

LOG_WAITING = "routing_admin_log_entries_waiting"
POOL = {
    "connections": "Connections in the pool, used and idle.",
    "connections_limit": "Maximum number of connections in the pool.",
    "waiting": "Threads that wait for a connection from the pool.",
}


def list_process_numbers() -> Iterator[MetricFamily]:
    """Yield the metrics that differ per process, without querying the database."""
    yield cooling_family(process_run_context().cooldowns)
    yield MetricFamily(
        name=LOG_WAITING,
        explanation="Ended requests that are not written to the request log yet.",
        values={("memory",): len(journal().waiting)},
        labels=("place",),
    )
    yield MetricFamily(
        name="routing_admin_log_oldest_waiting_seconds",
        explanation="Seconds for which the oldest unwritten request has waited, or the database has rejected writes.",
        values={(): journal().waiting_seconds()},
        is_largest=True,
    )
    yield number("log_entries_lost", "Requests that could not be logged.", journal().lost, only_grows=True)
    repaired = "Requests logged without a value that the log cannot hold."
    yield number("log_entries_repaired", repaired, journal().repaired, only_grows=True)
    yield number(
        "limit_calls_waiting",
        "Calls that wait for a share of their limits or for a concurrency slot.",
        keeper().count_waiting(),
    )
    yield from pool_families()


def list_families() -> Iterator[MetricFamily]:
    """Yield the metrics that are the same in every process.

    During a database outage, metrics that are computed from its rows are missing.
    """
    yield number("disk_free_bytes", "Free bytes on the disk of the data directory.", free_bytes())
    counts: dict[tuple[str, ...], int] = {("disk",): journal().spool.waiting()}
    # This metric counts requests that wait on disk. `list_process_numbers` yields a metric of the same name for those
    # that wait in memory.
    yield MetricFamily(name=LOG_WAITING, explanation="", values=counts, labels=("place",))
    yield info_family()
    yield number(
        "redis_up", "Whether Redis responds, if it is configured.", int(link().is_up) if link().is_set else None
    )
    store = byte_store()
    is_store_up = int(store.outage is None) if store.is_remote else None
    yield number("artifact_store_up", "Whether the artifacts' bucket responds, if one is configured.", is_store_up)
    families, is_up = list[MetricFamily](), True
    try:
        # The response must not wait for a locked database.
        with lock_timeout(WAIT_SECONDS):
            families += _row_families()
            families += _agent_families()
            check_writable()
    except (DatabaseError, InterfaceError):
        is_up = False
    yield number("database_up", "Whether the database responds and accepts writes.", is_up)
    yield from families
    with suppress(DatabaseError, InterfaceError):  # Raised if this process could not read a configuration yet.
        yield from [*configuration_families(snapshot.current())]


def configuration_families(state: Snapshot) -> Iterator[MetricFamily]:
    usable = sum(key.usable for key in state.keys.values())
    yield number("revision", "Newest revision of the configuration.", state.revision or 0)
    yield number("providers", "Providers configured.", len(state.configuration.providers))
    yield number("providers_usable", "Providers with a usable key and address.", usable)
    yield number("services", "Model services configured.", len(state.configuration.services))
    yield number("routes", "Task routes configured.", len(state.configuration.routes))
    yield number("agents", "Agents, including those created at run time.", len(state.agents))
    yield routes_family(state)


def pool_families() -> Iterator[MetricFamily]:
    """Yield the usage of this process's database connection pools, or nothing if the database has no pool."""
    counts: dict[str, dict[tuple[str, ...], int]] = {"connections": {}, "connections_limit": {}, "waiting": {}}
    for alias in connections:
        pool = getattr(connections[alias], "pool", None)
        if pool is None:
            continue
        figures = pool.get_stats()
        idle = figures.get("pool_available", 0)
        counts["connections"] |= {(alias, "idle"): idle, (alias, "used"): figures.get("pool_size", 0) - idle}
        counts["connections_limit"][alias,] = figures.get("pool_max", 0)
        counts["waiting"][alias,] = figures.get("requests_waiting", 0)
    for name, values in counts.items():
        labels = ("database", "state") if name == "connections" else ("database",)
        yield MetricFamily(
            name=f"routing_admin_database_pool_{name}", explanation=POOL[name], values=values, labels=labels
        )


def free_bytes() -> int:
    return shutil.disk_usage(settings.DATA_DIR).free


def cooling_family(cooldowns: Cooldowns) -> MetricFamily:
    """Return the remaining seconds of cooldowns by provider, model and fault. An empty model means all models."""
    values: dict[tuple[str, ...], float] = {
        (provider, model or "", cooling.failure.fault.value): round(cooling.seconds, 1)
        for (provider, model), cooling in cooldowns.list_cooling()
    }
    return MetricFamily(
        name="routing_admin_cooling_seconds",
        explanation="Remaining seconds of a provider's or a model's cooldown.",
        values=values,
        labels=("provider", "model", "fault"),
        is_largest=True,
    )


def info_family() -> MetricFamily:
    store = "s3" if settings.ARTIFACTS_BUCKET else "files"
    labels = (program_version(), newest_migration(), connection.vendor, store)
    return MetricFamily(
        name="routing_admin_info",
        explanation="Version, migration and storage engines as labels; always 1.",
        values={labels: 1},
        labels=("version", "migration", "database", "artifacts"),
    )


def routes_family(state: Snapshot) -> MetricFamily:
    routes = list_statuses(state)
    unable, disabled = len(list_unable(routes)), len(state.configuration.routes) - len(routes)
    counts: dict[tuple[str, ...], float] = {("working",): len(routes) - unable, ("unable",): unable}
    return MetricFamily(
        name="routing_admin_routes_by_state",
        explanation="Task routes by state: able to answer, without a callable candidate, or disabled.",
        values={**counts, ("disabled",): disabled},
        labels=("state",),
    )


def _row_families() -> Iterator[MetricFamily]:
    yield number("artifacts", "Artifacts that are neither deleted nor expired.", Artifact.objects.living().count())
    yield number("artifact_bytes", "Stored bytes of artifacts. Equal files count once.", count_used_bytes())
    quota = read_retention_settings().quota_bytes
    yield number("artifact_quota_bytes", "Maximum bytes of artifacts, if a setting limits them.", quota)
    yield MetricFamily(
        name="routing_admin_keys_behind",
        explanation="Agents and tokens whose keys still need an older signing secret.",
        values={("agent",): len(list_outdated_agents()), ("token",): len(list_outdated_tokens())},
        labels=("kind",),
    )
    yield MetricFamily(
        name="routing_admin_alerts_open",
        explanation="Active alerts by kind.",
        values={(kind.value,): count for kind, count in count_open().by_kind.items()},
        labels=("kind",),
    )
    last_backup = next((run.timestamp() for run in list_runs("installation.backup")), None)
    yield number("last_backup_timestamp_seconds", "Unix time of the last backup.", last_backup)


def _agent_families() -> Iterator[MetricFamily]:
    uses = find_agent_uses(current_names(OTHER).agents)
    yield MetricFamily(
        name="routing_admin_agent_limit_remaining_ratio",
        explanation="Unused share of an agent's limit in the current window, from 0 to 1.",
        values={
            (agent, use.meter.value): use.remaining / use.limit if use.limit else 0.0
            for agent, agent_uses in uses.items()
            for use in agent_uses
        },
        labels=("agent", "limit"),
    )
