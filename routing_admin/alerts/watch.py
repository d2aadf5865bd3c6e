"""The watch of this process: every few seconds it looks at what is known, writes it down, and sends what is due."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from routing_admin.actions.alerts import Living, end_alerts, note_trouble
from routing_admin.alerts.sending import send_due
from routing_admin.alerts.troubles import find_troubles
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.alerts.kinds import AlertKind
from routing_admin.core.alerts.signs import weigh
from routing_admin.core.configuration.specs import Configuration
from routing_admin.databases.router import renew_connections
from routing_admin.request_log.call_signs import CallSigns, call_signs
from routing_admin.server.repeating_thread import RepeatingThread

log = logging.getLogger(__name__)

PAUSE_SECONDS = 5.0


@dataclass(slots=True)
class AlertWatch:
    """The rounds, in a thread of their own: a chat may take seconds to answer, and nothing else waits for it."""

    signs: CallSigns = call_signs
    _thread: RepeatingThread = field(init=False)

    def __post_init__(self) -> None:
        """Nothing runs before `start`."""
        self._thread = RepeatingThread("alerts", PAUSE_SECONDS, self.round, connections.close_all)

    def start(self) -> None:
        """Starts the rounds; once per process."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the rounds, once the sending that is under way is done."""
        self._thread.stop()

    def round(self) -> None:
        """One look and what follows from it; while the database does not answer, the next round does it."""
        renew_connections()
        try:
            self.look(timezone.now())
            if settings.ALERT_WEBHOOK is not None:
                send_due(settings.ALERT_WEBHOOK, timezone.now())
        except (DatabaseError, InterfaceError) as error:
            log.debug("the alerts wait for the database: %s", error)

    def look(self, now: datetime) -> None:
        """Writes down what is wrong, and what is no longer. Raises what the database raises; no sign is lost then."""
        state, signs = snapshot.current(), self.signs.take()
        try:
            findings, living = weigh(signs), subjects_of(state)
            for trouble, at in findings.troubles:
                if trouble.subject in living[trouble.kind]:
                    note_trouble(trouble, at)
            for trouble in find_troubles(state):
                note_trouble(trouble, now)
            end_alerts(findings.mended, living, now)
        except (DatabaseError, InterfaceError):
            self.signs.put_back(signs)
            raise


def subjects_of(state: Snapshot) -> Living:
    """Whom alerts can be about: what was taken out of the configuration has no trouble any more."""
    providers = {each.name for each in state.configuration.providers if each.enabled}
    keys = {f"{name} ({key.name})" for name, keys in state.provider_keys.items() for key in keys.pool}
    callable_ones = providers | keys
    return {
        AlertKind.KEY_REFUSED: callable_ones,
        AlertKind.BALANCE_GONE: callable_ones,
        AlertKind.RETIRED_MODEL: set(models_in_use(state.configuration)),
    }


def models_in_use(configuration: Configuration) -> Iterator[str]:
    """The models that enabled routes and services name, each behind its provider: `deepseek/deepseek-chat`."""
    defaults = {spec.name: spec.default_model for spec in configuration.providers if spec.enabled}
    for route in configuration.routes:
        if route.enabled:
            for each in route.candidates:
                yield f"{each.provider}/{each.model or defaults.get(each.provider, '')}"
    for service in configuration.services:
        if service.enabled:
            yield f"{service.provider}/{service.model}"


watch = AlertWatch()
"""This process's."""
