"""Record in the audit log what data users read or download, where the permission table requires it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.actors import Actor, AuditedAction
from capabilities.core.permissions import READINGS, PagePart
from routing_admin.configuration.revisions import ledger
from routing_admin.models import RequestLog


def record_body_read(actor: Actor, row: RequestLog) -> None:
    """If a request's recorded body was loaded, record in the audit log that the user read it."""
    if row.body is not None:
        ledger.note_reading(actor, AuditedAction(READINGS[PagePart.RECORDED_BODIES], "request", row.pk))


def record_configuration_export(actor: Actor, name: str, mode: str) -> None:
    with ledger.audit(actor, AuditedAction(READINGS[PagePart.EXPORTS], "configuration", name, {"for": mode})):
        pass


def record_audit_export(actor: Actor, details: Mapping[str, Any]) -> None:
    """Record an export of the audit log in the audit log. `details` contains its format and filters."""
    with ledger.audit(actor, AuditedAction("audit.export", details=dict(details))):
        pass
