"""The nightly probes of this process: begun by whichever process of the server comes first, once a night."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from capabilities.errors import ActionError
from capabilities.runtime import owned
from routing_admin.console.services.nightly import claim_due, probe_nightly
from routing_admin.platform.databases.router import renew_connections
from routing_admin.platform.server.repeating_thread import RepeatingThread

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
