"""Show the progress of long work and the time left, in one changing line on a terminal or else in repeated lines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.core.management.base import OutputWrapper

from capabilities.runtime import owned

SILENT_SECONDS = 3.0
"""Seconds of work before any progress is shown."""
LINE_SECONDS = 5.0
"""Seconds between progress lines if the output is not a terminal."""
TERMINAL_SECONDS = 0.5


@dataclass(slots=True)
class WorkProgress:
    """Progress of long work; `total` is 0 if the amount of work is unknown."""

    name: str
    total: int
    out: OutputWrapper | None
    clock: Callable[[], float] = time.monotonic
    count: int = 0
    began: float = field(init=False)
    _next: float = field(init=False)
    _is_shown: bool = False

    def __post_init__(self) -> None:
        self.began = self.clock()
        self._next = self.began + SILENT_SECONDS

    def advance(self, count: int = 1) -> None:
        self.count += count
        self.show()

    def show(self) -> None:
        """Show the progress, unless it was shown a moment ago."""
        now = self.clock()
        if self.out is None or now < self._next:
            return
        is_terminal = self.out.isatty()
        self._next = now + (TERMINAL_SECONDS if is_terminal else LINE_SECONDS)
        self._is_shown = is_terminal
        self.out.write(f"\r{self.line(now)}\033[K" if is_terminal else f"{self.line(now)}\n", ending="")
        self.out.flush()

    def line(self, now: float) -> str:
        spent = now - self.began
        if not self.total and not self.count:
            return f"{self.name}: {spent:.0f} s"
        if not self.total:
            return f"{self.name}: {self.count:,} so far, {spent:.0f} s"
        left = spent * max(self.total - self.count, 0) / self.count if self.count else 0
        part = f"{self.name}: {self.count:,} of {self.total:,}"
        return f"{part}, about {left:.0f} s left" if self.count else f"{part}, {spent:.0f} s so far"

    def close(self) -> None:
        if self._is_shown and self.out is not None:
            self.out.write("\r\033[K", ending="")
            self.out.flush()


@dataclass(slots=True)
class _ProgressStream:
    out: OutputWrapper | None = None


_stream = owned(_ProgressStream)


@contextmanager
def progress_output(out: OutputWrapper) -> Iterator[None]:
    """Within the block, show the progress of all work on this stream."""
    stream = _stream()
    before, stream.out = stream.out, out
    try:
        yield
    finally:
        stream.out = before


@contextmanager
def show_progress(name: str, total: int = 0) -> Iterator[WorkProgress]:
    counter = WorkProgress(name, total, _stream().out)
    try:
        yield counter
    finally:
        counter.close()


@contextmanager
def watch_progress(name: str, total: int, measure: Callable[[], int]) -> Iterator[None]:
    """Show the progress of one long call in the block. A thread measures it, because the call itself cannot."""
    ended = threading.Event()
    with show_progress(name, total) as counter:

        def watch() -> None:
            while not ended.wait(TERMINAL_SECONDS):
                counter.count = measure()
                counter.show()

        thread = threading.Thread(target=watch, daemon=True)
        if counter.out is not None:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if counter.out is not None:
                thread.join()
