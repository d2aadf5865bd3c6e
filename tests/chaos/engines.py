"""Cause every fault of PostgreSQL, Redis, S3 and our processes under a steady load, and check the resulting alerts.

Calls go to three machines. The last machine has two workers. If a machine ends before it has read a call, the call is
sent to another machine, as a load balancer would do.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import psycopg

from routing_admin.core.alerts.kinds import AlertKind
from tests.bench.table import show
from tests.chaos.callers import CUT, Finding, Reply, ask, at_once, chat, finding, send, upload
from tests.chaos.engine_faults import FAULTS, EngineFault
from tests.chaos.machines import (
    BUDGET,
    MACHINES,
    PAUSE,
    REFUSALS,
    SAVE_LIMIT,
    TIMEOUT_SECONDS,
    WRITE_SECONDS,
    Machines,
    machines,
)
from tests.engines.webhook import WebhookReceiver, running_receiver
from tests.gateway.serving import manage

CALLERS = 4
SETTLE_SECONDS = 1.0
ALERT_SECONDS = 25.0
"""Seconds within which an outage must be reported. Checks run every 5 s and report it after 10 s; the rest is slack."""
STATE = re.compile(
    r"^routing_admin_(\w*_(?:up|open|lost|waiting|repaired|stale|unread|failed|age|refused)\w*(?:\{[^}]*\})?) (\S+)$",
    re.M,
)
"""Matches the metrics that may show a fault."""
HEADS = (
    "fault",
    "calls",
    "failed",
    "cut",
    "passed on",
    "slowest s",
    "with limits",
    "uploads",
    "lost",
    "doubled",
    "alerted s",
    "back s",
)
REPORT_HEADS = ("fault", "readyz", "alerts", "log lines", "metrics")


@dataclass
class Tally:
    """The responses to calls that began during a fault, and the fault's alerts, log lines and metrics."""

    fault: EngineFault
    answers: Counter[str] = field(default_factory=Counter)
    limited: Counter[int] = field(default_factory=Counter)
    uploads: Counter[int] = field(default_factory=Counter)
    answered: list[tuple[str, int, float, float]] = field(default_factory=list)
    """Each answered call: its name, its machine, when it began, and when it was answered."""
    slowest: float = 0.0
    alerted: float = 0.0
    back: float = 0.0
    lost: int = 0
    doubled: int = 0
    reports: tuple[str, str, str, str] = ("", "", "", "")

    @property
    def failed(self) -> int:
        return sum(count for status, count in self.answers.items() if status.isdigit() and status != "200")

    def row(self) -> tuple[object, ...]:
        calls = sum(count for status, count in self.answers.items() if status != "passed on")
        cut, passed = self.answers["cut"], self.answers["passed on"]
        others = (_words(self.limited), _words(self.uploads))
        return (
            *(self.fault.name, calls, self.failed, cut, passed, self.slowest),
            *(*others, self.lost, self.doubled, self.alerted, self.back),
        )

    def losses(self) -> Iterator[str]:
        name = self.fault.name
        if self.failed:
            yield f"{name}: {self.failed} calls failed: {_words(self.answers)}"
        if self.answers["cut"] and not self.fault.cuts:
            yield f"{name}: {self.answers['cut']} calls were cut"
        if self.lost or self.doubled:
            yield f"{name}: {self.lost} rows lost, {self.doubled} doubled"
        for kind, counts in (("uploads", self.uploads), ("calls with limits", self.limited)):
            if unexpected := {status: n for status, n in counts.items() if status not in (0, 200, *REFUSALS)}:
                yield f"{name}: {kind} were answered {unexpected}"


def _words(counts: Mapping[int, int] | Mapping[str, int]) -> str:
    return ", ".join(f"{count} × {status or 'cut'}" for status, count in sorted(counts.items(), key=str))


