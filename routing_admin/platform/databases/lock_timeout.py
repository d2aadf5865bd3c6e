"""Timeouts for database locks and pooled connections, per context. Pages and commands use the settings' timeout.

The gateway sets a shorter timeout for all code that it calls.
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

_limit: ContextVar[float | None] = ContextVar("longest_wait", default=None)


@contextmanager
def lock_timeout(seconds: float) -> Iterator[None]:
    """Limit the waits for locks in this block to `seconds`; threads started in it inherit the limit."""
    outer = _limit.get()
    token = _limit.set(seconds if outer is None else min(seconds, outer))
    try:
        yield
    finally:
        _limit.reset(token)


def wait_seconds(default: float) -> float:
    """Return the lock timeout in effect; `default` is the timeout in the settings."""
    limit = _limit.get()
    return default if limit is None else min(default, limit)


class _LastTimeout:
    at = float("-inf")


def queued_work(work: Callable[[], T]) -> Callable[[], T]:
    """Wrap `work` for a thread that may be busy.

    The lock timeout of `work` is shortened if earlier work timed out while `work` was queued.
    """
    limit, requested_at = _limit.get(), time.monotonic()

    def run() -> T:
        if limit is None:
            return work()
        waited = time.monotonic() - requested_at if _LastTimeout.at > requested_at else 0.0
        with lock_timeout(max(0.0, limit - waited)):
            try:
                return work()
            except OperationalError:
                _LastTimeout.at = time.monotonic()
                raise

    return run
