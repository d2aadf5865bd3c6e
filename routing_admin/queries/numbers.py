"""What does somebody ask at night who reads `/metrics`? Numbers of the moment that the pages of docs/runbook name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from artifacts.actions import count_used_bytes
from artifacts.models import Artifact
from capabilities.actions.stored_keys import agents_behind
from routing_admin.configuration import snapshot
from routing_admin.configuration.audit import find_last
from routing_admin.configuration.installation import read_keeping
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.fallback.cooldown import Cooldowns
from routing_admin.databases.away import WAIT_SECONDS
from routing_admin.databases.probing import check_writable
from routing_admin.databases.schema import newest_migration
from routing_admin.databases.waiting import waiting_at_most
from routing_admin.dispatch.send import process_run_context
from routing_admin.environment import program_version
from routing_admin.limits.gate import keeper
from routing_admin.queries.alerts import count_open
from routing_admin.queries.standings import list_standings, list_unable
from routing_admin.queries.tokens import tokens_behind
from routing_admin.request_log.journal import journal
from routing_admin.server.metrics import MetricFamily

ONE: tuple[str, ...] = ()
"""The labels of a number that has none."""


def list_families() -> Iterator[MetricFamily]:
    """Every number; those of rows are left out while the database does not answer, which is a number itself."""
    yield cooling_family(process_run_context().cooldowns)
    yield MetricFamily("routing_admin_disk_free_bytes", "Free on the disk of the data directory.", {ONE: free_bytes()})
    yield MetricFamily(
        "routing_admin_log_entries_waiting",
        "Requests that wait for the request log.",
        {("memory",): len(journal.waiting), ("disk",): journal.spool.waiting() if journal.behind_since else 0},
        ("place",),
    )
    yield MetricFamily(
        "routing_admin_log_entries_lost", "Requests that could not be logged.", {ONE: journal.lost}, only_grows=True
    )
    yield MetricFamily(
        "routing_admin_log_entries_repaired",
        "Requests logged without a value that the log cannot hold.",
        {ONE: journal.repaired},
        only_grows=True,
    )
    yield MetricFamily(
        "routing_admin_limit_calls_waiting",
        "Calls that wait for a share of their limits, or for a place among those under way.",
        {ONE: keeper.count_waiting()},
    )
    yield info_family()
    yield routes_family(snapshot.current())
    found, is_up = list[MetricFamily](), True
    try:
        with waiting_at_most(WAIT_SECONDS):
            found += _of_rows()
            check_writable()
    except (DatabaseError, InterfaceError):
        is_up = False
    text = "Whether the database answers and takes writes."
    yield MetricFamily("routing_admin_database_up", text, {ONE: is_up})
    yield from found


def free_bytes() -> int:
    """What is free where the databases, or what waits for them, and files are written."""
    return shutil.disk_usage(settings.DATA_DIR).free


def cooling_family(cooldowns: Cooldowns) -> MetricFamily:
    """For how long yet this process leaves whom alone, and after which fault; a provider as a whole has no model."""
    found: dict[tuple[str, ...], float] = {
        (provider, model or "", cooling.failure.fault.value): round(cooling.seconds, 1)
        for (provider, model), cooling in cooldowns.list_cooling()
    }
    text = "Seconds for which this process leaves a provider or a model of it alone yet."
    return MetricFamily("routing_admin_cooling_seconds", text, found, ("provider", "model", "fault"))


def info_family() -> MetricFamily:
    """Which program runs, up to which migration it knows, and where rows and files are."""
    store = "s3" if settings.ARTIFACTS_BUCKET else "files"
    labels = (program_version(), newest_migration(), connection.vendor, store)
    text = "What runs here; always 1."
    return MetricFamily("routing_admin_info", text, {labels: 1}, ("version", "migration", "database", "artifacts"))


def routes_family(state: Snapshot) -> MetricFamily:
    """How many task routes can answer, cannot, and are disabled."""
    routes = list_standings(state)
    unable, disabled = len(list_unable(routes)), len(state.configuration.routes) - len(routes)
    found: dict[tuple[str, ...], float] = {("working",): len(routes) - unable, ("unable",): unable}
    text = "Task routes: those that can answer, those without a candidate that could be called, those disabled."
    return MetricFamily("routing_admin_routes_by_state", text, {**found, ("disabled",): disabled}, ("state",))


def _of_rows() -> Iterator[MetricFamily]:
    yield MetricFamily("routing_admin_artifacts", "Living artifacts.", {ONE: Artifact.objects.living().count()})
    yield MetricFamily(
        "routing_admin_artifact_bytes", "Bytes of artifacts, equal ones once.", {ONE: count_used_bytes()}
    )
    quota = read_keeping().quota_bytes
    yield MetricFamily(
        "routing_admin_artifact_quota_bytes", "The space for artifacts, where a setting limits it.", _one(quota)
    )
    yield MetricFamily(
        "routing_admin_keys_behind",
        "Agents with a key, and tokens, that still need an older signing secret.",
        {("agent",): len(agents_behind()), ("token",): len(tokens_behind())},
        ("kind",),
    )
    yield MetricFamily(
        "routing_admin_alerts_open",
        "Alerts that last, by kind.",
        {(kind.value,): count for kind, count in count_open().items()},
        ("kind",),
    )
    yield _last("routing_admin_last_backup_timestamp_seconds", "When the last backup was made.", "installation.backup")


def _last(name: str, text: str, action: str) -> MetricFamily:
    at: datetime | None = find_last(action)
    return MetricFamily(name, text, _one(at.timestamp() if at else None))


def _one(value: float | None) -> dict[tuple[str, ...], float]:
    return {} if value is None else {ONE: value}
