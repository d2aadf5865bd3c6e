"""Connect ports of the lower packages to their implementations, once, when Django is ready."""

from __future__ import annotations

from artifacts.ports import Retention, ports
from routing_admin.configuration import snapshot
from routing_admin.configuration.installation import read_retention_settings
from routing_admin.configuration.revisions import ledger
from routing_admin.console.dashboard.metrics import list_families, list_process_numbers
from routing_admin.platform.server.hooks import hooks
from routing_admin.platform.server.metrics import request_metrics
from routing_admin.platform.server.readiness import DependencyCheck, own_checks
from routing_admin.platform.server.scrapes import list_load
from routing_admin.request_log.counting import without_former_names


def connect() -> None:
    """Fill the ports, and register checks for readiness and sources of metrics."""
    ports.audit = ledger.audit
    ports.retention = _read_retention
    hooks.checks = [*own_checks(), DependencyCheck("configuration", snapshot.check_read)]
    hooks.has_configuration = snapshot.is_usable
    hooks.families = [list_families]
    hooks.process_families = [lambda: request_metrics().families(), list_load, list_process_numbers]
    hooks.filters = [without_former_names]


def _read_retention() -> Retention:
    stored = read_retention_settings()
    return Retention(stored.quota_bytes, stored.artifact_days, stored.agent_quota_bytes)
