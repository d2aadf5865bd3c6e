"""Timeouts for database locks and pooled connections, per context. Pages and commands use the databases' defaults.

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
"""Lock timeout in seconds for background threads, which can retry in their next round."""

_limit: ContextVar[float | None] = ContextVar("longest_wait", default=None)


@contextmanager
def lock_timeout(seconds: float) -> Iterator[None]:
    """Limit waits for locks within the block to `seconds`; work that the block awaits in threads has the same limit."""
    outer = _limit.get()
    token = _limit.set(seconds if outer is None else min(seconds, outer))
    try:
        yield
    finally:
        _limit.reset(token)


def wait_seconds(default: float) -> float:
    """Return the lock timeout in effect in seconds; `default` is the timeout without a `lock_timeout` block."""
    limit = _limit.get()
    return default if limit is None else min(default, limit)


class _LastTimeout:
    at = float("-inf")


def queued_work(work: Callable[[], T]) -> Callable[[], T]:
    """Wrap work so that its lock timeout includes the time it waits for a busy thread.

    The waiting time counts only if other work timed out meanwhile.
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
