"""Probing chosen services every night, by one process: who is chosen, whose turn it is, what changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta

from django.utils import timezone

from capabilities.acts import Actor, AuditedAction
from capabilities.core.providers.probes.drift import DriftKind
from capabilities.models import NightlyProbe, Service
from routing_admin.configuration.revisions import ledger
from routing_admin.console.services.drift_actions import record_drift
from routing_admin.console.services.probing import ProbeResult, probe_service

FIRST_HOUR = 3
"""When a night's probes may begin, in the installation's time zone."""
NIGHT = Actor("system", "nightly probe")


def night_of(now: datetime) -> date:
    """The last night whose probes may have begun."""
    return (timezone.localtime(now) - timedelta(hours=FIRST_HOUR)).date()


def set_nightly(actor: Actor, row: Service, on: bool, now: datetime) -> None:
    """Chooses the service for the nights from the next one on, or no longer."""
    with ledger.audit(actor, AuditedAction("service.nightly", "service", row.service_id, {"on": on})):
        if on:
            NightlyProbe.objects.get_or_create(service_id=row.service_id, defaults={"last_night": night_of(now)})
        else:
            NightlyProbe.objects.filter(service_id=row.service_id).delete()


def claim_due(now: datetime) -> Iterator[Service]:
    """The chosen services that were not probed this night, each claimed for whoever asks: no other process gets it."""
    night = night_of(now)
    for name in list(NightlyProbe.objects.filter(last_night__lt=night).values_list("service_id", flat=True)):
        mine = NightlyProbe.objects.filter(service_id=name, last_night__lt=night).update(last_night=night)
        row = find_live(name) if mine else None
        if row is not None:
            yield row


def claim_all(now: datetime) -> Iterator[Service]:
    """Every chosen service, whether its turn has come or not; this night counts as done for them."""
    night = night_of(now)
    for name in list(NightlyProbe.objects.order_by("service_id").values_list("service_id", flat=True)):
        NightlyProbe.objects.filter(service_id=name).update(last_night=night)
        row = find_live(name)
        if row is not None:
            yield row


def find_live(service_id: str) -> Service | None:
    """The service, where it and its provider are enabled."""
    rows = Service.objects.select_related("provider").prefetch_related("capabilities")
    return rows.filter(service_id=service_id, enabled=True, provider__enabled=True).first()


def probe_nightly(row: Service) -> ProbeResult:
    """Probes a service as the nightly probe does: what changed is kept, so that somebody sees it in the morning."""
    found = probe_service(NIGHT, row, "service.probe_nightly")
    for name, on in found.changed.items():
        record_drift(row, name, DriftKind.STARTED if on else DriftKind.STOPPED, found.revision)
    return found
