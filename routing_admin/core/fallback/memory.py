"""What was learned of a model's refusals: parameters it does not take, and how it is asked since."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

VALUE_SECONDS = 3600.0
"""How long a parameter is left out of which the model refused the value alone: another caller's may be taken."""
MAX_PER_MODEL = 64
MAX_MODELS = 2000
"""Callers choose the names of parameters and, without a service, of models; the oldest make room."""

Place = tuple[str, str]
"""Provider and model."""
Refused = Mapping[str, str | None]
"""Parameters that a model refuses for good, each with the name it is sent under; None where it is left out."""


@dataclass(frozen=True, slots=True)
class ParameterRefusal:
    """A parameter that a model did not take: sent as `sent_as` since, None where it is left out.

    `until` is seconds of the memory's clock; None for good.
    """

    param: str
    sent_as: str | None
    until: float | None = None


@dataclass(slots=True)
class Memory:
    """Refusals by (provider, model), in this process; safe between threads.

    `clock` gives seconds that only grow, as the run's does. `watcher` is called with each place that is learned of or
    forgotten here, and not for what is taken over.
    """

    clock: Callable[[], float]
    _refusals: dict[Place, tuple[ParameterRefusal, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    watcher: Callable[[Place], object] | None = None

    def refusals(self, provider: str, model: str) -> tuple[ParameterRefusal, ...]:
        """What the model is known not to take now, the latest last."""
        known = self._refusals.get((provider, model), ())
        if not known:
            return known
        now = self.clock()
        return tuple(each for each in known if each.until is None or each.until > now)

    def lasting(self, provider: str, model: str) -> Refused:
        """What it is known to refuse for good."""
        return {each.param: each.sent_as for each in self.refusals(provider, model) if each.until is None}

    def refuse(
        self, provider: str, model: str, param: str, sent_as: str | None = None, *, value_only: bool = False
    ) -> None:
        """Remember that the model did not take this parameter; the name it is sent under now counts as taken."""
        learned = ParameterRefusal(param, sent_as, self.clock() + VALUE_SECONDS if value_only else None)
        with self._lock:
            kept = [each for each in self.refusals(provider, model) if each.param not in (param, sent_as)]
            self._refusals[provider, model] = (*kept[1 - MAX_PER_MODEL :], learned)
            if len(self._refusals) > MAX_MODELS:
                del self._refusals[next(iter(self._refusals))]
        self._notify((provider, model))

    def forget(self, provider: str, model: str, *params: str) -> None:
        """Ask for these parameters, or for all, again as if they had never been refused."""
        with self._lock:
            kept = [each for each in self.refusals(provider, model) if params and each.param not in params]
            self._set((provider, model), kept)
        self._notify((provider, model))

    def take_over(self, provider: str, model: str, refused: Refused) -> None:
        """Know exactly these as refused for good; a refused value is still known for its hour."""
        with self._lock:
            kept = [
                each for each in self.refusals(provider, model) if each.until is not None and each.param not in refused
            ]
            self._set((provider, model), [*(ParameterRefusal(*each) for each in refused.items()), *kept])

    def _set(self, place: Place, refusals: list[ParameterRefusal]) -> None:
        self._refusals.pop(place, None)
        if refusals:
            self._refusals[place] = tuple(refusals)

    def _notify(self, place: Place) -> None:
        if self.watcher is not None:
            self.watcher(place)

    def copy(self, clock: Callable[[], float]) -> Memory:
        """The same knowledge on another clock; what either learns later the other does not know."""
        shift = clock() - self.clock()
        with self._lock:
            known = {
                place: tuple(
                    each if each.until is None else replace(each, until=each.until + shift) for each in refusals
                )
                for place, refusals in self._refusals.items()
            }
        return Memory(clock, known)
