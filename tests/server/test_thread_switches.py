"""Python's thread switch interval is shortened only during long computations."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest

from capabilities.runtime import renew
from routing_admin.dispatch.send import run_in_own_thread
from routing_admin.platform.server.resources import SHORT_SWITCH_SECONDS, short_switches

USUAL = 0.005
SHORT = pytest.approx(SHORT_SWITCH_SECONDS)


@pytest.fixture(autouse=True)
def _usual_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL)
    renew()
    yield
    sys.setswitchinterval(before)


def test_thread_switch_interval_is_restored_after_the_last_computation() -> None:
    with short_switches():
        with short_switches():
            assert sys.getswitchinterval() == SHORT
        assert sys.getswitchinterval() == SHORT
    assert sys.getswitchinterval() == pytest.approx(USUAL)


def test_thread_switch_interval_is_restored_after_an_error() -> None:
    with pytest.raises(ValueError, match="unreadable"), short_switches():
        raise ValueError("unreadable")
    assert sys.getswitchinterval() == pytest.approx(USUAL)


@pytest.mark.django_db
def test_work_in_an_own_thread_uses_the_short_switch_interval() -> None:
    assert asyncio.run(run_in_own_thread(sys.getswitchinterval)) == SHORT
    assert sys.getswitchinterval() == pytest.approx(USUAL)
