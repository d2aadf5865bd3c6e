"""Routing errors. Each contains all attempts so far, and the status and code for the caller.

`AggregateRouterError` is raised after every candidate has failed, `UpstreamRefused` immediately after a failure for
which the route's error policy allows no further candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from capabilities.core.translatable import translatable
from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.chain import Attempt, SkipReason
from routing_admin.core.fallback.policy import caller_status
from routing_admin.core.fallback.table import TABLE

ALL_FAILED = "all_providers_failed"
WOULD_DROP = "would_drop"
NOT_OFFERED = "operation_not_offered"
EXHAUSTED = translatable("All %(count)s candidates failed (%(said)s).")
LONE_FAILED = translatable("The only candidate failed (%(said)s).")
OUT_OF_TIME = translatable("The request ran out of time (%(said)s).")
REFUSED = translatable("%(name)s refused the request: %(said)s")
NOT_ACCEPTED = translatable("No candidate accepts the whole request (%(said)s).")
NOT_SUPPORTED = translatable(
    "No candidate's provider supports this call (%(said)s). Name a model of a provider that speaks openai: a "
    "service's id, provider/model, or a route that leads there."
)
SENTENCES = (EXHAUSTED, LONE_FAILED, OUT_OF_TIME, REFUSED, NOT_ACCEPTED, NOT_SUPPORTED)
"""Message templates for callers; `said` lists the outcomes of all attempts."""
PLANNED_SKIPS = frozenset(
    {
        *(SkipReason.MISSING, SkipReason.DISABLED, SkipReason.DUPLICATE),
        *(SkipReason.CANNOT_READ, SkipReason.WOULD_DROP, SkipReason.TOO_LONG),
        *(SkipReason.OTHER_PROTOCOL, SkipReason.OTHER_MODEL),
    }
)
"""Skip reasons that do not depend on the provider's current state. They do not affect the status that is returned when
a chain is exhausted.
"""

NOT_ACCEPTING = frozenset({SkipReason.WOULD_DROP, Fault.UNSUPPORTED_PARAMETER})
"""Outcomes of candidates that would not accept the whole request."""
UNUSABLE = frozenset({SkipReason.NO_KEY, SkipReason.ORIGIN_REFUSED})
"""Skip reasons that apply to every request, because the provider cannot be used at all."""


class Retriable(Protocol):
    """An error that says whether the caller may retry the same request."""

    @property
    def status(self) -> int: ...

    @property
    def should_retry(self) -> bool: ...

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before a retry, or None if unknown."""


class RouterError(Exception):
    """A request that no provider answered. `status` and `code` are for the caller; `retry_after` is in seconds."""

    def __init__(self, message: str, attempts: Sequence[Attempt], status: int, code: str) -> None:
        super().__init__(message)
        self.message = message
        self.attempts = tuple(attempts)
        self.status = status
        self.code = code
        self.retry_after = shortest_wait(self.attempts)
        self.should_retry = False
        self.param: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the error in the format of `/api/v1`, without the request id, which the caller of this method adds."""
        attempts = [attempt.as_json() for attempt in self.attempts]
        return {"error": self.code, "message": self.message, "attempts": attempts}


class AggregateRouterError(RouterError):
    """All candidates failed (MMR-P9), or time ran out; `attempts` contains an attempt for each candidate reached."""

    def __init__(self, attempts: Sequence[Attempt], code: str = ALL_FAILED) -> None:
        status = 504 if code == Fault.DEADLINE.value else exhausted_status(attempts)
        reported_code = "deadline_exceeded" if code == Fault.DEADLINE.value else code
        super().__init__(_sentence(attempts, reported_code), attempts, status, reported_code)


class RequestNotAcceptedError(RouterError):
    """No candidate accepts the whole request, and nothing may be dropped from it.

    `param` is the first part that a candidate did not accept.
    """

    def __init__(self, attempts: Sequence[Attempt], param: str | None) -> None:
        message = translatable(NOT_ACCEPTED, said=_list_ends(attempts))
        super().__init__(message, attempts, 400, WOULD_DROP)
        self.param = param


class CallNotSupportedError(RouterError):
    """No candidate has a provider that supports this kind of call."""

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        super().__init__(translatable(NOT_SUPPORTED, said=_list_ends(attempts)), attempts, 400, NOT_OFFERED)
        self.param = "model"


def exhaustion_error(attempts: Sequence[Attempt], *, refuses_drops: bool = False) -> RouterError:
    """Return the error for an exhausted chain.

    If no candidate supports this kind of call, or none accepts the whole request, the error says so.
    """
    outcomes = {attempt.outcome for attempt in attempts}
    if SkipReason.OTHER_PROTOCOL in outcomes and outcomes <= PLANNED_SKIPS:
        return CallNotSupportedError(attempts)
    untaken = [attempt for attempt in attempts if attempt.outcome in NOT_ACCEPTING]
    others = outcomes - NOT_ACCEPTING - PLANNED_SKIPS - UNUSABLE
    if refuses_drops and untaken and not others:
        return RequestNotAcceptedError(attempts, untaken[0].param)
    return AggregateRouterError(attempts)


class UpstreamRefused(RouterError):  # noqa: N818  # the provider refused: the name says what happened
    """A failure after which no further candidate is called (MMR-P10), with all attempts so far."""

    def __init__(self, failure: Failure, attempts: Sequence[Attempt]) -> None:
        status, code = caller_status(failure)
        super().__init__(_refusal(failure, attempts), attempts, status, code)
        self.failure = failure
        # A wait that an earlier candidate asked for does not apply to this refusal.
        self.retry_after = failure.retry_after


def exhausted_status(attempts: Iterable[Attempt]) -> int:
    """Return an exhausted chain's status: 429 if all attempts were rate-limited, 504 if all timed out, else 502."""
    # A candidate that is cooling down counts as the fault that started its cooldown. Candidates that the plan already
    # excluded are ignored.
    causes = {attempt.cause for attempt in attempts if attempt.outcome not in PLANNED_SKIPS}
    statuses = {TABLE[cause].exhausted if cause else 502 for cause in causes}
    # The status is never 503, which would promise that a retry will soon succeed.
    return statuses.pop() if len(statuses) == 1 else 502


def shortest_wait(attempts: Iterable[Attempt]) -> float | None:
    """Return the seconds until the first rate-limited or cooling candidate may be called, or None if unknown."""
    return min((attempt.retry_after for attempt in attempts if attempt.retry_after is not None), default=None)


def _sentence(attempts: Sequence[Attempt], code: str) -> str:
    listed = _list_ends(attempts)
    if code == "deadline_exceeded":
        return translatable(OUT_OF_TIME, said=listed)
    if len(attempts) == 1:
        return translatable(LONE_FAILED, said=listed)
    return translatable(EXHAUSTED, count=len(attempts), said=listed)


def _list_ends(attempts: Sequence[Attempt]) -> str:
    return "; ".join(f"{attempt.provider}/{attempt.model}: {attempt.error or attempt.outcome}" for attempt in attempts)


def _refusal(failure: Failure, attempts: Sequence[Attempt]) -> str:
    last = attempts[-1]
    text = failure.message or failure.fault.value
    return translatable(REFUSED, name=f"{last.provider}/{last.model}", said=text)


def retry_headers(error: Retriable) -> dict[str, str]:
    """Return the header `x-should-retry`, and `Retry-After` in whole seconds if the wait is known."""
    headers = {"x-should-retry": "true" if error.should_retry else "false"}
    if error.status in (409, 429, 503) and error.retry_after is not None and math.isfinite(error.retry_after):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    return headers
