"""What to do about a failure: the preset's rule, unless the route has its own (REQUIREMENTS decision 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from capabilities.core.translatable import translatable
from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.table import GROUPS, OWN_STATUS, TABLE, Action, Effect, Scope

DEFAULT_RETRIES = 2
"""Further tries of one candidate after the first (decision 6)."""


class ErrorPreset(StrEnum):
    """One level of caution for a whole route."""

    SEED = "seed"
    RESILIENT = "resilient"
    STRICT = "strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is done about one failure, and what the caller would see if it were the last word."""

    action: Action
    effect: Effect
    scope: Scope
    status: int
    code: str
    alert: bool


UNAVAILABLE = 503
"""The status by whose word a route decides about a fire drill, too: it plays a provider that is unavailable."""

SEED_RAISES = frozenset({400, 401, 403})
"""Statuses after which the seed's plain rule asks nobody else, whatever the provider says beside them (MMR-P10)."""

STATUS_WORD = re.compile(r"[1-9][0-9]{2}")


@dataclass(frozen=True, slots=True)
class Policy:
    """A route's way with errors: a preset, its own words over it, and how often one candidate is tried again.

    `on_error` maps a fault code, a status (`"404"`) or a group (`"5xx"`) to an action; the most exact word wins.
    `fallback_on` lists words whose faults go on to the next candidate.
    """

    preset: ErrorPreset = ErrorPreset.SEED
    on_error: Mapping[str, Action] = field(default_factory=dict)
    fallback_on: tuple[str, ...] = ()
    retries: int = DEFAULT_RETRIES

    def verdict(self, failure: Failure) -> Verdict:
        """What this route does about a failure."""
        row = TABLE[failure.fault]
        action = self._action(failure)
        status, code = caller_of(failure)
        cools = action is Action.NEXT and row.cools_when_passed_on
        alert = row.alert or self.lets_go_on(failure.fault)
        return Verdict(
            action=action,
            effect=Effect.NOW if cools else row.effect,
            scope=row.scope,
            status=status,
            code=code,
            alert=alert,
        )

    def lets_go_on(self, fault: Fault) -> bool:
        """Whether the preset lets a provider's own refusal go on to the next candidate."""
        return self.preset is ErrorPreset.RESILIENT and TABLE[fault].resilient is not None

    def own_action(self, failure: Failure) -> Action | None:
        """The route's own word for this failure, the most exact one; None when it has none."""
        for word in words_of(failure):
            if word in self.on_error:
                return self.on_error[word]
            if word in self.fallback_on:
                return Action.NEXT
        return None

    def _action(self, failure: Failure) -> Action:
        row = TABLE[failure.fault]
        if failure.fault is Fault.DEADLINE or row.after_content:
            return Action.RAISE
        own = self.own_action(failure)
        if own is not None:  # a fire drill calls no provider, so that calling it again is no answer to it
            return Action.NEXT if own is Action.RETRY and failure.fault is Fault.FIRE_DRILL else own
        if self.preset is ErrorPreset.STRICT:
            return Action.RAISE if failure.status in SEED_RAISES else row.strict or row.seed
        return row.resilient or row.seed if self.preset is ErrorPreset.RESILIENT else row.seed


def words_of(failure: Failure) -> tuple[str, ...]:
    """Every word a route may call this failure by, the most exact first."""
    number = UNAVAILABLE if failure.fault is Fault.FIRE_DRILL else failure.status
    status = (str(number),) if number is not None else ()
    groups = sorted(
        (word for word, faults in GROUPS.items() if failure.fault in faults), key=lambda word: len(GROUPS[word])
    )
    return (failure.fault.value, *status, *groups)


def word_problem(word: str) -> str | None:
    """Why a word cannot stand in a route's error policy; None when it can."""
    if word in GROUPS or word in set(Fault) or STATUS_WORD.fullmatch(word):
        return None
    return translatable(
        "%(word)s is not an error class. Use a status such as 404, a group (%(groups)s), or a fault code.",
        word=repr(word),
        groups=tuple(GROUPS),
    )


def caller_of(failure: Failure) -> tuple[int, str]:
    """The status and code a caller gets when this failure is raised (CONTRACT §6)."""
    row = TABLE[failure.fault]
    if row.status != OWN_STATUS:
        return row.status, row.code
    status = failure.status if failure.status is not None and 400 <= failure.status < 500 else 400
    return status, f"upstream_{status}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one error means and would lead to under a policy, for a page where somebody pasted it."""

    fault: Fault
    meaning: str
    verdict: Verdict
    words: tuple[str, ...]


def explain(failure: Failure, policy: Policy | None = None) -> Explanation:
    """The meaning of a failure, the verdict on it, and the words by which a route can decide otherwise."""
    chosen = policy or Policy()
    return Explanation(failure.fault, TABLE[failure.fault].meaning, chosen.verdict(failure), words_of(failure))
