"""A background thread that repeats its work continues after a failure."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError

from routing_admin.platform.server.repeating_thread import RepeatingThread


def test_work_is_repeated_after_a_failure():
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


def test_repeated_error_is_logged_once(caplog: pytest.LogCaptureFixture):
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
    messages = [record.getMessage() for record in caplog.records if record.name == RepeatingThread.__module__]
    assert messages == [
        "the work of the thread test failed: ValueError: away",
        "the work of the thread test failed: ValueError: locked",
        "the work of the thread test works again after 5 failed attempts",
    ]
