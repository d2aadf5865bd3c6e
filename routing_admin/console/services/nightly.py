"""The nightly probe: which services are selected for it, which of them are due, and the thread that probes them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from capabilities.actors import Actor, AuditedAction
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
"""Earliest hour at which a night's probes begin, in the installation's time zone."""
NIGHTLY_ACTOR = Actor("system", "nightly probe")


def current_night(now: datetime) -> date:
    """Return the date of the latest night in which probes may already have begun."""
    return (timezone.localtime(now) - timedelta(hours=FIRST_HOUR)).date()


def set_nightly(actor: Actor, row: Service, on: bool, now: datetime) -> None:
    """Select a service for the nightly probe, beginning with the next night, or deselect it."""
    with ledger.audit(actor, AuditedAction("service.nightly", "service", row.service_id, {"on": on})):
        if on:
            # The current night counts as probed, so that the first probe does not begin at once.
            NightlyProbe.objects.get_or_create(service_id=row.service_id, defaults={"last_night": current_night(now)})
        else:
            NightlyProbe.objects.filter(service_id=row.service_id).delete()


def claim_due_services(now: datetime) -> Iterator[Service]:
    """Claim and yield the selected services that have not been probed this night."""
    night = current_night(now)
    for name in list(NightlyProbe.objects.filter(last_night__lt=night).values_list("service_id", flat=True)):
        # This conditional update claims the service: of several processes, only one changes the row.
        claimed = NightlyProbe.objects.filter(service_id=name, last_night__lt=night).update(last_night=night)
        row = find_live(name) if claimed else None
        if row is not None:
            yield row


def claim_all(now: datetime) -> Iterator[Service]:
    """Claim and yield all selected services, even those that are not due."""
    night = current_night(now)
    for name in list(NightlyProbe.objects.order_by("service_id").values_list("service_id", flat=True)):
        NightlyProbe.objects.filter(service_id=name).update(last_night=night)
        row = find_live(name)
        if row is not None:
            yield row


def find_live(service_id: str) -> Service | None:
    rows = Service.objects.select_related("provider").prefetch_related("capabilities")
    return rows.filter(service_id=service_id, enabled=True, provider__enabled=True).first()


def probe_nightly(row: Service) -> ProbeResult:
    """Probe a service. Changes in its capabilities are recorded as drift and shown to administrators."""
    result = probe_service(NIGHTLY_ACTOR, row, "service.probe_nightly")
    for name, on in result.changed.items():
        record_drift(row, name, DriftKind.STARTED if on else DriftKind.STOPPED, result.revision)
    return result


# Each service is probed once per night, by the process that claims it first.

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 60.0


@dataclass(slots=True)
class NightlyProbes:
    """Runs the nightly probes in a thread of their own, because a probe waits for models."""

    _thread: RepeatingThread = field(init=False)

    def __post_init__(self) -> None:
        self._thread = RepeatingThread("nightly probes", INTERVAL_SECONDS, self.round, connections.close_all)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop once the probe in progress has ended."""
        self._thread.stop()

    def round(self) -> None:
        """Probe every service that is due.

        Errors are logged. A service that could not be probed is due again the next night.
        """
        # Django closes outdated connections after each request, but this thread has no requests.
        renew_connections()
        try:
            for row in claim_due_services(timezone.now()):
                result = probe_nightly(row)
                if result.failed:
                    log.warning(
                        "%s was not probed tonight, because its plain text call failed: %s",
                        row.service_id,
                        result.failed.fault,
                    )
        except (DatabaseError, InterfaceError) as error:
            log.debug("the nightly probes wait for the database: %s", error)
        except ActionError as refusal:
            log.warning("a nightly probe was refused: %s", refusal)


nightly_probes = owned(NightlyProbes)
