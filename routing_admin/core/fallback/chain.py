"""What a run is given and what it says: candidates, the plan, steps, tries, attempts."""

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
"""The outcome of an attempt that ended in an error of our own, e.g. a file of the request that cannot be read."""

T = TypeVar("T")


class SkipReason(StrEnum):
    """Why a candidate is passed by without being called; the value is its attempt's outcome."""

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
    """Seconds: to connect, to the first content, between contents, and for the whole request."""

    connect: float = 5.0
    first_content: float = 120.0
    between: float = 30.0
    total: float = 600.0


@value_class
class PoolKey:
    """One of several keys of a provider: its name, and a mark that changes with the key and does not tell it."""

    name: str
    mark: str


@value_class
class PlannedCandidate:
    """One (provider, model) of a chain, the primary first; `skip` is set when it is known not to be callable.

    `protocol` is what its provider speaks, `skip_param` what of the request stands in the way. `keys` are its
    provider's usable keys where there are several, else empty.
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
        """`provider/model`, as logs and pages write it."""
        return f"{self.provider}/{self.model}" if self.model else self.provider


@value_class
class Plan:
    """A decided request: the route taken, its chain, and the rules of the run.

    `task_type` is the route taken; `matched` is False when it is the default instead of the one asked for. Where
    `refuses_drops` a candidate that takes less than the whole request is passed by; where it goes `verbatim` nobody is
    asked with less or otherwise. `has_pools` says that a candidate has several keys; then requests of the same
    `affinity`, unless it is empty, are asked with the same one.
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
    """Ask this candidate now. `timeouts.total` is what is left of the whole request, in seconds.

    `without_params` are parameters to leave out; `without_capabilities` are capabilities to treat as lacking, `*` for
    all but text. `limit_name` is what the limit on tokens is called in this call, None as the provider usually has it.
    `key` is the key to ask with where the provider has several, None where it has the one.
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
    """Do nothing for that many seconds, then go on."""

    seconds: float
    reason: str


Step = Call | Wait


@value_class
class Reply(Generic[T]):
    """A call's outcome with what the driver knows of it: how content was adapted, which parameters were dropped."""

    outcome: T | Failure
    adaptation: str = ""
    dropped_params: tuple[str, ...] = ()


@value_class
class Try:
    """One call of an attempt: when it began and how long it took (milliseconds), and what came of it.

    `key` is the name of the key it was made with where the provider has several, else empty. `usage` is what the
    provider counted of a call that gave no answer.
    """

    started_ms: float
    duration_ms: float
    outcome: str
    status_code: int | None = None
    key: str = ""
    usage: Usage | None = None


@value_class
class Attempt:
    """What became of one candidate; exactly one per candidate reached, in chain order (CONTRACT §4).

    `outcome` is `ok`, a fault's code or a skip reason; `cause` is the fault behind it, for a cooling candidate the
    one that cooled it. Times in milliseconds, `started_ms` from the request's beginning; `waits` in seconds. `param` is
    what of the request it would not take.
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
        """The attempt as the API writes it, absent fields left out."""
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
    """A run that ended well: the answer, the call it came from, and every attempt, the answering one last."""

    answer: T
    call: Call
    attempts: tuple[Attempt, ...]

    @property
    def candidate(self) -> PlannedCandidate:
        """Who answered."""
        return self.call.candidate


def skip_attempt(candidate: PlannedCandidate, reason: SkipReason, at_ms: float, detail: str = "") -> Attempt:
    """The attempt of a candidate that was passed by, saying why."""
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
    """The answering attempt of a stream that ended later: in order (None), or by this failure."""
    if failure is None:
        return replace(attempt, duration_ms=duration_ms)
    return replace(
        attempt, outcome=failure.fault.value, error=failure.message, cause=failure.fault, duration_ms=duration_ms
    )
