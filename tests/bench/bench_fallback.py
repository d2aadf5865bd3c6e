"""`python -m tests.bench.bench_fallback`: time from a failure to the next candidate, and overhead over a direct call.

The calls are sequential and go over real sockets to the fault lab on this machine. The table has medians and 99th
percentiles.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import time
from collections.abc import Awaitable
from dataclasses import dataclass

import httpx

from capabilities.core.providers.origins import OriginPolicy
from routing_admin.core.fallback.chain import PlannedCandidate
from routing_admin.upstream import Upstream
from tests.fallback.network_runs import HELLO, NetworkRun, Target, protocol
from tests.lab import Lab

CALLS = 300


@dataclass(frozen=True)
class Durations:
    """Durations of repeated runs in milliseconds, in the order in which they ran."""

    name: str
    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.values, n=100)[98]

    def line(self) -> str:
        return f"{self.name:<52} {self.median:>10.2f} {self.p99:>10.2f}"


async def failover(lab: Lab, upstream: Upstream, scenario: str, *, stream: bool, calls: int) -> Durations:
    """Measure the time from the end of the failed response to the arrival of the request to the next candidate."""
    urls = {"bad": lab.url("openai", "bad"), "good": lab.url("openai", "good")}
    chain = (PlannedCandidate(0, "bad", f"fault:{scenario}"), PlannedCandidate(1, "good", "lab-model"))
    values = []
    for _ in range(calls):
        lab.requests.clear()
        await NetworkRun(urls, protocol("openai"), stream, upstream=upstream, keep=True).run(*chain)
        first, second = lab.requests
        values.append((second.arrived_at - (first.ended_at or 0)) * 1000)
    return Durations(f"failure → next dispatch: {scenario}{', stream' if stream else ''} (ms)", values)


async def through_run(lab: Lab, upstream: Upstream, calls: int) -> Durations:
    network_run = NetworkRun({"up": lab.url("openai", "up")}, protocol("openai"), upstream=upstream, keep=True)
    return Durations("a healthy call through the run (ms)", [await _timed(network_run.run(*UP)) for _ in range(calls)])


UP = (PlannedCandidate(0, "up", "lab-model"),)


async def direct(lab: Lab, calls: int) -> Durations:
    target = Target("up", lab.url("openai", "up"), "lab-model", "sk-secret-key-1234567890")
    request = protocol("openai").encode(HELLO, target, stream=False)
    async with httpx.AsyncClient(trust_env=False) as client:

        async def once() -> object:
            answer = await client.post(request.url, headers=dict(request.headers), content=request.pieces()[0])
            return json.loads(answer.content)

        return Durations("the same call with a plain httpx client (ms)", [await _timed(once()) for _ in range(calls)])


async def _timed(work: Awaitable[object]) -> float:
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1000


async def measure(calls: int = CALLS) -> list[Durations]:
    upstream = Upstream(OriginPolicy(everything=True))
    with Lab() as lab:
        await through_run(lab, upstream, 20)
        rows = [
            await failover(lab, upstream, "http_529", stream=False, calls=calls),
            await failover(lab, upstream, "http_529", stream=True, calls=calls),
            await failover(lab, upstream, "wait", stream=False, calls=calls),
            await direct(lab, calls),
            await through_run(lab, upstream, calls),
        ]
        await upstream.close()
    return rows


def main() -> None:
    logging.getLogger("routing_admin.routing").setLevel(logging.ERROR)  # Log lines would obscure the table.
    rows = asyncio.run(measure())
    print(f"{'':<52} {'median':>10} {'p99':>10}")
    for row in rows:
        print(row.line())
    print(f"{'added to a direct call (median, ms)':<52} {rows[-1].median - rows[-2].median:>10.2f}")


if __name__ == "__main__":
    main()
