"""`python -m tests.bench.bench_data_plane`: compare `/v1` with a lean Django proxy and the upstream in one run.

All features are enabled: keys, adaptation of files to models, fallback and the request log. The baseline
(`lean_proxy.py`) only forwards. The servers' rounds are interleaved, so that other load on the machine affects all
servers. CPU is the serving processes' user and system time. Ratios within a run are comparable; absolute numbers from
different machines are not. `BENCH_ROUNDS`, `BENCH_SECONDS` and `BENCH_CALLS` change the duration, which is less than
four minutes by default.
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
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.data_plane_rows import CALLS, ROWS, SECONDS, STEADY_CALLS, STEADY_SECONDS
from tests.bench.kills import KILLS, LOADED_SECONDS, STEP_SECONDS, call_until_killed, oldest_missing
from tests.bench.load import closed_loop, connect, open_loop, request_bytes
from tests.bench.processes import FAILING, FAILOVERS, Served, gateway, install, lean_proxy, read_log, serve, upstream
from tests.bench.table import show
from tests.bench.upstream import CHUNKS, NAME, PAUSE_SECONDS

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
MB = 1_000_000


@dataclass
class Target:
    """A server under test, and its measurements by round."""

    served: Served
    path: Callable[[str], str]
    model: Callable[[str], str]
    measurements: dict[str, list[float]] = field(default_factory=dict)

    def request(self, behaviour: str, **options: Any) -> bytes:
        """Return a chat request that makes the upstream behave in this way."""
        body = {"model": self.model(behaviour), "messages": [{"role": "user", "content": "hello"}], **options}
        return request_bytes(self.served.port, self.path(behaviour), json.dumps(body).encode(), self.served.key)

    def note(self, name: str, value: float) -> None:
        self.measurements.setdefault(name, []).append(value)

    def get(self, name: str) -> float:
        """Return a measurement's median over all rounds, or NaN if nothing was measured under this name."""
        return statistics.median(self.measurements.get(name, [float("nan")]))


