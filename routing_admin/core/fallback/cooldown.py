"""Cooldowns of providers and models: the interface, and its implementation within one process.

A fault that will not go away by itself starts a cooldown immediately; other faults start one after three failures in a
row. If the provider asked for a wait, the cooldown lasts exactly that long. Otherwise random jitter makes it longer, so
that processes that saw a provider fail at the same time do not all call it again at once. After a cooldown, a single
request probes the candidate. Its outcome ends the cooldown or starts a longer one. Times are in seconds of the given
monotonic clock.
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
"""Cooldown in seconds after a rate limit, if the provider did not say how long to wait or gave an implausible time."""
PAYMENT_SECONDS = 600.0
MAX_JITTER = 0.1
"""Maximum random extension of a cooldown, as a fraction of its length. A cooldown is never made shorter."""

Key = tuple[str, str | None]
"""A provider and one of its models. If the model is None, the key means the whole provider."""


@dataclass(frozen=True, slots=True)
class Cooling:
    """A running cooldown: the seconds left, the failure that caused it, and whether a probe is running."""

    seconds: float
    failure: Failure
    probing: bool = False


class Cooldowns(Protocol):
    """Interface to cooldowns.

    Methods must be fast and must not raise, so an implementation with shared state works on a local copy.
    """

    def look(self, provider: str, model: str) -> Cooling | None:
        """Return the running cooldown of the candidate or of its whole provider, without claiming the probe."""

    def enter(self, provider: str, model: str) -> Cooling | None:
        """Return the running cooldown, or None if the candidate may be called.

        After a cooldown, this also claims the probe for the calling request.
        """

    def record_success(self, provider: str, model: str) -> None:
        """Clear every failure of the candidate, and failures that concern its whole provider."""

    def record_failure(self, provider: str, model: str, failure: Failure, verdict: Verdict) -> None:
        """Record the failure that ended an attempt at the candidate."""

    def release_probe(self, provider: str, model: str) -> None:
        """Release the probe that this request claimed, because its call had no result (for example, if cancelled)."""

    def list_cooling(self) -> Sequence[tuple[Key, Cooling]]:
        """Return every running cooldown, both of whole providers and of single models."""

    def forget(self, provider: str) -> None:
        """Clear every failure of the provider and of its models."""


@dataclass(slots=True, kw_only=True)
class _State:
    failures: int = 0
    rounds: int = 0
    until: float = 0.0
    probe_until: float = 0.0
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownState:
    """A cooldown in the form that is sent to other processes, with seconds relative to now.

    `seconds` is the time left, negative if the cooldown is over, or None if no cooldown has started yet.
    """

    failures: int
    rounds: int
    seconds: float | None
    probe_seconds: float
    failure: Failure


def _ignore(key: Key) -> None:
    """No-op observer, the default for `watcher`."""


@dataclass(slots=True)
class LocalCooldowns:
    """Thread-safe cooldowns of this process; only providers and models that have failed have a state.

    `watcher` is called with each key whose state changes in this process, but not for states adopted from other
    processes.
    """

    clock: Callable[[], float]
    random: Callable[[], float]
    watcher: Callable[[Key], object] = _ignore
    _states: dict[Key, _State] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, provider: str, model: str) -> Cooling | None:
        if not self._states:  # Usually nothing has failed, and then no lock is needed.
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
        """Return the state to send to other processes, or None if there are no failures."""
        with self._lock:
            state, now = self._states.get(key), self.clock()
            if state is None or state.failure is None:
                return None
            seconds = state.until - now if state.until else None
            failure = replace(state.failure, usage=None)  # Token usage belongs only to the call that failed.
            return CooldownState(
                failures=state.failures,
                rounds=state.rounds,
                seconds=seconds,
                probe_seconds=state.probe_until - now,
                failure=failure,
            )

    def take_over(self, key: Key, state: CooldownState | None) -> None:
        """Adopt a state from another process, without calling `watcher`; None means that the candidate recovered."""
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
        # If both the provider and the model are cooling down, the longer cooldown applies.
        return max(found, key=lambda cooling: cooling.seconds, default=None)

    def _rest(self, state: _State) -> Cooling | None:
        left = max(state.until, state.probe_until) - self.clock()
        if state.failure is None or left <= 0:
            return None
        return Cooling(left, state.failure, probing=state.probe_until > state.until)

    def _claim(self, provider: str, model: str) -> list[Key]:
        # The claim on the probe expires, so that a request that never ends does not block the candidate.
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
    """Return the length of the cooldown that this failure starts, or 0 if it starts none."""
    named = min(failure.retry_after or 0.0, MAX_NAMED_SECONDS)
    if named > 0 and effect is not Effect.LONG:
        return named
    # A provider that refuses a call for lack of credit may also ask for a wait. That wait is for its rate limit and
    # does not restore credit, so use the longer of the two times.
    return max(_own_seconds(state, effect) * (1 + MAX_JITTER * random()), named)


def _own_seconds(state: _State, effect: Effect) -> float:
    if effect is Effect.LONG:
        return PAYMENT_SECONDS
    if effect is Effect.MINUTE:
        return DEFAULT_LIMIT_SECONDS
    # After the first cooldown, every further failure starts another one, without waiting for three failures in a row.
    if effect is Effect.COUNT and state.failures < FAILURES_IN_A_ROW and state.rounds == 0:
        return 0.0
    state.rounds += 1
    # The first cooldown lasts 30 s, and each further one 30 s more, up to 300 s.
    return min(STEP_SECONDS * state.rounds, MAX_COOLDOWN_SECONDS)
