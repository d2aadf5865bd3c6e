"""Whether this process's threads borrow their connections of a pool: those of a server do, a command has its own."""

from __future__ import annotations

from threading import Event

_pooled = Event()
is_pooled = _pooled.is_set


def pool_connections() -> None:
    """From now on a thread has a connection as long as it needs one; engines without a pool go on as before."""
    _pooled.set()
