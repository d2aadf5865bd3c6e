"""Keeping what speaks against what a model is said to read, and an administrator's decision about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from capabilities.acts import Actor, AuditedAction
from capabilities.core.providers.probes.drift import DOUBTS, QUIET, DriftKind
from capabilities.models import Drift, Service
from routing_admin.configuration.revisions import ledger
from routing_admin.console.services.actions import set_cell


def record_drift(row: Service, capability: str, kind: DriftKind, revision: int | None = None) -> None:
    """Keeps what was just found of a service's model, in place of what was kept of that capability before."""
    now = timezone.now()
    place: dict[str, Any] = {"provider": row.provider.name, "model": row.model, "capability": capability}
    if Drift.objects.filter(**place, kind=kind, dismissed_at__gt=now - QUIET).exists():
        return
    found = {"kind": kind, "at": now, "request": "", "status": None, "revision": revision, "dismissed_at": None}
    Drift.objects.update_or_create(defaults=found, **place)


def settle_doubts(row: Service, capabilities: Iterable[str]) -> None:
    """Forgets the doubts about these capabilities: a probe decided."""
    rows = Drift.objects.filter(provider=row.provider.name, model=row.model, kind__in=DOUBTS)
    rows.filter(capability__in=list(capabilities)).delete()


def dismiss_drift(actor: Actor, row: Service, capability: str) -> None:
    """Tells the same no more for a week; what the model is said to read stays as it is."""
    with ledger.audit(actor, AuditedAction("drift.dismiss", "service", row.service_id, {"capability": capability})):
        rows = Drift.objects.filter(provider=row.provider.name, model=row.model, capability=capability)
        rows.update(dismissed_at=timezone.now())


def accept_doubt(actor: Actor, row: Service, capability: str) -> AuditedAction:
    """Declares that the model does not read it; Undo brings back what was said, and the doubt with it."""
    return set_cell(actor, row, ("input", capability), supported=False)
