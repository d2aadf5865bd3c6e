"""Give lower packages the functions in higher packages that they call."""

from __future__ import annotations

from artifacts.ports import Retention, ports
from routing_admin.configuration import snapshot
from routing_admin.configuration.installation import read_retention_settings
from routing_admin.configuration.revisions import ledger
from routing_admin.platform.server.hooks import Hooks


def connect() -> None:
    """Set the functions that `artifacts` calls. This is called once, when Django is ready."""
    ports.audit = ledger.audit
    ports.retention = _read_retention


def _read_retention() -> Retention:
    stored = read_retention_settings()
    return Retention(stored.quota_bytes, stored.artifact_days, stored.agent_quota_bytes)


def make_server_hooks() -> Hooks:
    """Return the server's readiness checks and metrics. The setting `SERVER_HOOKS` names this function."""
    from routing_admin.console.dashboard.metrics import list_families, list_process_numbers
    from routing_admin.platform.server.health_checks import DependencyCheck, own_checks
    from routing_admin.platform.server.metrics import request_metrics
    from routing_admin.platform.server.scrapes import list_load
    from routing_admin.request_log.counting import without_former_names

    return Hooks(
        families=[list_families],
        process_families=[lambda: request_metrics().families(), list_load, list_process_numbers],
        filters=[without_former_names],
        checks=[*own_checks(), DependencyCheck("configuration", snapshot.check_read)],
        has_configuration=snapshot.is_usable,
    )
