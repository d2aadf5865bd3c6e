"""Decide what to do after a failure. The route's own rule takes precedence over its preset.

For a retry, this includes how long to wait, and whether that wait is short enough to retry at all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from capabilities.core.protocols.errors import SHORT_WAIT_SECONDS
from capabilities.core.translatable import translatable
from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.table import GROUPS, OWN_STATUS, TABLE, Action, Effect, Scope

DEFAULT_RETRIES = 2
"""Default number of retries of a candidate after its first call."""


class ErrorPreset(StrEnum):
    """Presets for error policies, which differ in the failures after which a route calls its next candidate."""

    SEED = "seed"
    RESILIENT = "resilient"
    STRICT = "strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do after a failure, and what the caller receives if no further candidate is called."""

    action: Action
    effect: Effect
    scope: Scope
    status: int
    code: str
    alert: bool


UNAVAILABLE = 503
"""Status that a fire drill simulates: a route's rules for this status also apply to fire drills."""

SEED_RAISES = frozenset({400, 401, 403})
"""Statuses after which the preset `strict` calls no further candidate, whatever the response contains (MMR-P10)."""

STATUS_WORD = re.compile(r"[1-9][0-9]{2}")


@dataclass(frozen=True, slots=True)
class Policy:
    """A route's error policy: a preset, rules that override it, and the number of retries per candidate.

    `on_error` maps a fault code, a status (`"404"`) or a group (`"5xx"`) to an action; the most specific match applies.
    `fallback_on` lists further codes, statuses and groups after which the next candidate is called.
    """

    preset: ErrorPreset = ErrorPreset.SEED
    on_error: Mapping[str, Action] = field(default_factory=dict)
    fallback_on: tuple[str, ...] = ()
    retries: int = DEFAULT_RETRIES

    def verdict(self, failure: Failure) -> Verdict:
        row = TABLE[failure.fault]
        action = self._action(failure)
        status, code = caller_status(failure)
        cools = action is Action.NEXT and row.cools_when_passed_on
        alert = row.alert or self.allows_fallback(failure.fault)
        return Verdict(
            action=action,
            effect=Effect.NOW if cools else row.effect,
            scope=row.scope,
            status=status,
            code=code,
            alert=alert,
        )

    def allows_fallback(self, fault: Fault) -> bool:
        return self.preset is ErrorPreset.RESILIENT and TABLE[fault].resilient is not None

    def own_action(self, failure: Failure) -> Action | None:
        """Return the action of the route's most specific rule for this failure, or None if no rule matches."""
        for error_class in error_classes(failure):
            if error_class in self.on_error:
                return self.on_error[error_class]
            if error_class in self.fallback_on:
                return Action.NEXT
        return None

    def _action(self, failure: Failure) -> Action:
        row = TABLE[failure.fault]
        # For these failures the route's rules are ignored: no time is left, or the caller has already received part of
        # the answer.
        if failure.fault is Fault.DEADLINE or row.after_content:
            return Action.RAISE
        own = self.own_action(failure)
        # A fire drill calls no provider, so a retry would fail in the same way.
        if own is not None:
            return Action.NEXT if own is Action.RETRY and failure.fault is Fault.FIRE_DRILL else own
        if self.preset is ErrorPreset.STRICT:
            return Action.RAISE if failure.status in SEED_RAISES else row.strict or row.seed
        return row.resilient or row.seed if self.preset is ErrorPreset.RESILIENT else row.seed


def error_classes(failure: Failure) -> tuple[str, ...]:
    """Return all names by which a route's rule can match this failure, most specific first."""
    number = UNAVAILABLE if failure.fault is Fault.FIRE_DRILL else failure.status
    status = (str(number),) if number is not None else ()
    # A group with fewer faults is more specific.
    groups = sorted(
        (group for group, faults in GROUPS.items() if failure.fault in faults), key=lambda group: len(GROUPS[group])
    )
    return (failure.fault.value, *status, *groups)


def error_class_problem(error_class: str) -> str | None:
    """Return why a name in an error policy is not valid, or None if it is valid."""
    if error_class in GROUPS or error_class in set(Fault) or STATUS_WORD.fullmatch(error_class):
        return None
    return translatable(
        "%(word)s is not an error class. Use a status such as 404, a group (%(groups)s), or a fault code.",
        word=repr(error_class),
        groups=tuple(GROUPS),
    )


def caller_status(failure: Failure) -> tuple[int, str]:
    """Return the HTTP status and the code that the caller receives for this failure."""
    row = TABLE[failure.fault]
    if row.status != OWN_STATUS:
        return row.status, row.code
    status = failure.status if failure.status is not None and 400 <= failure.status < 500 else 400
    return status, f"upstream_{status}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The meaning of an error that a user pasted into a page, and how a policy handles it."""

    fault: Fault
    meaning: str
    verdict: Verdict
    words: tuple[str, ...]


def explain(failure: Failure, policy: Policy | None = None) -> Explanation:
    """Explain a failure, and list the names by which a route's rule can match it."""
    chosen = policy or Policy()
    return Explanation(failure.fault, TABLE[failure.fault].meaning, chosen.verdict(failure), error_classes(failure))


MAX_NAMED_SECONDS = 3600.0
"""Maximum wait in seconds; a longer wait that a provider asks for is shortened to this."""
BACKOFF_CAP = 2.0
BACKOFF_BASE = 0.2


def backoff(retry_number: int, random: Callable[[], float]) -> float:
    """Return the seconds to wait before retry number n, uniform in 0 … min(2, 0.2·2ⁿ); `random()` is in [0, 1)."""
    longest: float = min(BACKOFF_CAP, BACKOFF_BASE * 2**retry_number)
    return random() * longest


def named_wait(failure: Failure) -> float | None:
    """Return the wait in seconds that the provider asked for, at most an hour.

    Return None if it asked for no wait, or for one that is not positive and finite.
    """
    seconds = failure.retry_after
    if seconds is None or not math.isfinite(seconds) or seconds <= 0:
        return None
    return min(seconds, MAX_NAMED_SECONDS)


def is_long(seconds: float, time_left: float) -> bool:
    return seconds > SHORT_WAIT_SECONDS or seconds >= time_left


def refine_wait(failure: Failure, preset: ErrorPreset, time_left: float) -> Failure:
    """Return the failure with a validated wait.

    For status 429, the returned fault also depends on whether the wait is short enough for a retry.
    """
    seconds = named_wait(failure)
    failure = replace(failure, retry_after=seconds)
    # The preset `strict` retries after every 429, no matter how long the wait is.
    if failure.fault not in (Fault.HTTP_429, Fault.HTTP_429_WAIT) or preset is ErrorPreset.STRICT:
        return failure
    waits = seconds is not None and is_long(seconds, time_left)
    return replace(failure, fault=Fault.HTTP_429_WAIT if waits else Fault.HTTP_429)


def pause(
    failure: Failure, retry_number: int, preset: ErrorPreset, time_left: float, random: Callable[[], float]
) -> float | None:
    """Return the seconds to wait before retry number n of a candidate, or None to call the next candidate instead."""
    seconds = named_wait(failure)
    if seconds is not None and not is_long(seconds, time_left):
        return seconds
    if seconds is not None and preset is not ErrorPreset.STRICT:
        return None
    waiting = backoff(retry_number, random)
    return waiting if waiting < time_left else None
