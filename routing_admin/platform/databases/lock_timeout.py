"""How long does a statement wait for another's lock, and a thread for a connection? Each engine is told so here.

Pages and commands wait as the settings say; the data plane says less, and says so for everything it calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from django.db.utils import OperationalError

T = TypeVar("T")

LOOK_WAIT_SECONDS = 0.25
"""How long a thread beside the requests waits for a locked database; what it wants can wait for the next round."""

_most: ContextVar[float | None] = ContextVar("longest_wait", default=None)


@contextmanager
def lock_timeout(seconds: float) -> Iterator[None]:
    """In here a statement waits for a locked database that many seconds at most; threads started in here inherit it."""
    outer = _most.get()
    token = _most.set(seconds if outer is None else min(seconds, outer))
    try:
        yield
    finally:
        _most.reset(token)


def wait_seconds(usual: float) -> float:
    """How long a statement that is run now may wait; `usual` is what the settings say."""
    most = _most.get()
    return usual if most is None else min(usual, most)


class _LastTimeout:
    """When somebody last waited in vain, by the monotonic clock."""

    in_vain = float("-inf")


def in_line(work: Callable[[], T]) -> Callable[[], T]:
    """`work` for a thread that may be busy: where somebody before it waited in vain meanwhile, it waits the less."""
    most, asked = _most.get(), time.monotonic()

    def run() -> T:
        if most is None:
            return work()
        waited = time.monotonic() - asked if _LastTimeout.in_vain > asked else 0.0
        with lock_timeout(max(0.0, most - waited)):
            try:
                return work()
            except OperationalError:
                _LastTimeout.in_vain = time.monotonic()
                raise

    return run
