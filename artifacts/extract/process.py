"""Run the extraction process on a file, with a time limit, and read its result, with a size limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from artifacts.core.store import LocalFile
from capabilities.fair_slots import FairSlots, OverloadedError, heavy_work, requester
from capabilities.runtime import owned

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of an extraction process: wall-clock seconds, and seconds of processor time in a quick slot.

    With `yields_at_once`, the process has a low priority from the start, otherwise only after `confine.YIELD_SECONDS`.
    """

    seconds: float = TIMEOUT_SECONDS
    quick_seconds: float = 0
    yields_at_once: bool = False


QUICK = Budget(6.0, 0.5)
"""Limits in a quick slot. The time cannot be predicted from the file size: a PDF of 49 KB can take twenty seconds."""

long_slots = owned(lambda: FairSlots(slots=2, queue=64, wait_seconds=TIMEOUT_SECONDS))
"""Process slots with a long time limit. During a burst of uploads, requests wait for a slot, so that memory does not
run out."""
quick_slots = owned(lambda: FairSlots(slots=2, queue=64, wait_seconds=TIMEOUT_SECONDS, max_per_name=1))
"""Additional process slots, at most one per agent, so that small files need not wait for other agents' large files."""

BYTES_PER_PATIENCE_SECOND, MAX_PATIENCE = 1024 * 1024, 5.0
"""A file waits to let smaller ones go first: one second per MiB of its size, but at most `MAX_PATIENCE` seconds."""

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Result:
    """A JSON header and bytes, or the `reason` why there are none.

    Reasons are `timeout`, `busy`, `too_large`, `crashed`, or those of the extraction process (`encrypted`,
    `unsupported`, `failed`).
    """

    header: Mapping[str, object] = field(default_factory=dict)
    payload: bytes = b""
    reason: str = ""


def run(
    path: LocalFile,
    operation: str,
    options: Mapping[str, object],
    *,
    max_output: int,
    timeout: float = TIMEOUT_SECONDS,
    is_quick: bool = True,
) -> Result:
    """Perform an operation on a file. Never raise an exception.

    At most `max_output` bytes of output are accepted. `timeout` is in seconds. If both long slots are occupied, the
    file is processed in a quick slot, unless it is known to be slow (`is_quick` is False). If this times out, it is
    processed again when its agent (the `requester`) gets a long slot.
    """
    name = requester.get()
    try:
        with heavy_work().pause(), path.open("rb") as source:
            return _run_in_slot(name, source.fileno(), operation, options, max_output, timeout, is_quick=is_quick)
    except OverloadedError:
        return Result(reason="busy")
    except (OSError, ValueError):
        return Result(reason="failed")


def _run_in_slot(
    name: str,
    source: int,
    operation: str,
    options: Mapping[str, object],
    max_output: int,
    timeout: float,
    *,
    is_quick: bool,
) -> Result:
    if not long_slots().acquire_at_once(name):
        if is_quick:
            patience = min(os.fstat(source).st_size / BYTES_PER_PATIENCE_SECOND, MAX_PATIENCE)
            with quick_slots().hold(name, patience):
                result = _run(source, operation, options, max_output, QUICK)
            if result.reason != "timeout":
                return result
        long_slots().acquire(name, 0 if is_quick else MAX_PATIENCE)
    try:
        return _run(source, operation, options, max_output, Budget(timeout, yields_at_once=not is_quick))
    finally:
        long_slots().release(name)


def _run(source: int, operation: str, options: Mapping[str, object], max_output: int, budget: Budget) -> Result:
    os.lseek(source, 0, os.SEEK_SET)  # An earlier process in a quick slot may have read part of the file.
    child = _start(source, operation, json.dumps(dict(options)), budget)
    timed_out = threading.Event()

    def stop() -> None:
        timed_out.set()
        child.kill()

    timer = threading.Timer(budget.seconds, stop)
    timer.start()
    try:
        output = child.stdout.read(max_output + 1) if child.stdout else b""
    finally:
        timer.cancel()
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()
    is_over = timed_out.is_set() or -child.returncode in (signal.SIGXCPU, signal.SIGPROF)
    if is_over:
        return Result(reason="timeout")
    return Result(reason="too_large") if len(output) > max_output else parse_output(output)


def _start(source: int, operation: str, options: str, budget: Budget) -> subprocess.Popen[bytes]:
    limits = (str(budget.quick_seconds), str(int(budget.yields_at_once)))
    return start_reader(operation, options, *limits, stdin=source)


def start_reader(*arguments: str, stdin: int) -> subprocess.Popen[bytes]:
    """Start the program `__main__.py` of this package."""
    # The environment is not inherited, because it contains secrets.
    program = str(ROOT / "artifacts" / "extract" / "__main__.py")
    return subprocess.Popen(  # noqa: S603 - our own interpreter and program, no shell
        [sys.executable, "-s", "-E", "-B", "-W", "ignore", program, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"LANG": "C.UTF-8"},
        cwd=ROOT,
        close_fds=True,
    )


def parse_output(output: bytes) -> Result:
    """Return the result that the process wrote, or the reason `crashed` if it is incomplete."""
    header_line, _, payload = output.partition(b"\n")
    try:
        header = json.loads(header_line)
    except ValueError:
        return Result(reason="crashed")
    if not isinstance(header, dict) or header.get("bytes") != len(payload):
        return Result(reason="crashed")
    return Result(header, payload, str(header.get("reason", "")))
