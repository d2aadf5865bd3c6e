"""Timeouts for database locks and pooled connections, per context.

Pages and commands use the settings' timeout. The gateway sets a shorter one for all code that it calls.
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
"""Lock timeout of background threads, which can retry in their next round."""

_most: ContextVar[float | None] = ContextVar("longest_wait", default=None)


@contextmanager
def lock_timeout(seconds: float) -> Iterator[None]:
    """Limit lock waits in this block to that many seconds; threads started in it inherit the limit."""
    outer = _most.get()
    token = _most.set(seconds if outer is None else min(seconds, outer))
    try:
        yield
    finally:
        _most.reset(token)


def wait_seconds(usual: float) -> float:
    """Return the lock timeout in effect; `usual` is that of the settings."""
    most = _most.get()
    return usual if most is None else min(usual, most)


class _LastTimeout:
    """Time of the last lock timeout, by the monotonic clock."""

    in_vain = float("-inf")


def in_line(work: Callable[[], T]) -> Callable[[], T]:
    """Wrap `work` for a busy thread, and shorten its timeout if calls before it timed out meanwhile."""
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
