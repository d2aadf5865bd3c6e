"""Test helpers: a request journal with its own spool, and a function that waits until its entries are written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from routing_admin.request_log.journal import Journal


@contextmanager
def spooling_journal(folder: Path) -> Iterator[Journal]:
    journal = Journal(folder=lambda: folder / "spool")
    yield journal
    journal.spool.close()


def catch_up(journal: Journal) -> None:
    until = time.monotonic() + 30
    while journal.behind_since is not None and time.monotonic() < until:
        journal.flush()
        time.sleep(0.01)
    assert journal.behind_since is None
