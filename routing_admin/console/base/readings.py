"""What people look at, or take away, without changing anything: the audit log tells of it where the table says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capabilities.acts import Actor, AuditedAction
from capabilities.core.permissions import READINGS, PagePart
from routing_admin.configuration.revisions import ledger
from routing_admin.models import RequestLog


def note_body_read(actor: Actor, row: RequestLog) -> None:
    """The words of a request, where they were recorded and have been read with its row."""
    if row.body is not None:
        ledger.note_reading(actor, AuditedAction(READINGS[PagePart.RECORDED_BODIES], "request", row.pk))


def note_configuration_export(actor: Actor, name: str, mode: str) -> None:
    """One of the two configuration files, in that mode."""
    with ledger.audit(actor, AuditedAction(READINGS[PagePart.EXPORTS], "configuration", name, {"for": mode})):
        pass


def note_audit_export(actor: Actor, details: Mapping[str, Any]) -> None:
    """The audit log itself; `details` say in which form, and what it was narrowed to."""
    with ledger.audit(actor, AuditedAction("audit.export", details=dict(details))):
        pass
