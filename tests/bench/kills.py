"""What the log lacks after kill -9: of the calls that were answered, how long before the end the oldest was."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from tests.bench.load import Connection, connect, fixed_moments
from tests.bench.processes import Served, read_log

KILLS = 5
"""Servers that are killed, each at another moment of the journal's round."""
LOADED_SECONDS, STEP_SECONDS = 1.5, 0.023
"""How long the first one is called, and how much longer each that follows."""


async def answered_until_killed(served: Served, request: bytes, per_second: float, seconds: float) -> dict[str, float]:
    """Calls at fixed moments until the server is killed: by the id of each answered one, how many ms before the end."""
    idle: list[Connection] = []
    answered: dict[str, float] = {}

    async def one(name: str) -> None:
        connection = idle.pop() if idle else await connect(served.port)
        if await connection.ask(request.replace(b"\r\n", f"\r\nx-request-id: {name}\r\n".encode(), 1)) == 200:
            answered[name] = time.perf_counter()
            idle.append(connection)

    names = (f"killed-{seconds:.3f}-{number}" async for number in fixed_moments(per_second, seconds))
    calls = [asyncio.ensure_future(one(name)) async for name in names]
    served.process.kill()
    end = time.perf_counter()
    await asyncio.gather(*calls, return_exceptions=True)  # those that were under way were not answered
    return {name: (end - moment) * 1000 for name, moment in answered.items() if moment <= end}


def oldest_missing(folder: Path, answered: Mapping[str, float]) -> float:
    """The greatest of these ages among the calls that the log of an installation lacks; 0 where it lacks none."""
    there = {name for (name,) in read_log(folder, "select id from routing_admin_requestlog where id like 'killed-%'")}
    return max((age for name, age in answered.items() if name not in there), default=0.0)
