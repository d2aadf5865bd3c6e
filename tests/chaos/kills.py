"""Kill a server with SIGKILL during edits, imports, uploads and calls. No acknowledged data may be lost."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.chaos.callers import CUT, Finding, Person, ask, at_once, chat, finding, send, upload
from tests.chaos.installation import Installation, installed
from tests.gateway.serving import Server, manage
from tests.processes import wait_until

LONGEST, SHORTEST = 1.5, 0.2
"""The longest and shortest time in seconds from a server's first acknowledgement until it is killed."""
TARGETS = ("task:planning", "task:default", "text-model", "vision-model")


@dataclass
class Ledger:
    """The data that the server has acknowledged.

    For a value that changes, it has the last acknowledged value and the one in progress. Either may be stored.
    """

    alias: tuple[str, str] = ("", "")
    limit: tuple[int, int] = (0, 0)
    agent: tuple[str, str] = ("", "")
    files: dict[str, bytes] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    count: int = 0
    losses: list[str] = field(default_factory=list)


@dataclass
class LoadGenerator:
    """Four clients that load a server until it is killed: they edit, import, upload and call models."""

    server: Server
    person: Person
    ledger: Ledger
    cycle: int

    def works(self) -> list[Callable[[], None]]:
        return [self._until_gone(work) for work in (self.edit, self.import_configuration, self.store, self.call)]

    def _until_gone(self, work: Callable[[], Iterator[None]]) -> Callable[[], None]:
        def run() -> None:
            try:
                for _ in work():
                    self.ledger.count += 1
            except CUT:
                return

        return run

    def edit(self) -> Iterator[None]:
        person, number = self.person, 0
        person.server = self.server
        while True:
            number += 1
            target, name = TARGETS[(self.cycle + number) % len(TARGETS)], f"{self.cycle}-{number}"
            # Note the value before the request. If the request is interrupted, either value may be stored.
            self.ledger.alias = (self.ledger.alias[0], target)
            if person.post("/aliases/", name="pushed", target=target).status < 400:
                self.ledger.alias = (target, target)
                yield
            self.ledger.agent = (self.ledger.agent[0], name)
            if ask(self.server, "PUT", "/api/v1/agents/pushed", {"name": name, "taskType": "planning"}).status < 300:
                self.ledger.agent = (name, name)
                yield

    def import_configuration(self) -> Iterator[None]:
        number = self.cycle * 1000
        while True:
            number += 1
            self.ledger.limit = (self.ledger.limit[0], number)
            content = ask(self.server, "GET", "/api/v1/config/llm-routing").json
            content["routing"]["planning"]["maxTokens"] = number
            if ask(self.server, "POST", "/api/v1/config/import", content).status == 200:
                self.ledger.limit = (number, number)
                yield

    def store(self) -> Iterator[None]:
        sizes = random.Random(self.cycle)
        while True:
            content = os.urandom(sizes.choice((10, 5_000, 300_000, 2_000_000)))
            reply = upload(self.server, content)
            if reply.status == 200:
                self.ledger.files[reply.json["id"]] = content
                yield

    def call(self) -> Iterator[None]:
        """Send calls. A call counts as acknowledged once its log entry can be read."""
        number = 0
        while True:
            number += 1
            name = f"pushed-{self.cycle}-{number}"
            logged = chat(self.server, name).status == 200
            if logged and ask(self.server, "GET", f"/api/v1/requests/{name}").status == 200:
                self.ledger.calls.append(name)
                yield


def check(server: Server, installation: Installation, ledger: Ledger, files: dict[str, bytes]) -> None:
    rows = installation.rows("select target from routing_admin_alias where name = 'pushed'")
    alias = rows[0][0] if rows else ""
    limit = ask(server, "GET", "/api/v1/config/llm-routing").json["routing"]["planning"]["maxTokens"]
    name = ask(server, "GET", "/api/v1/agents/pushed").json.get("name", "")
    losses = ledger.losses
    for kind, acknowledged, stored in (
        ("alias", ledger.alias, alias),
        ("import", ledger.limit, limit),
        ("agent", ledger.agent, name),
    ):
        if acknowledged[0] and stored not in acknowledged:
            losses.append(f"{kind}: {acknowledged[0]} acknowledged, {stored} found")
    ledger.alias, ledger.limit, ledger.agent = (alias, alias), (limit, limit), (name, name)
    bearer = {"authorization": f"Bearer {server.key}"}
    for ref, content in files.items():
        reply = send(server, "GET", f"/v1/files/{ref}/content", headers=bearer)
        if reply.body != content:
            losses.append(f"upload {ref}: {reply.status}, {len(reply.body)} of {len(content)} bytes")
    logged = {row[0] for row in installation.rows("select id from routing_admin_requestlog", "logs")}
    losses += [f"call {name} is not in the log" for name in ledger.calls if name not in logged]


def kill_under_load(load: LoadGenerator, seconds: float) -> None:
    """Kill the server this long after it has acknowledged something, so that there is something to lose."""
    acknowledged = load.ledger.count
    killer = threading.Timer(seconds, load.server.process.kill)
    try:
        wait_until(lambda: load.ledger.count > acknowledged)
    finally:
        killer.start()
        killer.join()


def kill_again_and_again(times: int) -> Finding:
    """Repeatedly start a server and kill it after a varying time. Then read all uploads and run `doctor`."""
    ledger, moments, newest = Ledger(), random.Random(times), dict[str, bytes]()
    with installed() as installation:
        person = None
        for cycle in range(1, times + 1):
            with installation.serve() as server:
                # Sign in only once, since each sign-in is slow.
                person = person or Person(server).sign_in()
                check(server, installation, ledger, newest)
                before = set(ledger.files)
                load = LoadGenerator(server, person, ledger, cycle)
                raised = at_once(*load.works(), partial(kill_under_load, load, moments.uniform(SHORTEST, LONGEST)))
            ledger.losses += [f"cycle {cycle}: {error!r}" for error in raised]
            # After each start, only the newest uploads are read. At the end, all are read.
            newest = {ref: content for ref, content in ledger.files.items() if ref not in before}
        with installation.serve() as server:
            check(server, installation, ledger, ledger.files)
        ledger.losses += installation.faults()
    facts = f"{ledger.count} acknowledged: {len(ledger.files)} uploads, {len(ledger.calls)} calls, the rest changes"
    return finding("kill -9", f"{times} kills", facts, ledger.losses)


def back_up_under_load(installation: Installation, server: Server, backup: Path) -> dict[str, bytes]:
    """Make a backup while calls, uploads, imports and edits are sent, then kill the server.

    Return the files that were acknowledged before the backup began.
    """
    person, ledger, files = Person(server).sign_in(), Ledger(), dict[str, bytes]()

    def save() -> None:
        try:
            wait_until(lambda: ledger.count >= 20)
            files.update(ledger.files)
            manage(installation.environment, "backup", str(backup))
        finally:
            server.process.kill()

    assert at_once(*LoadGenerator(server, person, ledger, 1).works(), save) == []
    return files
