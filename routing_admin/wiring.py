"""Connect what lower rooms ask upward for; called once, when Django is ready."""

from __future__ import annotations

from artifacts.ports import Retention, ports
from routing_admin.configuration import snapshot
from routing_admin.configuration.installation import read_retention_settings
from routing_admin.configuration.revisions import ledger
from routing_admin.console.dashboard.metrics import list_families, list_process_numbers
from routing_admin.platform.server import metrics, readiness
from routing_admin.platform.server.scrapes import list_load
from routing_admin.request_log.counting import without_former_names


def connect() -> None:
    """Fill the ports, and say where readiness and metrics come from."""
    ports.audit = ledger.audit
    ports.retention = _read_retention
    readiness.CHECKS[2:] = [readiness.DependencyCheck("configuration", snapshot.check_read)]
    readiness.HAS_CONFIGURATION[:] = [snapshot.is_usable]
    metrics.sources[:] = [list_families]
    metrics.process_sources[1:] = [list_load, list_process_numbers]
    metrics.filters[:] = [without_former_names]


def _read_retention() -> Retention:
    kept = read_retention_settings()
    return Retention(kept.quota_bytes, kept.artifact_days, kept.agent_quota_bytes)
