"""What lives as long as the process: made at first use, stopped in reverse, made anew for each test.

A room declares what the process has one of, and calls the declaration to reach it:

    journal = owned(Journal)
    journal().write(entry)

Nothing else keeps state in a module, so one call of `renew()` gives a test a process without a past.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Runtime:
    """The objects of one process, for any thread."""

    def __init__(self) -> None:
        self._made: dict[Callable[[], Any], Any] = {}
        self._stops: list[Callable[[], object]] = []
        self._lock = threading.RLock()

    def get(self, make: Callable[[], T]) -> T:
        """Return what `make` made for this process; the first caller has it made."""
        try:
            return cast(T, self._made[make])
        except KeyError:
            with self._lock:
                if make not in self._made:
                    self._made[make] = make()
                return cast(T, self._made[make])

    def discard(self, make: Callable[[], Any]) -> None:
        """Let `make` be called again by the next `get`."""
        with self._lock:
            self._made.pop(make, None)

    def at_end(self, stop: Callable[[], object]) -> None:
        """Call `stop` when the process ends, before what was added earlier."""
        self._stops.append(stop)

    def stop(self) -> None:
        """Call what was added by `at_end`, the newest first."""
        while self._stops:
            self._stops.pop()()


_runtime = Runtime()


def runtime() -> Runtime:
    """Return this process's runtime."""
    return _runtime


class owned(Generic[T]):  # noqa: N801  # a decorator
    """Give this process's own object, which `make` makes once."""

    def __init__(self, make: Callable[[], T]) -> None:
        self.make = make

    def __call__(self) -> T:
        return _runtime.get(self.make)


def renew(only: owned[Any] | None = None) -> None:
    """Let the runtime be made anew, or one object of it: for tests."""
    global _runtime
    if only is not None:
        _runtime.discard(only.make)
        return
    _runtime.stop()
    _runtime = Runtime()
