"""A journal with a spool of its own, and the wait for what the database did not take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from routing_admin.request_log.journal import Journal


@contextmanager
def spooling_journal(folder: Path) -> Iterator[Journal]:
    """A journal whose files are in that folder."""
    made = Journal(folder=lambda: folder / "spool")
    yield made
    made.spool.close()


def catch_up(journal: Journal) -> None:
    """Write what waits, as soon as it is tried again."""
    until = time.monotonic() + 30
    while journal.behind_since is not None and time.monotonic() < until:
        journal.flush()
    assert journal.behind_since is None
