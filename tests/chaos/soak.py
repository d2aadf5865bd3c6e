"""`make soak`: run a served installation under load and check that its memory, descriptors and tasks do not grow."""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.table import show
from tests.chaos.callers import Person, ask, at_once, chat, send, upload
from tests.chaos.installation import installed
from tests.gateway.serving import Server

SAMPLES = 20
"""The number of resource samples, spread evenly over the run."""
PAUSE = 0.02
"""Seconds that a caller waits between two calls."""
SLACK = {"memory MB": 8.0, "descriptors": 8.0, "threads": 4.0, "tasks": 8.0}
"""For each resource, the tolerated increase of its median from the second to the last third of the run."""
TASKS = re.compile(r"^routing_admin_tasks (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """A server's resource usage at one moment. The values are in the same order as in `SLACK`."""

    second: float
    values: tuple[float, float, float, float]


def take_sample(server: Server, began: float) -> Sample:
    process = Path(f"/proc/{server.process.pid}")
    memory = next(int(line.split()[1]) for line in (process / "status").read_text().splitlines() if "VmRSS" in line)
    tasks = TASKS.search(send(server, "GET", "/metrics").body.decode())
    counts = (
        len(list((process / "fd").iterdir())),
        len(list((process / "task").iterdir())),
        int(tasks[1]) if tasks else 0,
    )
    return Sample(time.monotonic() - began, (memory / 1024, *map(float, counts)))


def works(server: Server, counted: Counter[str], finished: threading.Event) -> list[Callable[[], None]]:
    def repeating(name: str, work: Callable[[int], int]) -> Callable[[], None]:
        def run() -> None:
            number = 0
            while not finished.wait(PAUSE):
                number += 1
                counted[f"{name} {work(number)}"] += 1

        return run

    def store(number: int) -> int:
        reply = upload(server, str(number).encode() * 1000)
        return ask(server, "DELETE", f"/v1/files/{reply.json['id']}").status

    def change(number: int) -> int:
        finished.wait(1)
        return person.post("/aliases/", name="soaked", target=("task:planning", "text-model")[number % 2]).status

    person = Person(server).sign_in()
    return [
        repeating("chat", lambda number: chat(server, f"whole-{number}").status),
        repeating("stream", lambda number: chat(server, f"stream-{number}", stream=True).status),
        repeating("fallback", lambda number: chat(server, f"fails-{number}", "one/fault:http_503").status),
        repeating("upload", store),
        repeating("page", lambda number: person.open("/requests/").status),
        repeating("change", change),
    ]


def soak(seconds: float) -> tuple[list[Sample], Counter[str]]:
    samples, counted, finished = list[Sample](), Counter[str](), threading.Event()
    with installed() as installation, installation.serve() as server:

        def watch() -> None:
            started = time.monotonic()
            try:
                while time.monotonic() - started < seconds:
                    finished.wait(seconds / SAMPLES)
                    samples.append(take_sample(server, started))
            finally:
                finished.set()

        raised = at_once(watch, *works(server, counted, finished))
    if raised:
        raise raised[0]
    return samples, counted


def verdicts(samples: Sequence[Sample]) -> list[tuple[str, float, float, str]]:
    """Return each resource's median in the second and in the last third, and whether it stayed flat or grew."""
    third = len(samples) // 3
    rows = []
    for position, (name, slack) in enumerate(SLACK.items()):
        before, after = (
            statistics.median(sample.values[position] for sample in part)
            for part in (samples[third : 2 * third], samples[2 * third :])
        )
        rows.append((name, before, after, "flat" if after <= before + slack else "grown"))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=60.0, help="how long (60)")
    samples, counted = soak(parser.parse_args().seconds)
    show("samples", ("second", *SLACK), [(f"{sample.second:.0f}", *sample.values) for sample in samples])
    show("answers", ("call and status", "count"), sorted(counted.items()))
    rows = verdicts(samples)
    show("flat or grown", ("what", "second third", "last third", "verdict"), rows)
    return any(row[3] == "grown" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
