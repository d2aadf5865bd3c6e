"""Objects that live as long as the process.

They are created on first use, stopped in reverse order, and renewed for each test. A module declares an object that
exists once per process, and calls the declaration to get it:

    journal = owned(Journal)
    journal().write(entry)

A test calls `renew()` to start without the objects of earlier tests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Runtime:
    """The objects of a process. All methods are thread-safe."""

    def __init__(self) -> None:
        self.made: dict[owned[Any], Any] = {}
        self._stops: list[Callable[[], object]] = []
        self._lock = threading.RLock()

    def make(self, declared: owned[T]) -> T:
        """Return the declared object. The first call creates it."""
        # The lock is reentrant, because creating one object may need another.
        with self._lock:
            if declared not in self.made:
                self.made[declared] = declared.make()
            return cast(T, self.made[declared])

    def discard(self, declared: owned[Any]) -> None:
        """Drop the object. The next use creates a new one."""
        with self._lock:
            self.made.pop(declared, None)

    def at_end(self, stop: Callable[[], object]) -> None:
        """Call `stop` when the process ends, before the functions added earlier."""
        self._stops.append(stop)

    def stop(self) -> None:
        while self._stops:
            self._stops.pop()()


_runtime = Runtime()


def runtime() -> Runtime:
    return _runtime


class owned(Generic[T]):  # noqa: N801  # a decorator
    """Declares an object that `make` creates once per process. Call the declaration to get the object."""

    def __init__(self, make: Callable[[], T]) -> None:
        self.make = make

    def __call__(self) -> T:
        # Read directly from the mapping, because this happens about a dozen times in each call to a model.
        try:
            value: T = _runtime.made[self]
        except KeyError:
            return _runtime.make(self)
        return value


def renew(only: owned[Any] | None = None) -> None:
    """Discard all objects, or only one, in tests. The next use creates new objects."""
    global _runtime
    if only is not None:
        _runtime.discard(only)
        return
    _runtime.stop()
    _runtime = Runtime()
