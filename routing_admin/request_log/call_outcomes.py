"""What the calls of this process show of their providers: noted by the journal's writer, behind the answers."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from capabilities.runtime import owned
from routing_admin.core.alerts.call_outcomes import KIND_OF_FAULT, CallOutcome, moment_of
from routing_admin.core.fallback.chain import OK, Try
from routing_admin.request_log.entries import Entry

MOST = 2000
"""Signs that wait for whoever takes them; callers may name any model, so there could be any number."""


class CallOutcomes:
    """The newest sign of each outcome, key and model that nobody has taken yet."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str, str, str], CallOutcome] = {}
        self._lock = threading.Lock()

    def note(self, entries: Iterable[Entry]) -> None:
        """Remembers what these requests show."""
        newest: dict[tuple[str, str, str, str], tuple[Entry, Try]] = {}
        for entry in entries:
            for attempt in entry.attempts:
                for one in attempt.tries:
                    if one.outcome == OK or one.outcome in KIND_OF_FAULT:
                        newest[attempt.provider, attempt.model, one.key, one.outcome] = entry, one
        with self._lock:
            for place, (entry, one) in newest.items():
                if place in self._noted or len(self._noted) < MOST:
                    at = moment_of(entry.facts.began, one.started_ms, one.duration_ms)
                    self._noted[place] = CallOutcome(*place, at, one.status_code)

    def take(self) -> tuple[CallOutcome, ...]:
        """All that is noted, which is forgotten here."""
        with self._lock:
            noted, self._noted = self._noted, {}
        return tuple(noted.values())

    def put_back(self, signs: Iterable[CallOutcome]) -> None:
        """Signs that could not be used yet; newer ones stay."""
        with self._lock:
            for sign in signs:
                self._noted.setdefault((sign.provider, sign.model, sign.key, sign.outcome), sign)


call_outcomes = owned(CallOutcomes)
