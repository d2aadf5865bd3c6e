"""Latest error and latest success of each key and model, noted by the journal's thread after the answers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from capabilities.runtime import owned
from routing_admin.core.alerts.kinds import AlertKind, Condition, Stage, condition_of
from routing_admin.core.fallback.chain import OK, Try
from routing_admin.core.fallback.table import TABLE
from routing_admin.request_log.entries import Entry


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """One call of a model with a key (empty if the provider has one key): when it ended, how, and its status."""

    provider: str
    model: str
    key: str
    outcome: str
    at: datetime
    status: int | None = None

    def subject_of(self, kind: AlertKind) -> str:
        """Return what an alert of this kind would be about: the model, the provider, or one of its keys."""
        if kind is AlertKind.RETIRED_MODEL:
            return f"{self.provider}/{self.model}"
        return f"{self.provider} ({self.key})" if self.key else self.provider

    def trouble(self) -> Condition | None:
        """Return the alert condition that this outcome indicates, if any."""
        kind = _kind_of(self.outcome)
        if kind is None:
            return None
        stage = Stage.UNKNOWN_MODEL if kind is AlertKind.RETIRED_MODEL else Stage.USUAL
        return condition_of(kind, self.subject_of(kind), stage, status=self.status or self.outcome)


def _kind_of(outcome: str) -> AlertKind | None:
    row = TABLE.get(outcome)
    return row.alert_kind if row else None


KINDS_OF_CALLS = tuple(dict.fromkeys(row.alert_kind for row in TABLE.values() if row.alert_kind))


@dataclass(frozen=True, slots=True)
class Findings:
    """Conditions that the latest outcomes show, and conditions that are resolved, each with its time."""

    troubles: tuple[tuple[Condition, datetime], ...]
    mended: Mapping[tuple[AlertKind, str], datetime]


def evaluate(signs: Iterable[CallOutcome]) -> Findings:
    """Return conditions and recoveries by the latest outcome of each subject: an answer resolves all its conditions."""
    newest: dict[tuple[AlertKind, str], CallOutcome] = {}
    for sign in signs:
        for place in _places_of(sign):
            if place not in newest or newest[place].at <= sign.at:
                newest[place] = sign
    troubles, mended = [], {}
    for place, sign in newest.items():
        trouble = sign.trouble()
        if trouble is None:
            mended[place] = sign.at
        else:
            troubles.append((trouble, sign.at))
    return Findings(tuple(troubles), mended)


def _places_of(sign: CallOutcome) -> Iterator[tuple[AlertKind, str]]:
    kind = _kind_of(sign.outcome)
    if kind is not None:
        yield kind, sign.subject_of(kind)
    elif sign.outcome == OK:
        # A success with one of several keys is also one of the provider as a whole.
        for each in KINDS_OF_CALLS:
            yield from dict.fromkeys(((each, sign.subject_of(each)), (each, replace(sign, key="").subject_of(each))))


def moment_of(began: datetime, started_ms: float, duration_ms: float) -> datetime:
    return began + timedelta(milliseconds=started_ms + duration_ms)


MOST = 2000
"""Outcomes held until they are taken; callers may name any model, so there is no natural limit."""


class CallOutcomes:
    """The latest outcome by provider, model, key and outcome that has not been taken yet."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str, str, str], CallOutcome] = {}
        self._lock = threading.Lock()

    def note(self, entries: Iterable[Entry]) -> None:
        newest: dict[tuple[str, str, str, str], tuple[Entry, Try]] = {}
        for entry in entries:
            for attempt in entry.attempts:
                for one in attempt.tries:
                    if one.outcome == OK or _kind_of(one.outcome):
                        newest[attempt.provider, attempt.model, one.key, one.outcome] = entry, one
        with self._lock:
            for place, (entry, one) in newest.items():
                if place in self._noted or len(self._noted) < MOST:
                    at = moment_of(entry.facts.began, one.started_ms, one.duration_ms)
                    self._noted[place] = CallOutcome(*place, at, one.status_code)

    def take(self) -> tuple[CallOutcome, ...]:
        with self._lock:
            noted, self._noted = self._noted, {}
        return tuple(noted.values())

    def put_back(self, signs: Iterable[CallOutcome]) -> None:
        """Put back outcomes that could not be processed yet; newer ones win."""
        with self._lock:
            for sign in signs:
                self._noted.setdefault((sign.provider, sign.model, sign.key, sign.outcome), sign)


call_outcomes = owned(CallOutcomes)
