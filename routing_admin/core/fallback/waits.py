"""How long to wait before a retry, and whether a retry is worth the wait."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from capabilities.core.protocols.errors import SHORT_WAIT_SECONDS
from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.policy import ErrorPreset

MAX_NAMED_SECONDS = 3600.0
"""Maximum wait accepted from a provider."""
BACKOFF_CAP = 2.0
BACKOFF_BASE = 0.2


def backoff(retry_number: int, random: Callable[[], float]) -> float:
    """Return the seconds before retry n, uniform in 0 … min(2, 0.2·2ⁿ); `random()` is in [0, 1)."""
    longest: float = min(BACKOFF_CAP, BACKOFF_BASE * 2**retry_number)
    return random() * longest


def named_wait(failure: Failure) -> float | None:
    """Return the wait that the provider named, at most an hour; None if it named no positive, finite wait."""
    seconds = failure.retry_after
    if seconds is None or not math.isfinite(seconds) or seconds <= 0:
        return None
    return min(seconds, MAX_NAMED_SECONDS)


def is_long(seconds: float, time_left: float) -> bool:
    return seconds > SHORT_WAIT_SECONDS or seconds >= time_left


def refine_wait(failure: Failure, preset: ErrorPreset, time_left: float) -> Failure:
    """Return the failure with a valid wait, and a 429 classified by whether the wait is short enough to retry."""
    seconds = named_wait(failure)
    failure = replace(failure, retry_after=seconds)
    # `strict` retries every 429, whatever its wait.
    if failure.fault not in (Fault.HTTP_429, Fault.HTTP_429_WAIT) or preset is ErrorPreset.STRICT:
        return failure
    waits = seconds is not None and is_long(seconds, time_left)
    return replace(failure, fault=Fault.HTTP_429_WAIT if waits else Fault.HTTP_429)


def pause(
    failure: Failure, retry_number: int, preset: ErrorPreset, time_left: float, random: Callable[[], float]
) -> float | None:
    """Return the seconds before retry n of the same candidate, or None if the next candidate is better."""
    seconds = named_wait(failure)
    if seconds is not None and not is_long(seconds, time_left):
        return seconds
    if seconds is not None and preset is not ErrorPreset.STRICT:
        return None
    waiting = backoff(retry_number, random)
    return waiting if waiting < time_left else None