@dataclass
class EngineFaultRun:
    """The load on the machines, and the current fault."""

    machines: Machines
    webhook: WebhookReceiver
    tally: Tally
    tallies: list[Tally] = field(default_factory=list)
    reported: int = 0
    """The number of alert notices already received for earlier faults."""

    def call(self, number: int) -> None:
        """Send calls in sequence with a known key, starting at the next machine each time."""
        count = 0
        while not self.machines.finished.wait(PAUSE):
            count, tally = count + 1, self.tally
            name, started = f"engines-{len(self.tallies)}-{number}-{count}", time.monotonic()
            # Every machine is tried once, and then the first one again.
            for step in range(MACHINES + 1):
                machine = (number + count + step) % MACHINES
                try:
                    reply = chat(self.machines.servers[machine], name)
                except CUT as error:
                    if tally.fault.cuts and not isinstance(error, ConnectionRefusedError):
                        tally.answers["cut"] += 1
                        break
                    tally.answers["passed on"] += 1
                else:
                    self._note(tally, name, machine, reply, started)
                    break
            else:
                tally.answers["cut"] += 1
            tally.slowest = max(tally.slowest, time.monotonic() - started)

    def _note(self, tally: Tally, name: str, machine: int, reply: Reply, began: float) -> None:
        tally.answers[str(reply.status)] += 1
        if reply.status == 200:
            tally.answered.append((name, machine, began, time.monotonic()))

    def spend(self) -> None:
        self._repeat(
            lambda machine: chat(replace(self.machines.servers[machine], key=self.machines.spender), ""), "limited"
        )

    def store(self) -> None:
        def upload_file(machine: int) -> Reply:
            content = os.urandom(20_000)
            reply = upload(self.machines.servers[machine], content)
            if reply.status == 200:
                self.machines.files[reply.json["id"]] = content
            return reply

        self._repeat(upload_file, "uploads")

    def _repeat(self, send_request: Callable[[int], Reply], counter: str) -> None:
        count = 0
        while not self.machines.finished.wait(2 * PAUSE):
            count, tally = count + 1, self.tally
            try:
                getattr(tally, counter)[send_request(count % MACHINES).status] += 1
            except ConnectionRefusedError:  # The machine has ended, so the call goes to the next one.
                continue
            except CUT:
                getattr(tally, counter)[0] += 1

    def run_faults(self) -> None:
        try:
            for fault in FAULTS:
                try:
                    self._run_fault(fault)
                except Exception as error:
                    self.machines.losses.append(f"{fault.name} could not be caused: {error!r}")
        finally:
            self.machines.finished.set()

    def _run_fault(self, fault: EngineFault) -> None:
        self.tally = tally = Tally(fault)
        self.tallies.append(tally)
        before, lines = self._state(), self._lines()
        with fault.lasting(self.machines):
            started = time.monotonic()
            self.machines.finished.wait(fault.seconds)
            self._wait_for_alert(fault.alert, started)
            ready, after = self._ready(), self._state()
        tally.back = self._wait_until_ready()
        self.machines.finished.wait(SETTLE_SECONDS)
        alerts, self.reported = self.reported, len(self.webhook.received)
        kinds = ", ".join(self._alerts(alerts))
        moved = [
            f"{name} {before.get(name, '-')} → {value}" for name, value in after.items() if before.get(name) != value
        ]
        after_lines = self._lines()
        logged = (
            f"{after_lines['lines'] - lines['lines']}, {after_lines['tracebacks'] - lines['tracebacks']} tracebacks"
        )
        tally.reports = (ready, kinds or "none", logged, "; ".join(moved) or "nothing")
        values = zip((*HEADS, *REPORT_HEADS[1:]), (*tally.row(), *tally.reports), strict=True)
        print("; ".join(f"{head} {value}" for head, value in values if value), flush=True)
        if after_lines["tracebacks"] > lines["tracebacks"]:
            self.machines.losses.append(
                f"{fault.name}: {after_lines['tracebacks'] - lines['tracebacks']} tracebacks in the logs"
            )

    def _alerts(self, since: int) -> list[str]:
        bodies = json.dumps([notice.body for notice in self.webhook.received[since:]])
        return [kind.value for kind in AlertKind if f'"{kind.value}"' in bodies]

    def _wait_for_alert(self, kind: str, began: float) -> None:
        """Wait until a notice reports the fault's alert as ongoing.

        An alert that recurs within two minutes of its end is not sent again.
        """
        while kind and not self._is_lasting(kind):
            if time.monotonic() - began > ALERT_SECONDS:
                self.machines.losses.append(f"{self.tally.fault.name}: no alert {kind} within {ALERT_SECONDS:.0f} s")
                return
            self.machines.finished.wait(0.2)
        self.tally.alerted = time.monotonic() - began if kind else 0.0

    def _is_lasting(self, kind: str) -> bool:
        events = [notice.body["event"] for notice in self.webhook.received if notice.body["kind"] == kind]
        return events[-1:] == ["begun"]

    def _ready(self) -> str:
        states = Counter[str]()
        for server in self.machines.servers:
            try:
                state = ask(server, "GET", "/readyz").json
                states[" ".join((state["status"], *state["degraded"]))] += 1
            except (*CUT, ValueError):
                states["no answer"] += 1
        return ", ".join(f"{count} × {state}" for state, count in states.items())

    def _state(self) -> dict[str, str]:
        try:
            return dict(STATE.findall(send(self.machines.servers[0], "GET", "/metrics").body.decode()))
        except CUT:
            return {"metrics": "no answer"}

    def _lines(self) -> Counter[str]:
        texts = [(server.directory / "server.log").read_text() for server in self.machines.servers]
        return Counter(
            lines=sum(text.count("\n") for text in texts), tracebacks=sum(text.count("Traceback") for text in texts)
        )

    def _wait_until_ready(self) -> float:
        started = time.monotonic()
        for number in range(MACHINES):
            while not self._is_whole(number):
                if time.monotonic() - started > TIMEOUT_SECONDS:
                    self.machines.losses.append(f"{self.tally.fault.name}: machine {number} is not whole again")
                    break
                self.machines.finished.wait(0.1)
        return time.monotonic() - started

    def _is_whole(self, number: int) -> bool:
        try:
            return ask(self.machines.servers[number], "GET", "/readyz?full").status == 200
        except CUT:
            return False

    def count_rows(self) -> None:
        until = time.monotonic() + TIMEOUT_SECONDS
        while True:
            with psycopg.connect(self.machines.environments[0]["DATABASE_URL"]) as rows:
                stored = rows.execute("select id from routing_admin_requestlog where id like 'engines-%'").fetchall()
            # If a request is stored twice, the second row's id has a suffix.
            counts = Counter(row[0].partition("~")[0] for row in stored)
            for tally in self.tallies:
                names = {name for name, machine, *times in tally.answered if not self._is_excused(machine, *times)}
                tally.lost = len(names - set(counts))
                tally.doubled = sum(counts[name] > 1 for name in names)
            if time.monotonic() > until or not any(tally.lost for tally in self.tallies):
                return
            time.sleep(0.5)

    def _is_excused(self, machine: int, began: float, answered: float) -> bool:
        """Return whether the machine was killed during the call or so soon after it that the log row may be missing."""
        return machine == MACHINES - 1 and any(began <= kill < answered + WRITE_SECONDS for kill in self.machines.kills)


