"""Files are read by few processes, shared between agents: long work of one keeps no other's small file waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from samples import pdf

from artifacts.extract import process
from artifacts.extract.process import Budget, Result, long_slots, quick_slots, run
from capabilities.fair_slots import FairSlots, heavy_work, requester

OPTIONS = {"reader": "pdf", "max_chars": 99}


class Reading:
    """A file that is read in a thread for an agent."""

    def __init__(self, file: Any, agent: str, done: list[str]) -> None:
        self.result: Result | None = None
        self._file, self._agent, self._done = file, agent, done
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        requester.set(self._agent)
        self.result = run(self._file, "text", OPTIONS, max_output=4096)
        self._done.append(self._agent)

    def end(self) -> Result:
        """What came of it."""
        self._thread.join(60)
        assert self.result is not None
        return self.result


def wait_for(slots: FairSlots, waiting: int) -> None:
    """Return once so many wait for a slot."""
    pause = threading.Event()
    while slots.waiting != waiting:
        pause.wait(0.01)


@contextmanager
def taken(slots: FairSlots, name: str, count: int) -> Iterator[ExitStack]:
    """So many slots are that agent's; `close` gives them back one by one."""
    with ExitStack() as stack:
        for _ in range(count):
            slots.acquire(name)
            stack.callback(slots.release, name)
        yield stack


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy with other tests may read no small file in six seconds."""
    monkeypatch.setattr(process, "QUICK", Budget(60.0, 20.0))


@pytest.mark.usefixtures("patient")
def test_a_small_file_is_read_while_long_work_of_another_agent_goes_on(kept: Any) -> None:
    """One agent's long work holds both slots for it, and others' files pass by."""
    with taken(long_slots(), "many", 2):
        token = requester.set("other")
        result = run(kept(pdf("words")), "text", OPTIONS, max_output=4096)
        requester.reset(token)
    assert (result.reason, b"words" in result.payload) == ("", True)


def test_others_compute_while_a_reader_is_waited_for(kept: Any) -> None:
    """A large body whose PDF is looked into keeps no other agent's from being parsed; it goes on when it can."""
    file, done = kept(pdf("long")), list[Result]()

    def work() -> None:
        requester.set("many")
        with heavy_work().hold():
            done.append(run(file, "text", OPTIONS, max_output=4096))

    with taken(long_slots(), "x", 2), taken(quick_slots(), "many", 1):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        wait_for(quick_slots(), 1)
        assert heavy_work().acquire_at_once("other")
    wait_for(heavy_work(), 1)
    heavy_work().release("other")
    thread.join(60)
    assert b"long" in done[0].payload


def test_what_is_not_done_in_the_quick_slot_is_read_in_a_long_one(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for one, leaves the quick slot to others meanwhile, and is read from its beginning."""
    monkeypatch.setattr(process, "QUICK", Budget(0.001))
    with taken(long_slots(), "many", 2) as held:
        reading = Reading(kept(pdf("long")), "other", [])
        wait_for(long_slots(), 1)
        assert quick_slots().acquire_at_once("a third one")
        quick_slots().release("a third one")
        held.close()
    assert b"long" in reading.end().payload


def test_what_takes_more_processor_time_than_is_quick_is_read_in_a_long_slot(
    kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not crashed, whatever signal ended it."""
    monkeypatch.setattr(process, "QUICK", Budget(60.0, 0.001))
    with taken(long_slots(), "many", 2) as held:
        reading = Reading(kept(pdf("long")), "other", [])
        wait_for(long_slots(), 1)
        held.close()
    assert b"long" in reading.end().payload


@pytest.mark.usefixtures("patient")
def test_another_agent_waits_for_no_quick_slot_however_many_files_one_of_them_has(kept: Any) -> None:
    """Each has one of its own while there are two, and its further files wait for that."""
    done: list[str] = []
    with taken(long_slots(), "x", 2), taken(quick_slots(), "many", 1) as quick:
        file, readings = kept(pdf("words")), []
        for count in range(1, 5):
            readings.append(Reading(file, "many", done))
            wait_for(quick_slots(), count)
        assert Reading(file, "other", done).end().reason == ""
        assert (done, quick_slots().waiting) == (["other"], 4)
        quick.close()
        for each in readings:
            assert each.end().reason == ""


def test_more_work_than_may_wait_is_busy_at_once(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread waits without end."""
    monkeypatch.setattr(quick_slots(), "queue", 0)
    with taken(long_slots(), "x", 2), taken(quick_slots(), "y", 1), taken(quick_slots(), "z", 1):
        assert run(kept(pdf("x")), "text", OPTIONS, max_output=4096).reason == "busy"
