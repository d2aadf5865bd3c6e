"""Evaluate a fire drill from the log: the affected calls, which provider answered each, if any, and the added delay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from capabilities.core.wire import Fault
from routing_admin.core.fallback.chain import OK
from routing_admin.core.fallback.endings import RequestEnding, request_ending
from routing_admin.models import AttemptLog
from routing_admin.request_log.health import quantile
from routing_admin.request_log.time_ranges import HOUR

MAX_CALLS = 5000
"""Maximum number of attempts to evaluate, starting with the newest."""
MAX_FAILED = 5
"""Maximum number of unanswered requests to list."""
RECENT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class UnansweredCall:
    """A request without an answer, and its task type."""

    id: str
    task_type: str


@dataclass(frozen=True, slots=True)
class DrillResult:
    """How many calls a fire drill affected, how many of them each provider answered, and how many got no answer.

    `others` is the number of calls that callers cancelled or that were rejected for their content. `delay_ms` is by how
    much the median answer time exceeds the provider's own median in the hour before the drill, or None if either is
    unknown.
    """

    met: int = 0
    answered: tuple[tuple[str, int], ...] = ()
    failed: int = 0
    named: tuple[UnansweredCall, ...] = ()
    others: int = 0
    delay_ms: float | None = None

    @property
    def answers(self) -> int:
        return sum(count for _, count in self.answered)

    def as_json(self, started_at: datetime, ends_at: datetime) -> dict[str, Any]:
        return {
            "from": started_at.isoformat(timespec="seconds"),
            "until": ends_at.isoformat(timespec="seconds"),
            "met": self.met,
            "answered": dict(self.answered),
            "failed": self.failed,
            "requests": [call.id for call in self.named],
            "delayMs": None if self.delay_ms is None else round(self.delay_ms),
        }


@dataclass(frozen=True, slots=True)
class _AffectedCall:
    """A request whose fallback chain reached the drill's provider during the drill."""

    id: str
    outcome: str
    provider: str
    task_type: str
    ms: float


COLUMNS = (
    *("request__pk", "request__outcome", "request__provider", "request__task_type"),
    *("request__first_content_ms", "request__duration_ms"),
)


def find_result(provider: str, started_at: datetime, ends_at: datetime) -> DrillResult:
    """Return the result of the provider's fire drill in the given period, with two queries."""
    attempts = AttemptLog.objects.filter(provider=provider, outcome=Fault.FIRE_DRILL, at__gte=started_at)
    rows = attempts.filter(at__lte=ends_at).order_by("-at").values_list(*COLUMNS)
    calls = {
        pk: _AffectedCall(pk, outcome, answered_by, task_type, duration if first is None else first)
        for pk, outcome, answered_by, task_type, first, duration in rows[:MAX_CALLS]
    }
    own = AttemptLog.objects.filter(provider=provider, outcome=OK, at__gte=started_at - HOUR, at__lt=started_at)
    return judge_drill(calls.values(), _list_durations(own)) if calls else DrillResult()


def _list_durations(rows: QuerySet[AttemptLog]) -> list[float]:
    times = rows.order_by("-at").values_list("first_content_ms", "duration_ms")[:MAX_CALLS]
    return sorted(duration if first is None else first for first, duration in times)


def judge_drill(calls: Iterable[_AffectedCall], usual_times: Sequence[float]) -> DrillResult:
    """Return the result of a fire drill from the calls that it affected, newest first.

    `usual_times` contains the provider's own answer times, sorted.
    """
    found = list(calls)
    ends = [request_ending(call.outcome) for call in found]
    answered = [call for call, end in zip(found, ends, strict=True) if end is RequestEnding.ANSWERED]
    failed = [call for call, end in zip(found, ends, strict=True) if end is RequestEnding.FAILED]
    times = sorted(call.ms for call in answered)
    return DrillResult(
        len(found),
        tuple(Counter(call.provider for call in answered).most_common()),
        len(failed),
        tuple(UnansweredCall(call.id, call.task_type) for call in failed[:MAX_FAILED]),
        len(found) - len(answered) - len(failed),
        quantile(times, 0.5) - quantile(usual_times, 0.5) if times and usual_times else None,
    )


def answers_per_minute(provider: str, now: datetime) -> float:
    """Return how many calls per minute the provider answered in the last ten minutes."""
    count = AttemptLog.objects.filter(provider=provider, outcome=OK, at__gt=now - RECENT).count()
    return count / (RECENT / timedelta(minutes=1))