def picture(size: int) -> dict[str, Any]:
    head = b"IHDR" + struct.pack(">IIBBBBB", 1000, 1000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + os.urandom(size)
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    return {"messages": [{"role": "user", "content": parts}]}


async def small(target: Target, in_flight: int, name: str = "") -> None:
    cpu = target.served.cpu_seconds()
    durations = await closed_loop(target.served.port, target.request("plain"), in_flight, SECONDS)
    target.note(f"rate {name or in_flight}", len(durations) / SECONDS)
    target.note(f"cpu {name or in_flight}", (target.served.cpu_seconds() - cpu) / len(durations) * 1000)


async def steady(target: Target) -> None:
    cpu = target.served.cpu_seconds()
    durations = await open_loop(target.served.port, target.request("plain"), 50, SECONDS)
    target.note("median 50/s", statistics.median(durations))
    target.note("p99 50/s", statistics.quantiles(durations, n=100)[98])
    target.note("cpu 50/s", (target.served.cpu_seconds() - cpu) / len(durations) * 1000)


async def streams(target: Target) -> None:
    """Request streams, eight at a time: first streams without delays between chunks, then streams with delays."""
    durations = await closed_loop(target.served.port, target.request("stream", stream=True), 8, SECONDS)
    target.note("streams", len(durations) / SECONDS)
    cpu = target.served.cpu_seconds()
    paced = await closed_loop(target.served.port, target.request("paced", stream=True), 8, CHUNKS * PAUSE_SECONDS / 2)
    target.note("cpu chunk", (target.served.cpu_seconds() - cpu) / (len(paced) * CHUNKS) * 1_000_000)


async def images(target: Target, megabytes: int, body: dict[str, Any]) -> None:
    idle = target.served.memory_mb()
    target.served.forget_peak()
    cpu = target.served.cpu_seconds()
    durations = await closed_loop(target.served.port, target.request("plain", **body), 2, SECONDS)
    target.note(f"images {megabytes}", len(durations) / SECONDS)
    target.note(f"cpu image {megabytes}", (target.served.cpu_seconds() - cpu) / len(durations) * 1000)
    target.note(f"memory {megabytes}", target.served.memory_mb(peak=True) - idle)


async def failover(target: Target, number: int) -> None:
    """Measure calls whose first candidate fails immediately, alternating with calls whose first candidate answers.

    Each route is called once before the measurement, so that it is already planned. No provider fails three times,
    because that would start a cooldown.
    """
    connection = await connect(target.served.port)

    async def ask(behaviour: str) -> float:
        request, started = target.request(behaviour), time.perf_counter()
        if await connection.ask(request) != 200:
            raise RuntimeError(f"{target.served.name} fails at {behaviour}")
        return (time.perf_counter() - started) * 1000

    behaviours = [f"failover{index}" for index in range(number * FAILOVERS, (number + 1) * FAILOVERS)]
    for behaviour in behaviours:
        await ask(behaviour)
    pairs = [(await ask("plain"), await ask(behaviour)) for behaviour in behaviours]
    connection.transport.close()
    plain, failed = zip(*pairs, strict=True)
    target.note("failover", statistics.median(failed) - statistics.median(plain))


async def measure(targets: list[Target]) -> None:
    ten, one = picture(10 * MB), picture(1 * MB)
    for target in targets:
        target.note("idle", target.served.memory_mb())
        await closed_loop(target.served.port, target.request("plain"), 16, 0.5)
        target.note("warm", target.served.memory_mb())
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
        if number < FAILING // FAILOVERS:
            for target in targets[1:]:
                await failover(target, number)


async def compare_workers(single: Target, double: Target) -> None:
    """Measure the CPU time of a small call, alternating between one worker process and two."""
    await closed_loop(double.served.port, double.request("plain"), 16, 2)  # Wait until both workers have started.
    for _ in range(ROUNDS):
        for target in (single, double):
            await small(target, 16, "workers")
    single.note("cpu two workers", double.get("cpu workers"))


async def run_long(target: Target) -> int:
    """Send many calls to a new server and record its memory, then send calls at a fixed rate.

    Return the number of answered calls.
    """
    answered = len(await closed_loop(target.served.port, target.request("plain"), 16, 0.5))
    idle, until = target.served.memory_mb(), answered + CALLS
    while answered < until:
        answered += len(await closed_loop(target.served.port, target.request("plain"), 16, 0.5))
    target.note("growth", target.served.memory_mb() - idle)
    durations = await open_loop(target.served.port, target.request("plain"), STEADY_CALLS, STEADY_SECONDS)
    target.note("answered", len(durations))
    return answered + len(durations)


def rows_in_log(folder: Path) -> int:
    return int(read_log(folder, "select count(*) from routing_admin_requestlog")[0][0])


def measure_workers(provider: Served, folder: Path, own: Target) -> None:
    with gateway(provider, folder, workers=2) as served:
        asyncio.run(compare_workers(own, own_target(served)))


def measure_lasting(provider: Served, folder: Path, own: Target) -> None:
    """Measure a server that has no other load: its memory after many calls, and its log after SIGTERM."""
    with gateway(provider, folder) as served:
        target, before = own_target(served), rows_in_log(folder)
        answered = asyncio.run(run_long(target))
    own.note("growth", target.get("growth"))
    own.note("answered", target.get("answered"))
    own.note("lost", answered + before - rows_in_log(folder))


def measure_kills(provider: Served, folder: Path, own: Target) -> None:
    environment, key = install(provider, folder)
    ages = []
    for number in range(KILLS):
        with serve(environment, key) as served:
            request, seconds = own_target(served).request("plain"), LOADED_SECONDS + number * STEP_SECONDS
            answered = asyncio.run(call_until_killed(served, request, STEADY_CALLS, seconds))
            served.process.wait()
        ages.append(oldest_missing(folder, answered))
    own.note("killed", max(ages))


@contextmanager
def all_targets(folder: Path) -> Iterator[list[Target]]:
    with ExitStack() as stack:
        provider = stack.enter_context(upstream())
        lean = stack.enter_context(lean_proxy(provider))
        own = stack.enter_context(gateway(provider, folder / "one"))
        yield [
            Target(provider, lambda behaviour: f"/{behaviour}/v1/chat/completions", lambda behaviour: NAME),
            Target(
                lean, lambda behaviour: f"/{behaviour.rstrip('0123456789')}/v1/chat/completions", lambda behaviour: NAME
            ),
            own_target(own),
        ]


def own_target(served: Served) -> Target:
    return Target(served, lambda behaviour: "/v1/chat/completions", model_name)


def model_name(behaviour: str) -> str:
    """Return the model name that our server routes to an upstream with this behaviour."""
    return f"task:{behaviour}" if behaviour.startswith("failover") else f"{behaviour}/{NAME}"


def main() -> None:
    """Print each server's medians, our server's ratio to the baseline, and the goals."""
    logging.disable(logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory(prefix="routing-admin-bench-") as name,
        all_targets(folder := Path(name)) as targets,
    ):
        for target in targets:
            target.note("start", target.served.start_seconds)
        asyncio.run(measure(targets))
        upstream_target, _, own = targets
        measure_workers(upstream_target.served, folder / "two", own)
        measure_lasting(upstream_target.served, folder / "lasting", own)
        measure_kills(upstream_target.served, folder / "killed", own)
    heads = ("", *(target.served.name for target in targets), "compared", "wanted", "met")
    show(
        f"{ROUNDS} rounds of {SECONDS} s each, medians",
        heads,
        [row.cells(*(target.get for target in targets)) for row in ROWS],
    )


if __name__ == "__main__":
    main()
