"""What calls show of their providers: the newest refusal and the newest answer of each key and of each model.

Those of this process are noted by the journal's writer, behind the answers.
"""

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
    """One call of a model with a key, empty for a provider's only one: when it ended, how, and with which status."""

    provider: str
    model: str
    key: str
    outcome: str
    at: datetime
    status: int | None = None

    def subject_of(self, kind: AlertKind) -> str:
        """Whom it is a sign of: the model, the provider, or one of its keys."""
        if kind is AlertKind.RETIRED_MODEL:
            return f"{self.provider}/{self.model}"
        return f"{self.provider} ({self.key})" if self.key else self.provider

    def trouble(self) -> Condition | None:
        """The trouble that it shows; None for any other outcome."""
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
    """What the newest signs come to: troubles, and what is mended, each with its moment."""

    troubles: tuple[tuple[Condition, datetime], ...]
    mended: Mapping[tuple[AlertKind, str], datetime]


def evaluate(signs: Iterable[CallOutcome]) -> Findings:
    """The newest sign of each subject decides; an answer mends, and every refusal is a trouble of its own kind."""
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
    """Whom a sign is about, by kind. An answer with one of several keys is also one of the provider as a whole."""
    kind = _kind_of(sign.outcome)
    if kind is not None:
        yield kind, sign.subject_of(kind)
    elif sign.outcome == OK:
        for each in KINDS_OF_CALLS:
            yield from dict.fromkeys(((each, sign.subject_of(each)), (each, replace(sign, key="").subject_of(each))))


def moment_of(began: datetime, started_ms: float, duration_ms: float) -> datetime:
    """When a call was over that began so long after its request."""
    return began + timedelta(milliseconds=started_ms + duration_ms)


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
                    if one.outcome == OK or _kind_of(one.outcome):
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
