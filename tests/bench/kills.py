"""Measure how much log is lost by kill -9: the age of the oldest answered call that is not in the log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from tests.bench.load import Connection, connect, fixed_rate
from tests.bench.processes import Served, read_log

KILLS = 5
"""The number of servers to kill, each at a different point in the journal's write cycle."""
LOADED_SECONDS, STEP_SECONDS = 1.5, 0.023
"""Seconds of load on the first server, and the increase for each later server."""


async def call_until_killed(served: Served, request: bytes, per_second: float, seconds: float) -> dict[str, float]:
    """Send calls at a fixed rate and kill the server.

    Return, for each answered call, how many milliseconds before the kill its response arrived.
    """
    idle: list[Connection] = []
    answered: dict[str, float] = {}

    async def call(name: str) -> None:
        connection = idle.pop() if idle else await connect(served.port)
        if await connection.ask(request.replace(b"\r\n", f"\r\nx-request-id: {name}\r\n".encode(), 1)) == 200:
            answered[name] = time.perf_counter()
            idle.append(connection)

    names = (f"killed-{seconds:.3f}-{number}" async for number in fixed_rate(per_second, seconds))
    calls = [asyncio.ensure_future(call(name)) async for name in names]
    served.process.kill()
    end = time.perf_counter()
    await asyncio.gather(*calls, return_exceptions=True)  # Calls that are still pending have not been answered.
    return {name: (end - moment) * 1000 for name, moment in answered.items() if moment <= end}


def oldest_missing(folder: Path, answered: Mapping[str, float]) -> float:
    """Return the age of the oldest answered call that is missing from the log, or 0 if none is missing."""
    logged = {name for (name,) in read_log(folder, "select id from routing_admin_requestlog where id like 'killed-%'")}
    return max((age for name, age in answered.items() if name not in logged), default=0.0)
