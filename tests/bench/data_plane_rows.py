"""The rows of the data plane benchmark's table: each has a measurement, a comparison and a goal."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

SECONDS = float(os.environ.get("BENCH_SECONDS", "2"))
CALLS = int(os.environ.get("BENCH_CALLS", "10000"))
STEADY_CALLS, STEADY_SECONDS = 500, 5 * SECONDS

Get = Callable[[str], float]
"""A function that returns a named measurement of a server, or NaN if there is none."""

Base = Callable[[Get, Get, str], float]


def over_lean(own: Get, lean: Get, name: str) -> float:
    return own(name) / lean(name)


def more_than_lean(own: Get, lean: Get, name: str) -> float:
    return own(name) - lean(name)


def over_one_worker(own: Get, lean: Get, name: str) -> float:
    return own(name) / own("cpu workers")


def alone(own: Get, lean: Get, name: str) -> float:
    return own(name)


UNITS: Mapping[Base, str] = MappingProxyType(
    {over_lean: "× lean", over_one_worker: "× one", more_than_lean: "over lean", alone: ""}
)


@dataclass(frozen=True)
class Row:
    """A table row. `base` computes the result from the measurements of our server and of the lean proxy.

    The goal, if any, applies to the result.
    """

    label: str
    name: str
    at_most: float | None = None
    at_least: float | None = None
    base: Base = over_lean

    def cells(self, upstream: Get, lean: Get, own: Get) -> tuple[object, ...]:
        value, values = self.base(own, lean, self.name), [get(self.name) for get in (upstream, lean, own)]
        cells = ["" if math.isnan(number) else number for number in (*values, value)]
        if self.at_most is not None:
            return (self.label, *cells, f"≤ {self.at_most:g} {UNITS[self.base]}", _yes_or_no(value <= self.at_most))
        if self.at_least is not None:
            return (self.label, *cells, f"≥ {self.at_least:g} {UNITS[self.base]}", _yes_or_no(value >= self.at_least))
        return (self.label, *cells, "", "")


def _yes_or_no(condition: bool) -> str:
    return "yes" if condition else "no"


ROWS: tuple[Row, ...] = (
    Row("calls/s at 16", "rate 16", at_least=0.6),
    Row("calls/s at 64", "rate 64", at_least=0.6),
    Row("CPU ms per call at 16", "cpu 16", at_most=1.6),
    Row("CPU ms per call at 64", "cpu 64", at_most=1.6),
    Row("CPU ms per call with two workers", "cpu two workers", at_most=1.3, base=over_one_worker),
    Row("median ms at 50/s", "median 50/s", at_most=0.5, base=more_than_lean),
    Row("p99 ms at 50/s", "p99 50/s"),
    Row("CPU ms per call at 50/s", "cpu 50/s", at_most=1.6),
    Row("200-chunk streams/s, 8 at a time", "streams", at_least=0.5),
    Row("CPU µs per paced chunk", "cpu chunk", at_most=1.3),
    Row("1 MB images/s, 2 at a time", "images 1", at_least=0.7),
    Row("10 MB images/s, 2 at a time", "images 10", at_least=0.8),
    Row("CPU ms per 10 MB image", "cpu image 10"),
    Row("MB over idle with two 10 MB images", "memory 10", at_most=110, base=alone),
    Row("ms added by a failover", "failover", at_most=1.5),
    Row("start, s", "start", at_most=2, base=alone),
    Row("idle before the first call, MB", "idle", at_most=110, base=alone),
    Row("idle once warm, MB", "warm", base=alone),
    Row(f"MB over idle after {CALLS} calls", "growth", base=alone),
    Row(f"answered of {STEADY_CALLS * STEADY_SECONDS:g} at {STEADY_CALLS}/s", "answered", base=alone,
        at_least=STEADY_CALLS * STEADY_SECONDS),
    Row("answered calls missing in the log after SIGTERM", "lost", at_most=0, base=alone),
    Row("age in ms of the oldest answered call lost by kill -9", "killed", at_most=100, base=alone),
)  # fmt: skip
"""All measurements with their goals."""
