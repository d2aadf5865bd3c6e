"""What calls show of their providers: the newest refusal and the newest answer of each key and of each model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from capabilities.core.wire import Fault
from routing_admin.core.alerts.kinds import AlertKind, Condition, Stage, trouble_of
from routing_admin.core.fallback.chain import OK

KIND_OF_FAULT: Mapping[str, AlertKind] = MappingProxyType(
    {
        Fault.HTTP_401.value: AlertKind.KEY_REFUSED,
        Fault.HTTP_403.value: AlertKind.KEY_REFUSED,
        Fault.HTTP_402.value: AlertKind.BALANCE_GONE,
        Fault.HTTP_429_QUOTA.value: AlertKind.BALANCE_GONE,
        Fault.HTTP_404.value: AlertKind.RETIRED_MODEL,
    }
)
"""The faults of calls that an operator hears of."""


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
        kind = KIND_OF_FAULT.get(self.outcome)
        if kind is None:
            return None
        stage = Stage.UNKNOWN_MODEL if kind is AlertKind.RETIRED_MODEL else Stage.USUAL
        return trouble_of(kind, self.subject_of(kind), stage, status=self.status or self.outcome)


KINDS_OF_CALLS = tuple(dict.fromkeys(KIND_OF_FAULT.values()))


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
    if sign.outcome in KIND_OF_FAULT:
        kind = KIND_OF_FAULT[sign.outcome]
        yield kind, sign.subject_of(kind)
    elif sign.outcome == OK:
        for kind in KINDS_OF_CALLS:
            yield from dict.fromkeys(((kind, sign.subject_of(kind)), (kind, replace(sign, key="").subject_of(kind))))


def moment_of(began: datetime, started_ms: float, duration_ms: float) -> datetime:
    """When a call was over that began so long after its request."""
    return began + timedelta(milliseconds=started_ms + duration_ms)
