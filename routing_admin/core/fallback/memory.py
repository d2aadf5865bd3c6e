"""What was learnt of a model's refusals: parameters it did not take, and how it is asked since; for an hour."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

REMEMBERED_SECONDS = 3600.0
"""How long a refusal is remembered (decision 17)."""


@dataclass(frozen=True, slots=True)
class ParameterRefusal:
    """A parameter that a model did not take: sent as `sent_as` since, None where it is left out.

    `until` is seconds of the memory's clock.
    """

    param: str
    sent_as: str | None
    until: float


@dataclass(slots=True)
class Memory:
    """Refusals by (provider, model), in this process; safe between threads, gone on restart.

    `clock` gives seconds that only grow, as the run's does.
    """

    clock: Callable[[], float]
    _refusals: dict[tuple[str, str], tuple[ParameterRefusal, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refusals(self, provider: str, model: str) -> tuple[ParameterRefusal, ...]:
        """What the model is known not to take now, the latest last."""
        known = self._refusals.get((provider, model), ())
        if not known:
            return known
        now = self.clock()
        return tuple(each for each in known if each.until > now)

    def refuse(self, provider: str, model: str, param: str, sent_as: str | None = None) -> None:
        """Remember that the model did not take this parameter; the name it is sent under now counts as taken."""
        with self._lock:
            kept = [each for each in self.refusals(provider, model) if each.param not in (param, sent_as)]
            learnt = ParameterRefusal(param, sent_as, self.clock() + REMEMBERED_SECONDS)
            self._refusals[provider, model] = (*kept, learnt)

    def forget(self, provider: str, model: str, *params: str) -> None:
        """Ask for these parameters again as if they had never been refused."""
        with self._lock:
            kept = tuple(each for each in self.refusals(provider, model) if each.param not in params)
            self._refusals[provider, model] = kept

    def copy(self, clock: Callable[[], float]) -> Memory:
        """The same knowledge on another clock; what either learns later the other does not know."""
        shift = clock() - self.clock()
        with self._lock:
            known = {
                place: tuple(replace(each, until=each.until + shift) for each in refusals)
                for place, refusals in self._refusals.items()
            }
        return Memory(clock, known)
