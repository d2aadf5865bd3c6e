"""Cache of models' refusals: the parameters they do not accept, and the names sent instead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

VALUE_SECONDS = 3600.0
"""How long a parameter is left out after only its value was refused; another value may be accepted."""
MAX_PER_MODEL = 64
MAX_MODELS = 2000
"""Limits of the cache, since callers choose names of parameters and models; the oldest are evicted."""

Place = tuple[str, str]
"""Provider and model."""
Refused = Mapping[str, str | None]
"""Permanently refused parameters, each with the name to send instead, None to leave it out."""


@dataclass(frozen=True, slots=True)
class ParameterRefusal:
    """A parameter that a model refused; it is sent as `sent_as`, or left out if that is None.

    `until` is in seconds of the cache's clock, None for a permanent refusal.
    """

    param: str
    sent_as: str | None
    until: float | None = None


@dataclass(slots=True)
class Memory:
    """Refusals by provider and model in this process, safe between threads.

    `clock` is monotonic seconds, the same as the run's. `watcher` is called with each place that changes here, but not
    for adopted refusals.
    """

    clock: Callable[[], float]
    _refusals: dict[Place, tuple[ParameterRefusal, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    watcher: Callable[[Place], object] | None = None

    def refusals(self, provider: str, model: str) -> tuple[ParameterRefusal, ...]:
        """Return the model's current refusals, the latest last."""
        known = self._refusals.get((provider, model), ())
        if not known:
            return known
        now = self.clock()
        return tuple(each for each in known if each.until is None or each.until > now)

    def lasting(self, provider: str, model: str) -> Refused:
        """Return the model's permanent refusals."""
        return {each.param: each.sent_as for each in self.refusals(provider, model) if each.until is None}

    def refuse(
        self, provider: str, model: str, param: str, sent_as: str | None = None, *, value_only: bool = False
    ) -> None:
        """Record that the model refused a parameter; the name it is sent under now counts as accepted."""
        learned = ParameterRefusal(param, sent_as, self.clock() + VALUE_SECONDS if value_only else None)
        with self._lock:
            kept = [each for each in self.refusals(provider, model) if each.param not in (param, sent_as)]
            self._refusals[provider, model] = (*kept[1 - MAX_PER_MODEL :], learned)
            if len(self._refusals) > MAX_MODELS:
                # The oldest entry, since dictionaries keep the order of insertion.
                del self._refusals[next(iter(self._refusals))]
        self._notify((provider, model))

    def forget(self, provider: str, model: str, *params: str) -> None:
        """Forget the refusals of these parameters, or of all without arguments."""
        with self._lock:
            kept = [each for each in self.refusals(provider, model) if params and each.param not in params]
            self._set((provider, model), kept)
        self._notify((provider, model))

    def take_over(self, provider: str, model: str, refused: Refused) -> None:
        """Replace the permanent refusals, keeping temporary ones."""
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
        """Return an independent copy on another clock."""
        shift = clock() - self.clock()
        with self._lock:
            known = {
                place: tuple(
                    each if each.until is None else replace(each, until=each.until + shift) for each in refusals
                )
                for place, refusals in self._refusals.items()
            }
        return Memory(clock, known)
