"""The state of a provider, defined once for the dashboard, the list, the provider's page and the API."""

from __future__ import annotations

from dataclasses import dataclass

from capabilities.core.wire import Fault
from routing_admin.core.fallback.chain import OK
from routing_admin.dispatch.model_endpoints import KeyNote
from routing_admin.request_log.health import FAILED, Health, Sample, name_failure

DISABLED, COOLING, READY, SLOW = "disabled", "cooling", "ok", "slow"
NO_KEY, NOT_ALLOWED = "no_key", "not_allowed"
BADGES_BY_SEVERITY = (*FAILED, NOT_ALLOWED, COOLING, SLOW, NO_KEY, READY, DISABLED)
"""A provider's possible states, worst first, as keys of `labels.BADGES`."""

NOT_FAILED = (OK, Fault.KEY_MISSING, Fault.ORIGIN_REFUSED)
"""Test outcomes that do not count as failures, because a provider without a usable key is not called."""

BY_KEY, BY_COOLDOWN, BY_TEST, BY_CALLS = "key", "cooldown", "test", "calls"


@dataclass(frozen=True, slots=True)
class ProviderState:
    """A state from `BADGES_BY_SEVERITY`, and its cause. `seconds` is the remaining time of a cooldown."""

    name: str
    reason: str = ""
    seconds: int | None = None

    @property
    def rank(self) -> int:
        return BADGES_BY_SEVERITY.index(self.name)

    @property
    def is_callable(self) -> bool:
        """Return whether the provider is enabled and has a usable key, whether or not its calls succeed."""
        return self.name != DISABLED and self.reason != BY_KEY

    @property
    def is_ready(self) -> bool:
        return self.name in (READY, SLOW)

    @property
    def is_troubled(self) -> bool:
        """Return whether the provider is callable but in cooldown, failing or slow."""
        return self.reason in (BY_COOLDOWN, BY_TEST, BY_CALLS)


def derive_state(
    *,
    is_enabled: bool,
    key: KeyNote,
    cooling: float | None = None,
    test: Sample | None = None,
    health: Health | None = None,
) -> ProviderState:
    """Return a provider's state: disabled, a key problem, a cooldown, or the result of the newest test or calls.

    `cooling` is the number of seconds until one of the provider's models may be called again. `health` describes the
    calls in the last hour.
    """
    health = health or Health()
    if not is_enabled:
        return ProviderState(DISABLED)
    if key.reason:
        return ProviderState(key_badge(key), BY_KEY)
    if cooling is not None:
        return ProviderState(COOLING, BY_COOLDOWN, round(cooling))
    is_news = test is not None and (health.answered is None or test.at > health.answered)
    if test is not None and is_news and test.outcome not in NOT_FAILED:
        return ProviderState(name_failure(test.outcome), BY_TEST)
    was_mended = test is not None and test.outcome == OK and health.failure is not None and test.at > health.failure.at
    if health.status in FAILED and not was_mended:
        return ProviderState(health.status, BY_CALLS)
    return ProviderState(SLOW, BY_CALLS) if health.status == SLOW else ProviderState(READY)


def key_badge(key: KeyNote) -> str:
    """Return the badge of a provider key: `ok`, `no_key`, or `not_allowed` if it may not be sent to the provider."""
    if not key.reason:
        return READY
    return NO_KEY if key.source == "missing" and not key.unconfirmed else NOT_ALLOWED
