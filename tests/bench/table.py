"""Helpers for the benchmarks, which measure in rounds and print a plain text table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence


def milliseconds(
    work: Callable[[], object], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Run `work` repeatedly and return the duration of each run in milliseconds, as measured by `clock`."""
    durations = []
    for _ in range(rounds):
        started = clock()
        work()
        durations.append((clock() - started) * 1000)
    return durations


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[18] if len(values) > 1 else values[0]


def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in [list(heads), *cells]) for column in range(len(heads))]
    print(f"\n{title}")
    for line in [list(heads), *cells]:
        first, *others = line
        padded = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *padded]).rstrip())
