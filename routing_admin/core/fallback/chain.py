"""Data types of a fallback run: candidates, the plan, steps, tries and attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from capabilities.core.translatable import translatable
from capabilities.core.values import value_class
from capabilities.core.wire import Failure, Fault, Usage
from routing_admin.core.fallback.policy import Policy

OK = "ok"
CANCELLED = "client_cancelled"
ABORTED = "aborted"
"""Outcome of an attempt that ended with an internal error; for example, a file in the request could not be read."""

T = TypeVar("T")


class SkipReason(StrEnum):
    """Reason for skipping a candidate without calling it; the value is the outcome of its attempt."""

    MISSING = "skipped_missing"
    DISABLED = "skipped_disabled"
    DUPLICATE = "skipped_duplicate"
    CANNOT_READ = "skipped_cannot_read"
    WOULD_DROP = "skipped_would_drop"
    TOO_LONG = "skipped_too_long"
    OTHER_PROTOCOL = "skipped_protocol"
    OTHER_MODEL = "skipped_other_model"
    COOLING = "skipped_cooling"
    NO_KEY = "key_missing"
    ORIGIN_REFUSED = "origin_refused"


SKIP_SENTENCES: Mapping[SkipReason, str] = {
    SkipReason.MISSING: translatable("The configuration has no provider with this name."),
    SkipReason.DISABLED: translatable("The provider is disabled."),
    SkipReason.DUPLICATE: translatable("The same provider and model were already tried in this chain."),
    SkipReason.CANNOT_READ: translatable("The model cannot read what this request contains."),
    SkipReason.WOULD_DROP: translatable("It would leave out part of the request."),
    SkipReason.TOO_LONG: translatable("The request is too long for the model."),
    SkipReason.OTHER_PROTOCOL: translatable("The provider's protocol does not support this call."),
    SkipReason.OTHER_MODEL: translatable("Another model cannot answer this call."),
    SkipReason.COOLING: translatable("The candidate is cooling down after a failure."),
    SkipReason.NO_KEY: translatable("The provider has no usable API key."),
    SkipReason.ORIGIN_REFUSED: translatable("The provider's address is not allowed."),
}


@value_class
class Timeouts:
    """Timeouts in seconds: to connect, to the first content, between chunks of content, and for the whole request."""

    connect: float = 5.0
    # Reasoning models may send nothing for minutes before their first content.
    first_content: float = 120.0
    between: float = 30.0
    total: float = 600.0


@value_class
class PoolKey:
    """One of a provider's keys; `mark` is a digest of the key."""

    name: str
    # The mark is an HMAC of the key, so a renamed key keeps its cooldown, and a new key starts without one.
    mark: str


