"""The environment for the hostile tests: an installation that a well-behaved agent calls during each attack."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.bench.table import show
from tests.chaos.callers import CUT, Finding, chat, finding
from tests.chaos.installation import installed
from tests.gateway.serving import Server, manage

PAUSE = 0.02
QUIET_SECONDS = 2.0
SETTLE_SECONDS = 1.0
"""Delay in seconds after an attack before the server's memory is measured again."""


@dataclass
class Stage:
    """The target of an attack, with the responses and faults that were recorded during it.

    `server` has the attacker's key, `neighbour` another agent's key.
    """

    server: Server
    neighbour: Server
    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def note(self, answer: object, *, good: bool = True) -> None:
        """Count a response, and record a fault if the response is not good."""
        self.answers[str(answer)] += 1
        if not good:
            self.faults.append(f"answered {answer}")


@dataclass(frozen=True)
class Attack:
    """An attack: `run` performs it. Its limits apply to the growth of the server's memory and to another agent's
    latency.

    That agent's calls may take `seconds` longer than without the attack.
    """

    name: str
    run: Callable[[Stage], None]
    megabytes: int = 150
    seconds: float = 2.0


@dataclass
class Watch:
    """The effect of an attack: the server's peak memory, and the responses to another agent."""

    server: Server
    peak: float = 0.0
    longest: float = 0.0
    calls: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    finished: threading.Event = field(default_factory=threading.Event)

    def call(self) -> None:
        while not self.finished.wait(PAUSE):
            started = time.monotonic()
            try:
                status: object = chat(self.server, "").status
            except CUT as error:
                status = type(error).__name__
            self.longest = max(self.longest, time.monotonic() - started)
            self.calls += 1
            if status != 200:
                self.refused[str(status)] += 1

    def measure(self) -> None:
        while not self.finished.wait(PAUSE):
            self.peak = max(self.peak, memory_megabytes(self.server))


def memory_megabytes(server: Server) -> float:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@contextmanager
def watched(server: Server) -> Iterator[Watch]:
    watch = Watch(server, memory_megabytes(server))
    threads = [threading.Thread(target=work) for work in (watch.call, watch.measure)]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        watch.finished.set()
        for thread in threads:
            thread.join()


def make_attacks(attacks: Sequence[Attack]) -> Finding:
    """Run the attacks in sequence, print each one's cost, and return a finding with the exceeded limits."""
    rows, losses = [], list[str]()
    with installed() as installation:
        key = manage(installation.environment, "create_agent", "neighbour", "--route", "chain", "--key")
        with installation.serve() as server:
            neighbour = replace(server, key=key.split()[-1])
            with watched(neighbour) as quiet:
                quiet.finished.wait(QUIET_SECONDS)
            rows.append(("nothing", quiet.peak, quiet.peak, quiet.peak, quiet.longest, f"{quiet.calls} calls", ""))
            for attack in attacks:
                row, broken = _make(attack, Stage(server, neighbour), quiet.longest)
                rows.append(row)
                losses += [f"{attack.name}: {bound}" for bound in broken]
            if server.process.poll() is not None:
                losses.append("the server has ended")
            losses += [f"the log has: {line}" for line in server.log.splitlines() if line.startswith("Traceback")]
    heads = ("attack", "MB before", "peak", "after", "longest wait s", "answers", "broken bounds")
    show("hostile clients and providers", heads, rows)
    return finding("hostile", f"{len(attacks)} attacks", f"{len(losses)} bounds broken", losses)


def _make(attack: Attack, stage: Stage, usual: float) -> tuple[tuple[object, ...], list[str]]:
    before = memory_megabytes(stage.server)
    with watched(stage.neighbour) as watch:
        try:
            attack.run(stage)
        except Exception as error:
            stage.faults.append(f"the attack broke off: {error!r}")
        watch.finished.wait(SETTLE_SECONDS)
    broken = [*stage.faults[:5]]
    if watch.peak - before > attack.megabytes:
        broken.append(f"{watch.peak - before:.0f} MB more, {attack.megabytes} allowed")
    if watch.longest > attack.seconds + usual:
        broken.append(f"another agent waited {watch.longest:.2f} s, {attack.seconds:g} more than {usual:.2f} allowed")
    if watch.refused:
        broken.append(f"another agent was answered {dict(watch.refused)}")
    answers = ", ".join(f"{count} × {kind}" for kind, count in sorted(stage.answers.items()))
    row = (attack.name, before, watch.peak, memory_megabytes(stage.server), watch.longest, answers, "; ".join(broken))
    return row, broken
