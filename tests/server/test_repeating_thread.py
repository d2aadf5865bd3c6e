"""A background thread continues after its work fails."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError

from routing_admin.platform.server.repeating_thread import RepeatingThread


def test_work_that_fails_is_done_again():
    """The work is repeated after a failure, such as an unavailable database."""
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


def test_what_goes_on_failing_is_said_once(caplog: pytest.LogCaptureFixture):
    """A repeated error is logged once; another error and the recovery are logged too."""
    faults, enough = iter(["away", "away", "away", "locked", "locked"]), threading.Event()

    def work() -> None:
        fault = next(faults, None)
        if fault is not None:
            raise ValueError(fault)
        enough.set()

    thread = RepeatingThread("test", 0.0, work, lambda: None)
    thread.start()
    assert enough.wait(30)
    thread.stop()
    said = [record.getMessage() for record in caplog.records if record.name == RepeatingThread.__module__]
    assert said == [
        "the work of the thread test failed: ValueError: away",
        "the work of the thread test failed: ValueError: locked",
        "the work of the thread test works again after 5 failed attempts",
    ]