@contextmanager
def engine_fault_run() -> Iterator[EngineFaultRun]:
    with running_receiver() as webhook:
        hook = {"ROUTING_ADMIN_ALERT_WEBHOOK": f"{webhook.base}/hook", "ROUTING_ADMIN_ALLOWED_ORIGINS": "*"}
        with machines(0, hook) as installation:
            manage(installation.environments[0], "shell", "-c", SAVE_LIMIT % (BUDGET * 1000))
            yield EngineFaultRun(installation, webhook, Tally(FAULTS[0]))


def push_engines(rounds: int) -> Finding:
    """Cause every engine fault and return the finding.

    No call with a known key may fail, no row may be lost or duplicated, and no artifact may be incomplete.
    """
    losses, calls = list[str](), 0
    for _ in range(rounds):
        with engine_fault_run() as load:
            callers = [lambda number=number: load.call(number) for number in range(CALLERS)]
            losses += [repr(error) for error in at_once(load.run_faults, load.spend, load.store, *callers)]
            load.count_rows()
            load.machines.check()
            losses += load.machines.losses
        losses += [loss for tally in load.tallies for loss in tally.losses()]
        calls += sum(tally.answers.total() for tally in load.tallies)
        show("faults of the engines under load", HEADS, [tally.row() for tally in load.tallies])
        show("what was said of them", REPORT_HEADS, [(tally.fault.name, *tally.reports) for tally in load.tallies])
    facts = f"{calls} calls, {len(FAULTS)} faults, {len(load.machines.files)} uploads kept"
    return finding("engines", f"{rounds} rounds", facts, losses)
