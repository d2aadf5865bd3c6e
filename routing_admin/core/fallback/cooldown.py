"""Who is left alone, for how long: the port, and its implementation inside one process.

A cooldown begins at once for faults that will not pass by themselves, after three failures in a row for the others,
and lasts exactly as long as the provider said where it said so. A length of ours is stretched by chance, so that
processes that lost a provider together do not come back to it together. Afterwards one request probes; its outcome ends
the cooldown or begins a longer one. Time is seconds of the clock handed in (monotonic), never the wall's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from capabilities.core.wire import Failure
from routing_admin.core.fallback.policy import Verdict
from routing_admin.core.fallback.table import Effect, Scope
from routing_admin.core.fallback.waits import MAX_NAMED_SECONDS

FAILURES_IN_A_ROW = 3
STEP_SECONDS = 30.0
MAX_COOLDOWN_SECONDS = 300.0
NONSENSE_SECONDS = 60.0
"""The rest of a provider that limits our rate and names a wait that makes no sense."""
PAYMENT_SECONDS = 600.0
STRETCH = 0.1
"""By which part of itself a cooldown of ours may be longer, never shorter."""

Key = tuple[str, str | None]
"""A provider and its model, None for the provider itself."""


@dataclass(frozen=True, slots=True)
class Cooling:
    """A candidate is left alone: for how many seconds yet, and the failure that is the reason."""

    seconds: float
    failure: Failure
    probing: bool = False


class Cooldowns(Protocol):
    """The port: every method is quick and never fails a request; a shared store answers from its local mirror."""

    def look(self, provider: str, model: str) -> Cooling | None:
        """Whether the candidate is cooling, without claiming anything."""

    def enter(self, provider: str, model: str) -> Cooling | None:
        """None when the candidate may be called; the one probe after a cooldown is claimed by this."""

    def record_success(self, provider: str, model: str) -> None:
        """An answer came: everything about this candidate and its provider is forgotten."""

    def record_failure(self, provider: str, model: str, failure: Failure, verdict: Verdict) -> None:
        """The candidate was left after this failure."""

    def release_probe(self, provider: str, model: str) -> None:
        """The call ended without telling anything (the caller went away): a claimed probe is free again."""

    def list_cooling(self) -> Sequence[tuple[Key, Cooling]]:
        """Everybody who is left alone now."""

    def forget(self, provider: str) -> None:
        """Everything about a provider and its models is forgotten: somebody says that it is well."""


@dataclass(slots=True, kw_only=True)
class _State:
    failures: int = 0
    rounds: int = 0
    until: float = 0.0
    probe_until: float = 0.0
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownState:
    """What is known of somebody's failures, as another process may take it over; seconds are from now.

    `seconds` are those of the rest, below zero for one that is over, None where there was none yet.
    """

    failures: int
    rounds: int
    seconds: float | None
    probe_seconds: float
    failure: Failure


def _nobody(key: Key) -> None:
    """Is told of changes where nobody wants to know."""


@dataclass(slots=True)
class LocalCooldowns:
    """Cooldowns of this process, safe between threads; states live only for candidates that failed.

    `random()` is in [0, 1); `watcher` is told whenever what is known of a key has changed here.
    """

    clock: Callable[[], float]
    random: Callable[[], float]
    watcher: Callable[[Key], object] = _nobody
    _states: dict[Key, _State] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, provider: str, model: str) -> Cooling | None:
        """Whether the candidate or its provider is cooling now; the longer of the two."""
        if not self._states:  # as nearly always: nobody has failed
            return None
        with self._lock:
            return self._look(provider, model)

    def enter(self, provider: str, model: str) -> Cooling | None:
        """None when the candidate may be called; claims the probe where one is due."""
        if not self._states:
            return None
        with self._lock:
            cooling = self._look(provider, model)
            claims = self._claim(provider, model) if cooling is None else []
        self._tell(claims)
        return cooling

    def record_success(self, provider: str, model: str) -> None:
        """Forget every failure of the candidate and of its provider."""
        if not self._states:
            return
        with self._lock:
            well = [key for key in _keys(provider, model) if self._states.pop(key, None) is not None]
        self._tell(well)

    def record_failure(self, provider: str, model: str, failure: Failure, verdict: Verdict) -> None:
        """Count the failure and begin a cooldown where its effect says so."""
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
        self._tell(changes)

    def release_probe(self, provider: str, model: str) -> None:
        """Give back a claimed probe."""
        if not self._states:
            return
        with self._lock:
            free = self._free(provider, model)
        self._tell(free)

    def list_cooling(self) -> list[tuple[Key, Cooling]]:
        """Everybody who is left alone now: providers as a whole (None for the model), and single models."""
        with self._lock:
            found = [(key, self._rest(state)) for key, state in self._states.items()]
        return [(key, cooling) for key, cooling in found if cooling is not None]

    def forget(self, provider: str) -> None:
        """Forget every failure of the provider and of its models."""
        with self._lock:
            well = [key for key in self._states if key[0] == provider]
            for key in well:
                del self._states[key]
        self._tell(well)

    def ailment_of(self, key: Key) -> CooldownState | None:
        """What another process may take over; None for one that is well."""
        with self._lock:
            state, now = self._states.get(key), self.clock()
            if state is None or state.failure is None:
                return None
            seconds = state.until - now if state.until else None
            failure = replace(state.failure, usage=None)  # what that one call was billed is nobody else's affair
            return CooldownState(
                failures=state.failures,
                rounds=state.rounds,
                seconds=seconds,
                probe_seconds=state.probe_until - now,
                failure=failure,
            )

    def take_over(self, key: Key, ailment: CooldownState | None) -> None:
        """What another process has found, None that all is well; nobody is told."""
        with self._lock:
            if ailment is None:
                self._states.pop(key, None)
                return
            now = self.clock()
            until = now + ailment.seconds if ailment.seconds is not None else 0.0
            probe_until = now + ailment.probe_seconds if ailment.probe_seconds > 0 else 0.0
            self._states[key] = _State(
                failures=ailment.failures,
                rounds=ailment.rounds,
                until=until,
                probe_until=probe_until,
                failure=ailment.failure,
            )

    def _tell(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.watcher(key)

    def _look(self, provider: str, model: str) -> Cooling | None:
        known = [self._rest(self._states[key]) for key in _keys(provider, model) if key in self._states]
        found = [cooling for cooling in known if cooling is not None]
        return max(found, key=lambda cooling: cooling.seconds, default=None)

    def _rest(self, state: _State) -> Cooling | None:
        left = max(state.until, state.probe_until) - self.clock()
        if state.failure is None or left <= 0:
            return None
        return Cooling(left, state.failure, probing=state.probe_until > state.until)

    def _claim(self, provider: str, model: str) -> list[Key]:
        """After a cooldown only one request asks; its claim lapses by itself, so that a lost one blocks nobody."""
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
    """How long this failure's cooldown is; 0 when it begins none."""
    named = min(failure.retry_after or 0.0, MAX_NAMED_SECONDS)
    if named > 0 and effect is not Effect.LONG:
        return named
    # beside an empty account a named wait is the rate limit's, which does not fill it: the longer of the two
    return max(_own_seconds(state, effect) * (1 + STRETCH * random()), named)


def _own_seconds(state: _State, effect: Effect) -> float:
    """The cooldown where the provider named none: the floor, which chance only stretches."""
    if effect is Effect.LONG:
        return PAYMENT_SECONDS
    if effect is Effect.MINUTE:
        return NONSENSE_SECONDS
    if effect is Effect.COUNT and state.failures < FAILURES_IN_A_ROW and state.rounds == 0:
        return 0.0
    state.rounds += 1
    return min(STEP_SECONDS * state.rounds, MAX_COOLDOWN_SECONDS)
