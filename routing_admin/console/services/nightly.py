"""Probing chosen services every night, by one process: who is chosen, whose turn it is, what changed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from capabilities.acts import Actor, AuditedAction
from capabilities.core.providers.probes.drift import DriftKind
from capabilities.errors import ActionError
from capabilities.models import NightlyProbe, Service
from capabilities.runtime import owned
from routing_admin.configuration.revisions import ledger
from routing_admin.console.services.actions import record_drift
from routing_admin.console.services.probing import ProbeResult, probe_service
from routing_admin.platform.databases.router import renew_connections
from routing_admin.platform.server.repeating_thread import RepeatingThread

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


# The nightly probes of this process: begun by whichever process of the server comes first, once a night.

log = logging.getLogger(__name__)

PAUSE_SECONDS = 60.0


@dataclass(slots=True)
class NightlyProbes:
    """The rounds, in a thread of their own: a probe waits for models, and nothing else shall wait for it."""

    _thread: RepeatingThread = field(init=False)

    def __post_init__(self) -> None:
        """Nothing runs before `start`."""
        self._thread = RepeatingThread("nightly probes", PAUSE_SECONDS, self.round, connections.close_all)

    def start(self) -> None:
        """Starts the rounds; once per process."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the rounds, once the probe that is being made is done."""
        self._thread.stop()

    def round(self) -> None:
        """Probes every service whose turn it is; what goes wrong is told in the server's log, and waits for a night."""
        renew_connections()
        try:
            for row in claim_due(timezone.now()):
                found = probe_nightly(row)
                if found.failed:
                    log.warning("%s was not probed tonight, words alone failed: %s", row.service_id, found.failed.fault)
        except (DatabaseError, InterfaceError) as error:
            log.debug("the nightly probes wait for the database: %s", error)
        except ActionError as refusal:
            log.warning("a nightly probe was refused: %s", refusal)


nightly_probes = owned(NightlyProbes)