@value_class
class PlannedCandidate:
    """A provider and model in a chain; `skip` is set if it is already known that the candidate cannot be called.

    `protocol` is the provider's protocol. `skip_param` is the part of the request that causes the skip. `keys` are the
    provider's usable keys, or empty if it has only one.
    """

    index: int
    provider: str
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    skip: SkipReason | None = None
    skip_detail: str = ""
    timeouts: Timeouts | None = None
    protocol: str = "openai"
    skip_param: str | None = None
    keys: tuple[PoolKey, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider


@value_class
class Plan:
    """A routed request: its route, its chain, and the rules for running the chain.

    `matched` is False if `task_type` is the default route instead of the requested one. With `refuses_drops`,
    candidates that would accept only part of the request are skipped. With `verbatim`, the request is never adjusted.
    `has_pools` says whether the provider of any candidate has several keys. Requests with the same non-empty `affinity`
    use the same key.
    """

    candidates: tuple[PlannedCandidate, ...]
    task_type: str = "default"
    matched: bool = True
    language: str = "en"
    directive: str = ""
    policy: Policy = field(default_factory=Policy)
    timeouts: Timeouts = field(default_factory=Timeouts)
    refuses_drops: bool = False
    verbatim: bool = False
    has_pools: bool = False
    affinity: str = ""


@value_class
class Call:
    """A step that tells the driver to call this candidate now.

    `timeouts.total` is the time left for the whole request, in seconds. `without_params` are parameters to omit.
    `without_capabilities` are capabilities to treat as missing; `*` means all except text. `limit_name` is the
    parameter name for the token limit, or None for the provider's usual name. `key` is the key to use if the provider
    has several.
    """

    candidate: PlannedCandidate
    try_number: int
    timeouts: Timeouts
    without_params: frozenset[str] = frozenset()
    without_capabilities: frozenset[str] = frozenset()
    limit_name: str | None = None
    key: PoolKey | None = None


@value_class
class Wait:
    seconds: float
    reason: str


Step = Call | Wait


@value_class
class Reply(Generic[T]):
    """A call's outcome, how the request's content was adapted for the model, and which parameters were dropped."""

    outcome: T | Failure
    adaptation: str = ""
    dropped_params: tuple[str, ...] = ()


@value_class
class Try:
    """One call of an attempt; times are in milliseconds.

    `key` is the name of the key that was used, or empty if the provider has only one. `usage` is what the provider
    reported for a call that failed.
    """

    started_ms: float
    duration_ms: float
    outcome: str
    status_code: int | None = None
    key: str = ""
    usage: Usage | None = None


@value_class
class Attempt:
    """The result for one candidate.

    A run has one attempt for each candidate that it reached, in the order of the chain. `outcome` is `ok`, a fault's
    code or a skip reason. `cause` is the underlying fault: for a candidate that is cooling down, it is the fault that
    started the cooldown. Times are in milliseconds, except that `waits` are in seconds; `started_ms` counts from the
    start of the request. `param` is the part of the request that was not accepted.
    """

    provider: str
    model: str
    outcome: str
    status_code: int | None = None
    error: str | None = None
    retry_attempts: int = 0
    duration_ms: float = 0.0
    started_ms: float = 0.0
    waits: tuple[float, ...] = ()
    tries: tuple[Try, ...] = ()
    adaptation: str = ""
    dropped_params: tuple[str, ...] = ()
    cause: Fault | None = None
    retry_after: float | None = None
    alert: bool = False
    param: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the attempt in the API's format, omitting fields that are not set."""
        optional = {
            "statusCode": self.status_code,
            "error": self.error,
            "adaptation": self.adaptation or None,
            "droppedParams": list(self.dropped_params) or None,
        }
        named = {key: value for key, value in optional.items() if value is not None}
        return {
            "provider": self.provider,
            "model": self.model,
            **named,
            "retryAttempts": self.retry_attempts,
            "outcome": self.outcome,
            "durationMs": round(self.duration_ms),
        }


@value_class
class RunResult(Generic[T]):
    """A successful run: the answer, the call that produced it, and all attempts.

    The last attempt is the successful one.
    """

    answer: T
    call: Call
    attempts: tuple[Attempt, ...]

    @property
    def candidate(self) -> PlannedCandidate:
        return self.call.candidate


def skip_attempt(candidate: PlannedCandidate, reason: SkipReason, at_ms: float, detail: str = "") -> Attempt:
    sentence = detail or candidate.skip_detail or SKIP_SENTENCES[reason]
    cause = {SkipReason.NO_KEY: Fault.KEY_MISSING, SkipReason.ORIGIN_REFUSED: Fault.ORIGIN_REFUSED}.get(reason)
    return Attempt(
        *(candidate.provider, candidate.model, reason.value),
        error=sentence,
        started_ms=at_ms,
        cause=cause,
        param=candidate.skip_param,
    )


def cut_short(attempt: Attempt, failure: Failure | None, duration_ms: float) -> Attempt:
    """Return a stream's attempt, updated at the stream's end; `failure` is None if the stream ended normally."""
    if failure is None:
        return replace(attempt, duration_ms=duration_ms)
    return replace(
        attempt, outcome=failure.fault.value, error=failure.message, cause=failure.fault, duration_ms=duration_ms
    )
