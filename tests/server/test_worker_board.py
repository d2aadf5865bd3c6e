"""Metrics of a server with several processes: totals over the processes, ended processes, and leftover directories."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from routing_admin.platform.server.metrics import MetricFamily
from routing_admin.platform.server.worker_board import PREFIX, WorkerBoard, shared_folder

OTHER_PROCESS = """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
from routing_admin.platform.server.metrics import MetricFamily
from routing_admin.platform.server.worker_board import WorkerBoard
numbers = [
    MetricFamily(name="calls", explanation="", values={(): 5}, only_grows=True),
    MetricFamily(name="seconds", explanation="", values={(): [1, 2, 3.5]}, buckets=(1.0,)),
    MetricFamily(name="open", explanation="", values={(): 7}),
    MetricFamily(name="cooling", explanation="", values={("b",): 9}, labels=("provider",), is_largest=True),
]
WorkerBoard([lambda: numbers]).start(sys.argv[1])
print("published", flush=True)
sys.stdin.read()
"""


def families() -> list[MetricFamily]:
    return [
        MetricFamily(name="calls", explanation="", values={(): 10}, only_grows=True),
        MetricFamily(name="seconds", explanation="", values={(): [1, 0, 0.5]}, buckets=(1.0,)),
        MetricFamily(name="open", explanation="", values={(): 1}),
        MetricFamily(
            name="cooling", explanation="", values={("a",): 3, ("b",): 4}, labels=("provider",), is_largest=True
        ),
    ]


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start another process of the same server, and wait until it has published its metrics."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"published\n"
        yield process
        process.kill()


def collected_values(board: WorkerBoard) -> dict[str, object]:
    return {family.name: family.values for family in board.collect()[0]}


def test_scrape_sums_the_metrics_of_all_processes(tmp_path: Path, other_process: subprocess.Popen[bytes]) -> None:
    board = WorkerBoard([families])
    board.start(str(tmp_path))
    assert collected_values(board) == {
        "calls": {(): 15},
        "seconds": {(): [2, 2, 4.0]},
        "open": {(): 8},
        "cooling": {("a",): 3, ("b",): 9},
    }
    assert board.collect()[1] == {"0": other_process.pid, "1": os.getpid()}
    board.stop()


def test_counters_of_a_killed_process_stay_and_its_gauges_disappear(
    tmp_path: Path, other_process: subprocess.Popen[bytes]
) -> None:
    board, after = WorkerBoard([families]), WorkerBoard([families])
    board.start(str(tmp_path))
    other_process.send_signal(signal.SIGKILL)
    other_process.wait()
    counters = {"calls": {(): 15}, "seconds": {(): [2, 2, 4.0]}}
    assert collected_values(board) == counters | {"open": {(): 1}, "cooling": {("a",): 3, ("b",): 4}}
    assert board.collect()[1] == {"1": os.getpid()}
    after.start(str(tmp_path))
    assert sorted(board.collect()[1]) == ["0", "1"]
    grown = {"calls": {(): 25}, "seconds": {(): [3, 2, 4.5]}}
    assert collected_values(board) == grown | {"open": {(): 2}, "cooling": {("a",): 3, ("b",): 4}}
    after.stop()
    assert collected_values(board) == grown | {"open": {(): 1}, "cooling": {("a",): 3, ("b",): 4}}
    board.stop()


def test_counter_never_decreases_while_its_file_cannot_be_written(tmp_path: Path) -> None:
    """If a process cannot write its metrics file, it reports the counters from its last write."""
    counted = [10]
    board = WorkerBoard(
        [lambda: [MetricFamily(name="calls", explanation="", values={(): counted[0]}, only_grows=True)]]
    )
    board.start(str(tmp_path))
    (tmp_path / "0.new").mkdir()  # This makes the process unable to write its metrics file.
    counted[0] = 99
    assert collected_values(board)["calls"] == {(): 10}
    (tmp_path / "0.new").rmdir()
    assert collected_values(board)["calls"] == {(): 99}
    board.stop()


def test_process_without_the_shared_folder_reports_its_own_metrics(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    board = WorkerBoard([families])
    board.start(str(tmp_path / "gone"))
    assert collected_values(board)["calls"] == {(): 10}
    assert "one process alone" in caplog.text
    board.stop()


def test_server_removes_its_metrics_folder_and_folders_of_killed_servers() -> None:
    with shared_folder() as first:
        orphan = first.with_name(f"{PREFIX}left")
        orphan.mkdir()
        (orphan / "0.lock").touch()
        (orphan / "0.json").write_text(json.dumps([1, []]))
        with shared_folder() as second:
            assert first.is_dir()
            assert second.is_dir()
            assert not orphan.exists()
        assert not second.exists()
    assert not first.exists()
