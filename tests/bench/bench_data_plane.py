"""`python -m tests.bench.bench_data_plane`: calls per second through `/v1`, and straight to the upstream.

A server of its own with the fault lab as its provider, keys, adaptation and journal on; so many callers keep one
connection each. Ratios of one run mean something, numbers of different machines or moments do not.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.table import show
from tests.gateway.serving import served

SECONDS, CALLERS, ROUNDS = 2.0, 8, 3
HELLO = {"messages": [{"role": "user", "content": "hello"}]}


@dataclass
class Load:
    """One address that is called again and again; `rates` are calls per second of each round."""

    name: str
    url: str
    model: str
    key: str
    rates: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    async def round(self) -> None:
        """So many callers for so long."""
        until = time.perf_counter() + SECONDS
        done = await asyncio.gather(*(self._caller(until) for _ in range(CALLERS)))
        self.rates.append(sum(done) / SECONDS)

    async def _caller(self, until: float) -> int:
        host, _, path = self.url.removeprefix("http://").partition("/")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        body = json.dumps({"model": self.model, **HELLO}).encode()
        head = f"POST /{path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {self.key}\r\n"
        request = f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
        done = 0
        while (began := time.perf_counter()) < until:
            writer.write(request)
            await _answer(reader)
            self.times.append((time.perf_counter() - began) * 1000)
            done += 1
        writer.close()
        return done

    def row(self, floor: float) -> tuple[object, ...]:
        """The line of the table."""
        rate = statistics.median(self.rates)
        return (self.name, rate, rate / floor, statistics.median(self.times), statistics.quantiles(self.times)[2])


async def _answer(reader: asyncio.StreamReader) -> None:
    """Reads one answer. Raises `RuntimeError` when it is no success."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise RuntimeError(head.decode())
    if b"content-length: " in head:
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
        return
    while (line := await reader.readuntil(b"\r\n")).strip() != b"0":
        await reader.readexactly(int(line, 16) + 2)
    await reader.readuntil(b"\r\n")


async def rounds(loads: list[Load]) -> None:
    """The loads in turns, so that what else the machine does falls on all of them."""
    for _ in range(ROUNDS):
        for load in loads:
            await load.round()


def main() -> None:
    """Prints the table."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as directory, served(Path(directory)) as server:
        chat = f"{server.url}/v1/chat/completions"
        loads = [
            Load("straight to the upstream", server.lab.url("openai", "one"), "lab", "none"),
            Load("/v1, the upstream behind it", chat, "one/lab", server.key),
            Load("/v1, the embedded echo", chat, "echo/echo-text", server.key),
        ]
        asyncio.run(rounds(loads))
    floor = statistics.median(loads[0].rates)
    heads = ("", "calls/s", "ratio", "median ms", "p75 ms")
    show(f"{CALLERS} callers, {ROUNDS} rounds of {SECONDS} s each", heads, [load.row(floor) for load in loads])


if __name__ == "__main__":
    main()
