"""Keep the latest error and the latest success of each provider key and model, as a basis for alerts.

The request log's thread records them after the responses.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from capabilities.runtime import owned
from routing_admin.core.alerts.kinds import AlertKind, Condition, Stage, build_condition
from routing_admin.core.fallback.chain import OK, Try
from routing_admin.core.fallback.table import TABLE
from routing_admin.request_log.entries import Entry


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of a call to a model with one of the provider's keys, with its time and HTTP status.

    `key` is empty if the provider has only one key.
    """

    provider: str
    model: str
    key: str
    outcome: str
    at: datetime
    status: int | None = None

    def alert_subject(self, kind: AlertKind) -> str:
        """Return the subject of an alert of this kind: the model, the provider or one of its keys."""
        if kind is AlertKind.RETIRED_MODEL:
            return f"{self.provider}/{self.model}"
        return f"{self.provider} ({self.key})" if self.key else self.provider

    def condition(self) -> Condition | None:
        kind = _alert_kind(self.outcome)
        if kind is None:
            return None
        stage = Stage.UNKNOWN_MODEL if kind is AlertKind.RETIRED_MODEL else Stage.USUAL
        return build_condition(kind, self.alert_subject(kind), stage, status=self.status or self.outcome)


def _alert_kind(outcome: str) -> AlertKind | None:
    row = TABLE.get(outcome)
    return row.alert_kind if row else None


KINDS_OF_CALLS = tuple(dict.fromkeys(row.alert_kind for row in TABLE.values() if row.alert_kind))


@dataclass(frozen=True, slots=True)
class Findings:
    """The alert conditions that the latest outcomes show, and those that they resolve, each with the outcome's time."""

    conditions: tuple[tuple[Condition, datetime], ...]
    resolved: Mapping[tuple[AlertKind, str], datetime]


def evaluate(outcomes: Iterable[CallOutcome]) -> Findings:
    """Return the alert conditions that each subject's latest outcome shows or resolves.

    A success resolves all conditions of its subject.
    """
    newest: dict[tuple[AlertKind, str], CallOutcome] = {}
    for outcome in outcomes:
        for subject in _list_subjects(outcome):
            if subject not in newest or newest[subject].at <= outcome.at:
                newest[subject] = outcome
    conditions, resolved = [], {}
    for subject, outcome in newest.items():
        condition = outcome.condition()
        if condition is None:
            resolved[subject] = outcome.at
        else:
            conditions.append((condition, outcome.at))
    return Findings(tuple(conditions), resolved)


def _list_subjects(outcome: CallOutcome) -> Iterator[tuple[AlertKind, str]]:
    kind = _alert_kind(outcome.outcome)
    if kind is not None:
        yield kind, outcome.alert_subject(kind)
    elif outcome.outcome == OK:
        # A success with one of several keys is also a success for the provider as a whole.
        for call_kind in KINDS_OF_CALLS:
            yield from dict.fromkeys(
                (
                    (call_kind, outcome.alert_subject(call_kind)),
                    (call_kind, replace(outcome, key="").alert_subject(call_kind)),
                )
            )


def end_time(began: datetime, started_ms: float, duration_ms: float) -> datetime:
    return began + timedelta(milliseconds=started_ms + duration_ms)


MAX_OUTCOMES = 2000
"""Maximum number of outcomes to keep in memory until they are processed, because callers may name any model."""


class CallOutcomes:
    """Outcomes that have not been processed yet, the latest for each provider, model, key and kind of outcome."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str, str, str], CallOutcome] = {}
        self._lock = threading.Lock()

    def note(self, entries: Iterable[Entry]) -> None:
        newest: dict[tuple[str, str, str, str], tuple[Entry, Try]] = {}
        for entry in entries:
            for attempt in entry.attempts:
                for call in attempt.tries:
                    if call.outcome == OK or _alert_kind(call.outcome):
                        newest[attempt.provider, attempt.model, call.key, call.outcome] = entry, call
        with self._lock:
            for key, (entry, call) in newest.items():
                if key in self._noted or len(self._noted) < MAX_OUTCOMES:
                    at = end_time(entry.facts.began, call.started_ms, call.duration_ms)
                    self._noted[key] = CallOutcome(*key, at, call.status_code)

    def take(self) -> tuple[CallOutcome, ...]:
        with self._lock:
            noted, self._noted = self._noted, {}
        return tuple(noted.values())

    def put_back(self, outcomes: Iterable[CallOutcome]) -> None:
        """Put back outcomes that could not be processed yet, unless a newer one has taken their place."""
        with self._lock:
            for outcome in outcomes:
                self._noted.setdefault((outcome.provider, outcome.model, outcome.key, outcome.outcome), outcome)


call_outcomes = owned(CallOutcomes)
