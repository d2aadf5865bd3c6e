"""Agents share a few extraction processes fairly: one agent's slow files do not delay other agents' small files."""

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
from tests.processes import wait_until

OPTIONS = {"reader": "pdf", "max_chars": 99}


class ReadingThread:
    def __init__(self, file: Any, agent: str, done: list[str], *, is_quick: bool = True) -> None:
        self._is_quick = is_quick
        self.result: Result | None = None
        self._file, self._agent, self._done = file, agent, done
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        requester.set(self._agent)
        self.result = run(self._file, "text", OPTIONS, max_output=4096, is_quick=self._is_quick)
        self._done.append(self._agent)

    def end(self) -> Result:
        self._thread.join(60)
        assert self.result is not None
        return self.result


@contextmanager
def held_slots(slots: FairSlots, name: str, count: int) -> Iterator[ExitStack]:
    """Occupy `count` slots for an agent. `close` on the yielded object releases them early."""
    with ExitStack() as stack:
        for _ in range(count):
            slots.acquire(name)
            stack.callback(slots.release, name)
        yield stack


@pytest.fixture
def longer_quick_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow more time for small files, since reading may take longer than usual on a busy machine."""
    monkeypatch.setattr(process, "QUICK", Budget(60.0, 20.0))


@pytest.mark.usefixtures("longer_quick_limit")
def test_small_file_is_read_during_long_work_of_another_agent(write_file: Any) -> None:
    with held_slots(long_slots(), "many", 2):
        token = requester.set("other")
        result = run(write_file(pdf("words")), "text", OPTIONS, max_output=4096)
        requester.reset(token)
    assert (result.reason, b"words" in result.payload) == ("", True)


def test_extraction_waiting_for_a_slot_releases_its_heavy_work_slot(write_file: Any) -> None:
    file, results = write_file(pdf("long")), list[Result]()

    def work() -> None:
        requester.set("many")
        with heavy_work().hold():
            results.append(run(file, "text", OPTIONS, max_output=4096))

    with held_slots(long_slots(), "x", 2), held_slots(quick_slots(), "many", 1):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        wait_until(lambda: quick_slots().waiting == 1)
        assert heavy_work().acquire_at_once("other")
    wait_until(lambda: heavy_work().waiting == 1)
    heavy_work().release("other")
    thread.join(60)
    assert b"long" in results[0].payload


def test_file_that_exceeds_the_quick_time_is_read_in_a_long_slot(
    write_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extraction releases its quick slot, waits for a long slot, and then starts over."""
    # No file can be read in such a short time.
    monkeypatch.setattr(process, "QUICK", Budget(0.001))
    with held_slots(long_slots(), "many", 2) as long_work:
        reading = ReadingThread(write_file(pdf("long")), "other", [])
        wait_until(lambda: long_slots().waiting == 1)
        assert quick_slots().acquire_at_once("a third one")
        quick_slots().release("a third one")
        long_work.close()
    assert b"long" in reading.end().payload


def test_file_that_exceeds_the_quick_cpu_time_is_read_in_a_long_slot(
    write_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal ends the process if it exceeds the CPU limit. This does not count as a crash."""
    monkeypatch.setattr(process, "QUICK", Budget(60.0, 0.001))
    with held_slots(long_slots(), "many", 2) as long_work:
        reading = ReadingThread(write_file(pdf("long")), "other", [])
        wait_until(lambda: long_slots().waiting == 1)
        long_work.close()
    assert b"long" in reading.end().payload


@pytest.mark.usefixtures("longer_quick_limit")
def test_many_files_of_one_agent_leave_a_slot_for_another(write_file: Any) -> None:
    finished_agents: list[str] = []
    with held_slots(long_slots(), "x", 2), held_slots(quick_slots(), "many", 1) as quick:
        file, readings = write_file(pdf("words")), []
        for count in range(1, 5):
            readings.append(ReadingThread(file, "many", finished_agents))
            wait_until(lambda count=count: quick_slots().waiting == count)
        assert ReadingThread(file, "other", finished_agents).end().reason == ""
        assert (finished_agents, quick_slots().waiting) == (["other"], 4)
        quick.close()
        for reading in readings:
            assert reading.end().reason == ""


def test_full_queue_is_reported_as_busy_immediately(write_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_slots(), "queue", 0)
    with held_slots(long_slots(), "x", 2), held_slots(quick_slots(), "y", 1), held_slots(quick_slots(), "z", 1):
        assert run(write_file(pdf("x")), "text", OPTIONS, max_output=4096).reason == "busy"


def test_scan_waits_for_a_long_slot_while_a_small_file_is_read(write_file: Any) -> None:
    """Work that is known to be slow does not use a quick slot."""
    finished_agents: list[str] = []
    with held_slots(long_slots(), "x", 2) as long_work:
        scans = [ReadingThread(write_file(pdf("scan")), "many", finished_agents, is_quick=False) for _ in range(3)]
        wait_until(lambda: long_slots().waiting == 3)
        assert quick_slots().acquire_at_once("many")
        quick_slots().release("many")
        long_work.close()
    assert [scan.end().reason for scan in scans] == [""] * 3


def wait_for(slots: FairSlots, name: str, patience: float, served: list[str], label: str) -> None:
    def take() -> None:
        slots.acquire(name, patience)
        served.append(label)
        slots.release(name)

    waiting = slots.waiting
    threading.Thread(target=take, daemon=True).start()
    wait_until(lambda: slots.waiting > waiting)


@pytest.mark.parametrize(("patience", "order"), [(60.0, ["small", "large"]), (0.0, ["large", "small"])])
def test_small_file_is_read_before_a_larger_file_of_the_same_agent(patience: float, order: list[str]) -> None:
    """A small file does not overtake a larger one that has already waited for a long time."""
    slots, served = FairSlots(slots=1, queue=9, wait_seconds=60), list[str]()
    slots.acquire("x")
    wait_for(slots, "a", patience, served, "large")
    wait_for(slots, "a", 0.0, served, "small")
    slots.release("x")
    wait_until(lambda: len(served) == 2)
    assert served == order
