"""A thread beside the requests outlives what happens to its work."""

from __future__ import annotations

import threading

from django.db import OperationalError

from routing_admin.server.repeating_thread import RepeatingThread


def test_work_that_fails_is_done_again():
    """As when the database is away for a round."""
    rounds, enough = [], threading.Event()

    def work() -> None:
        rounds.append(1)
        if len(rounds) < 3:
            raise OperationalError("away")
        enough.set()

    thread = RepeatingThread("test", 0.0, work, lambda: None)
    thread.start()
    assert enough.wait(30)
    thread.stop()
