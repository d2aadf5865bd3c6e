"""`python -m tests.bench.bench_data_plane`: `/v1` beside a lean Django proxy and the upstream itself, in one run.

Everything is on here: keys, adaptation, fallback, journal. The yardstick (`lean_proxy.py`) passes on and does nothing
else. Rounds are interleaved, so that what else the machine does falls on all of them; CPU is user and system time of
the process that serves, read from the system. Ratios of one run mean something, numbers of other machines do not.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import statistics
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.load import closed_loop, open_loop, request_bytes
from tests.bench.processes import FAILING, Served, lean_proxy, ours, upstream
from tests.bench.table import show
from tests.bench.upstream import CHUNKS, NAME, PAUSE_SECONDS

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "2"))
MB = 1_000_000


@dataclass
class Target:
    """Who is called, and what each measurement gave, round by round."""

    served: Served
    path: Callable[[str], str]
    model: Callable[[str], str]
    found: dict[str, list[float]] = field(default_factory=dict)

    def request(self, word: str, **more: Any) -> bytes:
        """A chat request that ends at what the upstream does for that word."""
        body = {"model": self.model(word), "messages": [{"role": "user", "content": "hello"}], **more}
        return request_bytes(self.served.port, self.path(word), json.dumps(body).encode(), self.served.key)

    def note(self, name: str, value: float) -> None:
        """One round's value."""
        self.found.setdefault(name, []).append(value)

    def get(self, name: str) -> float:
        """The median of the rounds; not a number where it was not measured."""
        return statistics.median(self.found.get(name, [float("nan")]))


def picture(size: int) -> dict[str, Any]:
    """A message with an image of so many bytes that no compression shortens."""
    head = b"IHDR" + struct.pack(">IIBBBBB", 1000, 1000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + os.urandom(size)
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    return {"messages": [{"role": "user", "content": parts}]}


async def small(target: Target, in_flight: int) -> None:
    """Small calls, each caller asking again at once."""
    cpu = target.served.cpu_seconds()
    taken = await closed_loop(target.served.port, target.request("plain"), in_flight, SECONDS)
    target.note(f"rate {in_flight}", len(taken) / SECONDS)
    target.note(f"cpu {in_flight}", (target.served.cpu_seconds() - cpu) / len(taken) * 1000)


async def steady(target: Target) -> None:
    """Fifty small calls a second."""
    cpu = target.served.cpu_seconds()
    taken = await open_loop(target.served.port, target.request("plain"), 50, SECONDS)
    target.note("median 50/s", statistics.median(taken))
    target.note("p99 50/s", statistics.quantiles(taken, n=100)[98])
    target.note("cpu 50/s", (target.served.cpu_seconds() - cpu) / len(taken) * 1000)


async def streams(target: Target) -> None:
    """Streams whose chunks all come at once, eight at a time; then as many whose chunks come one by one."""
    taken = await closed_loop(target.served.port, target.request("stream", stream=True), 8, SECONDS)
    target.note("streams", len(taken) / SECONDS)
    cpu = target.served.cpu_seconds()
    paced = await closed_loop(target.served.port, target.request("paced", stream=True), 8, CHUNKS * PAUSE_SECONDS / 2)
    target.note("cpu chunk", (target.served.cpu_seconds() - cpu) / (len(paced) * CHUNKS) * 1_000_000)


async def images(target: Target, megabytes: int, body: dict[str, Any]) -> None:
    """Calls with one picture, two in flight."""
    idle = target.served.memory_mb()
    target.served.forget_peak()
    cpu = target.served.cpu_seconds()
    taken = await closed_loop(target.served.port, target.request("plain", **body), 2, SECONDS)
    target.note(f"images {megabytes}", len(taken) / SECONDS)
    target.note(f"cpu image {megabytes}", (target.served.cpu_seconds() - cpu) / len(taken) * 1000)
    target.note(f"memory {megabytes}", target.served.memory_mb(peak=True) - idle)


async def failover(target: Target, number: int) -> None:
    """Calls one by one whose first candidate fails at once, and as many whose first one answers."""
    failing = [target.request(f"failover{number * 10 % FAILING + at}") for at in range(10)]
    plain: list[float] = []
    fell: list[float] = []
    for each in failing:
        plain += await _once(target, target.request("plain"))
        fell += await _once(target, each)
    target.note("failover", statistics.median(fell) - statistics.median(plain))


async def _once(target: Target, request: bytes) -> list[float]:
    return (await open_loop(target.served.port, request, 1000, 0.002))[1:]


async def measure(targets: list[Target]) -> None:
    """All measurements, each in turn on everybody, round by round."""
    ten, one = picture(10 * MB), picture(1 * MB)
    for target in targets:
        await closed_loop(target.served.port, target.request("plain"), 16, 0.5)  # warm
        target.note("idle", target.served.memory_mb())
    for number in range(ROUNDS):
        for target in targets:
            await small(target, 16)
            await small(target, 64)
        for target in targets:
            await steady(target)
            await streams(target)
        for target in targets:
            await images(target, 1, one)
            await images(target, 10, ten)
        for target in targets[1:]:
            await failover(target, number)


ROWS: tuple[tuple[str, str], ...] = (
    ("calls/s at 16", "rate 16"),
    ("calls/s at 64", "rate 64"),
    ("CPU ms per call at 16", "cpu 16"),
    ("CPU ms per call at 64", "cpu 64"),
    ("median ms at 50/s", "median 50/s"),
    ("p99 ms at 50/s", "p99 50/s"),
    ("CPU ms per call at 50/s", "cpu 50/s"),
    ("200-chunk streams/s, 8 at a time", "streams"),
    ("CPU µs per paced chunk", "cpu chunk"),
    ("1 MB images/s, 2 at a time", "images 1"),
    ("10 MB images/s, 2 at a time", "images 10"),
    ("CPU ms per 10 MB image", "cpu image 10"),
    ("MB over idle with two 10 MB images", "memory 10"),
    ("ms added by a failover", "failover"),
    ("start, s", "start"),
    ("idle, MB", "idle"),
)


@contextmanager
def everybody() -> Iterator[list[Target]]:
    """The upstream, the yardstick and ours, each ready."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="routing-admin-bench-")))
        to = stack.enter_context(upstream())
        lean = stack.enter_context(lean_proxy(to))
        own = stack.enter_context(ours(to, folder / "data"))
        yield [
            Target(to, lambda word: f"/{word}/v1/chat/completions", lambda word: NAME),
            Target(lean, lambda word: f"/{word.rstrip('0123456789')}/v1/chat/completions", lambda word: NAME),
            Target(own, lambda word: "/v1/chat/completions", model_of),
        ]


def model_of(word: str) -> str:
    """The model by which ours is asked for what the upstream does for a word."""
    return f"task:{word}" if word.startswith("failover") else f"{word}/{NAME}"


def main() -> None:
    """Prints the table: everybody's median, and ours over the yardstick's."""
    logging.disable(logging.CRITICAL)
    with everybody() as targets:
        for target in targets:
            target.note("start", target.served.start_seconds)
        asyncio.run(measure(targets))
    heads = ("", *(target.served.name for target in targets), "/v1 ÷ lean")
    lean, own = targets[1], targets[2]
    rows = [(label, *(each.get(name) for each in targets), own.get(name) / lean.get(name)) for label, name in ROWS]
    show(f"{ROUNDS} rounds of {SECONDS} s each, medians", heads, rows)


if __name__ == "__main__":
    main()
