"""Cooldowns of providers and models: the interface, and its implementation within one process.

Faults that will not pass by themselves start a cooldown immediately, other faults after three failures in a row. A
cooldown lasts as long as the provider asked for. Otherwise random jitter extends it, so that processes that lost a
provider at the same time do not all retry it at once. Afterwards a single request probes the candidate, and its outcome
ends the cooldown or starts a longer one. Times are in seconds of the given monotonic clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from capabilities.core.wire import Failure
from routing_admin.core.fallback.policy import MAX_NAMED_SECONDS, Verdict
from routing_admin.core.fallback.table import Effect, Scope

FAILURES_IN_A_ROW = 3
STEP_SECONDS = 30.0
MAX_COOLDOWN_SECONDS = 300.0
DEFAULT_LIMIT_SECONDS = 60.0
"""Cooldown in seconds after a rate limit with an implausible Retry-After."""
PAYMENT_SECONDS = 600.0
MAX_JITTER = 0.1
"""Maximum random extension of a cooldown, as a fraction. A cooldown is never shortened."""

Key = tuple[str, str | None]
"""A provider and one of its models; None as the model means the whole provider."""


@dataclass(frozen=True, slots=True)
class Cooling:
    """A running cooldown: the seconds left, and the failure that caused it."""

    seconds: float
    failure: Failure
    probing: bool = False


class Cooldowns(Protocol):
    """Interface of cooldowns.

    Methods must be fast and must not raise, so an implementation with shared state uses a local copy.
    """

    def look(self, provider: str, model: str) -> Cooling | None:
        """Return the running cooldown of the candidate or its provider, without claiming the probe."""

    def enter(self, provider: str, model: str) -> Cooling | None:
        """Return the running cooldown; None if the candidate may be called, which claims the probe after a cooldown."""

    def record_success(self, provider: str, model: str) -> None:
        """Clear every failure of the candidate and of its provider."""

    def record_failure(self, provider: str, model: str, failure: Failure, verdict: Verdict) -> None:
        """Record a failure after which the chain continued with the next candidate."""

    def release_probe(self, provider: str, model: str) -> None:
        """Release a claimed probe after a call without a result, such as a cancelled call."""

    def list_cooling(self) -> Sequence[tuple[Key, Cooling]]:
        """Return every running cooldown, of whole providers and of single models."""

    def forget(self, provider: str) -> None:
        """Clear every failure of a provider and of its models."""


@dataclass(slots=True, kw_only=True)
class _State:
    failures: int = 0
    rounds: int = 0
    until: float = 0.0
    probe_until: float = 0.0
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownState:
    """A cooldown in the form that other processes can adopt, with seconds relative to now.

    `seconds` is the time left, negative once it is over, None if there was no cooldown yet.
    """

    failures: int
    rounds: int
    seconds: float | None
    probe_seconds: float
    failure: Failure


def _ignore(key: Key) -> None:
    """No-op observer."""


@dataclass(slots=True)
class LocalCooldowns:
    """Thread-safe cooldowns of this process; only candidates that have failed have a state.

    `watcher` is called with each key whose state changed here, but not for adopted states.
    """

    clock: Callable[[], float]
    random: Callable[[], float]
    watcher: Callable[[Key], object] = _ignore
    _states: dict[Key, _State] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, provider: str, model: str) -> Cooling | None:
        if not self._states:  # Usually nothing has failed, and this needs no lock.
            return None
        with self._lock:
            return self._look(provider, model)

    def enter(self, provider: str, model: str) -> Cooling | None:
        if not self._states:
            return None
        with self._lock:
            cooling = self._look(provider, model)
            claims = self._claim(provider, model) if cooling is None else []
        self._notify(claims)
        return cooling

    def record_success(self, provider: str, model: str) -> None:
        if not self._states:
            return
        with self._lock:
            recovered = [key for key in _keys(provider, model) if self._states.pop(key, None) is not None]
        self._notify(recovered)

    def record_failure(self, provider: str, model: str, failure: Failure, verdict: Verdict) -> None:
        with self._lock:
            changes = self._free(provider, model)
            if verdict.effect is not Effect.NONE:
                key: Key = (provider, None if verdict.scope is Scope.PROVIDER else model)
                state = self._states.setdefault(key, _State())
                state.failures += 1
                state.failure = failure
                seconds = _seconds(state, failure, verdict.effect, self.random)
                if seconds > 0:
                    state.until = max(state.until, self.clock() + seconds)
                changes.append(key)
        self._notify(changes)

    def release_probe(self, provider: str, model: str) -> None:
        if not self._states:
            return
        with self._lock:
            free = self._free(provider, model)
        self._notify(free)

    def list_cooling(self) -> list[tuple[Key, Cooling]]:
        with self._lock:
            found = [(key, self._rest(state)) for key, state in self._states.items()]
        return [(key, cooling) for key, cooling in found if cooling is not None]

    def forget(self, provider: str) -> None:
        with self._lock:
            cleared = [key for key in self._states if key[0] == provider]
            for key in cleared:
                del self._states[key]
        self._notify(cleared)

    def read_state(self, key: Key) -> CooldownState | None:
        """Return the state for other processes, or None if there are no failures."""
        with self._lock:
            state, now = self._states.get(key), self.clock()
            if state is None or state.failure is None:
                return None
            seconds = state.until - now if state.until else None
            failure = replace(state.failure, usage=None)  # The usage belongs to the failed call alone.
            return CooldownState(
                failures=state.failures,
                rounds=state.rounds,
                seconds=seconds,
                probe_seconds=state.probe_until - now,
                failure=failure,
            )

    def take_over(self, key: Key, state: CooldownState | None) -> None:
        """Adopt another process's state, or its recovery if the state is None, without calling `watcher`."""
        with self._lock:
            if state is None:
                self._states.pop(key, None)
                return
            now = self.clock()
            until = now + state.seconds if state.seconds is not None else 0.0
            probe_until = now + state.probe_seconds if state.probe_seconds > 0 else 0.0
            self._states[key] = _State(
                failures=state.failures,
                rounds=state.rounds,
                until=until,
                probe_until=probe_until,
                failure=state.failure,
            )

    def _notify(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.watcher(key)

    def _look(self, provider: str, model: str) -> Cooling | None:
        known = [self._rest(self._states[key]) for key in _keys(provider, model) if key in self._states]
        found = [cooling for cooling in known if cooling is not None]
        # The longer of the provider's and the model's cooldown applies.
        return max(found, key=lambda cooling: cooling.seconds, default=None)

    def _rest(self, state: _State) -> Cooling | None:
        left = max(state.until, state.probe_until) - self.clock()
        if state.failure is None or left <= 0:
            return None
        return Cooling(left, state.failure, probing=state.probe_until > state.until)

    def _claim(self, provider: str, model: str) -> list[Key]:
        # The claim expires, so a request that never ends does not block the candidate.
        now, claims = self.clock(), []
        for key in _keys(provider, model):
            state = self._states.get(key)
            if state is not None and state.until > 0:
                state.probe_until = now + STEP_SECONDS
                claims.append(key)
        return claims

    def _free(self, provider: str, model: str) -> list[Key]:
        free = []
        for key in _keys(provider, model):
            state = self._states.get(key)
            if state is not None and state.probe_until:
                state.probe_until = 0.0
                free.append(key)
        return free


def _keys(provider: str, model: str) -> tuple[Key, Key]:
    return (provider, None), (provider, model)


def _seconds(state: _State, failure: Failure, effect: Effect, random: Callable[[], float]) -> float:
    """Return the length of the cooldown that this failure starts, or 0 for none."""
    named = min(failure.retry_after or 0.0, MAX_NAMED_SECONDS)
    if named > 0 and effect is not Effect.LONG:
        return named
    # A refusal for lack of credit may also name a wait. That wait is for the rate limit and does not restore credit, so
    # the longer of the two times applies.
    return max(_own_seconds(state, effect) * (1 + MAX_JITTER * random()), named)


def _own_seconds(state: _State, effect: Effect) -> float:
    if effect is Effect.LONG:
        return PAYMENT_SECONDS
    if effect is Effect.MINUTE:
        return DEFAULT_LIMIT_SECONDS
    # After a first cooldown, every failure starts another one; the three failures are not counted again.
    if effect is Effect.COUNT and state.failures < FAILURES_IN_A_ROW and state.rounds == 0:
        return 0.0
    state.rounds += 1
    # The cooldown starts at 30 s and doubles up to 300 s.
    return min(STEP_SECONDS * state.rounds, MAX_COOLDOWN_SECONDS)
