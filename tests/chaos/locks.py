"""Another connection repeatedly locks and releases both databases while agents send calls."""

from __future__ import annotations

import threading
import time
from collections import Counter

from tests.chaos.callers import Finding, ask, at_once, chat, finding
from tests.chaos.installation import Installation, installed
from tests.engines.others import locked
from tests.gateway.serving import Server

CALLERS = 4
LOCKED_SECONDS, UNLOCKED_SECONDS = 1.5, 0.5
"""For how many seconds a database is locked, and for how many it is then unlocked."""
CATCH_UP = 60
"""All calls must be in the log within this many seconds after the test."""


def lock_and_release(rounds: int) -> Finding:
    statuses, names, losses, finished = Counter[int](), list[str](), list[str](), threading.Event()
    with installed() as installation, installation.serve() as server:

        def call(caller: int) -> None:
            number = 0
            while not finished.is_set():
                number += 1
                name = f"locked-{caller}-{number}"
                status = chat(server, name).status
                statuses[status] += 1
                names.append(name)

        def lock() -> None:
            try:
                for number in range(rounds):
                    with locked(
                        installation.directory / f"{('routing_admin', 'logs')[number % 2]}.sqlite3", "IMMEDIATE"
                    ):
                        finished.wait(LOCKED_SECONDS)
                    finished.wait(UNLOCKED_SECONDS)
            finally:
                finished.set()

        assert chat(server, "first").status == 200
        raised = at_once(lock, *(lambda caller=caller: call(caller) for caller in range(CALLERS)))
        losses += [repr(error) for error in raised]
        losses += [f"{count} calls were answered {status}" for status, count in statuses.items() if status != 200]
        losses += missing(installation, server, names)
        losses += installation.faults()
    facts = f"{sum(statuses.values())} calls, of them {statuses[200]} answered and in the log"
    return finding("locked databases", f"{rounds} locks of {LOCKED_SECONDS} s", facts, losses)


def missing(installation: Installation, server: Server, names: list[str]) -> list[str]:
    until, missing_names = time.monotonic() + CATCH_UP, set(names)
    while missing_names and time.monotonic() < until:
        ask(server, "GET", f"/api/v1/requests/{names[-1]}")
        missing_names -= {row[0] for row in installation.rows("select id from routing_admin_requestlog", "logs")}
    return [f"call {name} is not in the log" for name in sorted(missing_names)]
