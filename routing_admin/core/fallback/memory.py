"""Cache of the parameters that models do not accept, with the names to send instead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

VALUE_SECONDS = 3600.0
"""If a model refused only a parameter's value, the parameter is omitted for this many seconds. After that, another
value may be accepted.
"""
MAX_PER_MODEL = 64
MAX_MODELS = 2000
"""Maximum sizes of the cache, because callers could otherwise fill it with made-up parameter and model names. The
oldest entries are evicted.
"""

ModelKey = tuple[str, str]
"""The provider and model that identify a cache entry."""
Refused = Mapping[str, str | None]
"""Permanently refused parameters, each with the name to send instead, or None if it is omitted."""


@dataclass(frozen=True, slots=True)
class ParameterRefusal:
    """A parameter that a model refused. It is sent as `sent_as`, or omitted if that is None.

    `until` is in seconds of the cache's clock; None means that the refusal is permanent.
    """

    param: str
    sent_as: str | None
    until: float | None = None


@dataclass(slots=True)
class RefusalMemory:
    """Thread-safe cache of refused parameters by provider and model in this process.

    `clock` is in monotonic seconds and must be the clock of the run. `watcher` is called with each model whose refusals
    change in this process, but not for refusals adopted from other processes.
    """

    clock: Callable[[], float]
    _refusals: dict[ModelKey, tuple[ParameterRefusal, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    watcher: Callable[[ModelKey], object] | None = None

    def refusals(self, provider: str, model: str) -> tuple[ParameterRefusal, ...]:
        """Return the model's current refusals, newest last."""
        known = self._refusals.get((provider, model), ())
        if not known:
            return known
        now = self.clock()
        return tuple(refusal for refusal in known if refusal.until is None or refusal.until > now)

    def lasting(self, provider: str, model: str) -> Refused:
        """Return the model's permanent refusals."""
        return {refusal.param: refusal.sent_as for refusal in self.refusals(provider, model) if refusal.until is None}

    def refuse(
        self, provider: str, model: str, param: str, sent_as: str | None = None, *, value_only: bool = False
    ) -> None:
        """Record that the model refused a parameter.

        An earlier refusal of `sent_as`, the name to send instead, is deleted.
        """
        learned = ParameterRefusal(param, sent_as, self.clock() + VALUE_SECONDS if value_only else None)
        with self._lock:
            remaining = [refusal for refusal in self.refusals(provider, model) if refusal.param not in (param, sent_as)]
            self._refusals[provider, model] = (*remaining[1 - MAX_PER_MODEL :], learned)
            if len(self._refusals) > MAX_MODELS:
                # Evict the oldest entry: dictionaries preserve insertion order.
                del self._refusals[next(iter(self._refusals))]
        self._notify((provider, model))

    def forget(self, provider: str, model: str, *params: str) -> None:
        """Delete the refusals of these parameters, or of all parameters if none are given."""
        with self._lock:
            remaining = [
                refusal for refusal in self.refusals(provider, model) if params and refusal.param not in params
            ]
            self._set((provider, model), remaining)
        self._notify((provider, model))

    def take_over(self, provider: str, model: str, refused: Refused) -> None:
        """Replace the permanent refusals with those of another process, and keep the temporary ones."""
        with self._lock:
            remaining = [
                refusal
                for refusal in self.refusals(provider, model)
                if refusal.until is not None and refusal.param not in refused
            ]
            self._set((provider, model), [*(ParameterRefusal(*item) for item in refused.items()), *remaining])

    def _set(self, key: ModelKey, refusals: list[ParameterRefusal]) -> None:
        self._refusals.pop(key, None)
        if refusals:
            self._refusals[key] = tuple(refusals)

    def _notify(self, key: ModelKey) -> None:
        if self.watcher is not None:
            self.watcher(key)

    def copy(self, clock: Callable[[], float]) -> RefusalMemory:
        offset = clock() - self.clock()
        with self._lock:
            known = {
                key: tuple(
                    refusal if refusal.until is None else replace(refusal, until=refusal.until + offset)
                    for refusal in refusals
                )
                for key, refusals in self._refusals.items()
            }
        return RefusalMemory(clock, known)
